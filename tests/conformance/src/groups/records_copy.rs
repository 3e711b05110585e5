use snapmla::abi::types::{SNAPMLA_ALL_LAYERS, snapmla_records_copy_params};

use super::Suite;
use super::append::name_of_byte;
use crate::backend::{Backend, Cache, init};
use crate::case::{Geometry, Placement};
use crate::check::first_difference;
use crate::memory::{Buffer, Result, bytes_of};
use crate::prng::Rng;
use crate::record;
use crate::report::Metrics;

pub fn run(suite: &mut Suite) {
    for page_size in [8, 16, 24, 64, 256] {
        for placement in [Placement::Single, Placement::LayersOutside(3), Placement::LayersInside(3)] {
            for all_layers in [false, true] {
                let which = if all_layers { "all" } else { "one" };
                suite.case(format!("{page_size}-{placement:?}-{which}"), |backend| {
                    copy(backend, Geometry::new(placement, page_size, 6), all_layers, 40)
                });
            }
        }
    }
    let records = suite.pick(2_000, 60_000);
    suite.case(format!("{records}-records"), |backend| {
        copy(backend, Geometry::new(Placement::Single, 64, records / 30), false, records)
    });
    suite.case("nothing", |backend| copy(backend, Geometry::new(Placement::Single, 64, 1), true, 0));
}

fn copy(backend: &Backend, geometry: Geometry, all_layers: bool, records: usize) -> Result<Metrics> {
    let mut rng = Rng::new(records as u64);
    // Any bytes at all, NaN among them: a copy does not look.
    let before: Vec<u8> = (0..geometry.span().div_ceil(8)).flat_map(|_| rng.bits().to_le_bytes()).collect();
    let before = &before[..geometry.span()];
    let mut slots: Vec<i64> = (0..(geometry.num_pages * geometry.page_size) as i64).collect();
    rng.shuffle(&mut slots);
    let half = slots.len() / 2;
    let mut from: Vec<i64> = (0..records).map(|i| slots[i % half]).collect();
    let mut to: Vec<i64> = slots[half..].iter().copied().take(records).collect();
    from.truncate(to.len());
    for i in (0..from.len()).step_by(5) {
        *(if i % 2 == 0 { &mut from } else { &mut to }).get_mut(i).expect("a pair") = -7;
    }
    let last = geometry.num_layers - 1;
    let layers = if all_layers { 0..last + 1 } else { last..last + 1 };
    let mut want = before.to_vec();
    for layer in layers {
        for (&from, &to) in from.iter().zip(&to).filter(|(from, to)| **from >= 0 && **to >= 0) {
            let n = geometry.page_size;
            let page = |slot: i64| geometry.page(layer, slot as usize / n);
            let (source, target) = (page(from), page(to));
            let record = record::read(&before[source..source + geometry.page_bytes()], n, from as usize % n);
            record::write(&mut want[target..target + geometry.page_bytes()], n, to as usize % n, &record);
        }
    }
    let cache = Cache::over(backend, geometry, Buffer::holding(&backend.memory, before)?, true)?;
    let (from_slots, to_slots) = (backend.buffer(bytes_of(&from))?, backend.buffer(bytes_of(&to))?);
    let mut p = init!(snapmla_records_copy_params);
    p.layer = if all_layers { SNAPMLA_ALL_LAYERS } else { last as i32 };
    p.num_records = from.len() as i64;
    (p.src_slots, p.dst_slots) = (from_slots.at(0), to_slots.at(0));
    // SAFETY: as many slots as records.
    unsafe { backend.records_copy(&cache, &p, &backend.stream)? };
    backend.stream.wait()?;
    first_difference("the cache", &cache.memory.download()?, &want, |byte| name_of_byte(&geometry, byte))?;
    Ok(Metrics::none())
}
