use std::ffi::c_void;

use snapmla::abi::types::{snapmla_fetch_params, snapmla_k_append_params};

use super::{Suite, samples};
use crate::backend::{Backend, Cache, init};
use crate::bits::Float;
use crate::case::{Case, Geometry, Pages, Placement};
use crate::check::first_difference;
use crate::memory::{Buffer, Result, bytes_of};
use crate::record::{CONTENT, Numbers, Record};
use crate::report::Metrics;

/// More than 2^31 bytes into a cache, in pages of 64.
const FAR_PAGE: usize = 53_000;

pub fn run(suite: &mut Suite) {
    for (name, pages) in [("past-2-GiB", FAR_PAGE), ("past-4-GiB", 2 * FAR_PAGE)] {
        for heads in [16, 128] {
            let case = Case { heads, pages: Pages::Behind(pages), ..Case::new(&[1000, 64, 1]) };
            suite.decode(format!("{name}-h{heads}"), &case);
        }
    }
    // 256 MiB between pages, 20 of them.
    let case = Case { placement: Placement::Spread(256 << 20), ..Case::new(&[700, 200, 1]) };
    suite.decode("spread-pages", &case);
    let small = Case { page_size: 16, ..case };
    suite.decode("spread-pages-of-16", &Case { seq_lens: vec![150, 33], ..small });
    let case = Case { placement: Placement::FarLayers(3 << 30), layer: 1, ..Case::new(&[700, 64, 1]) };
    suite.decode("far-layer", &case);
    suite.case("append-and-fetch", append_and_fetch);
}

/// Records written and read past 2^31 and 2^32 bytes.
fn append_and_fetch(backend: &Backend) -> Result<Metrics> {
    let geometry = Geometry::new(Placement::Single, 64, 2 * FAR_PAGE + 1);
    let memory = Buffer::new(&backend.memory, geometry.span())?;
    let cache = Cache::over(backend, geometry, memory, true)?;
    let slots: Vec<i64> = [5, FAR_PAGE * 64 + 1, 2 * FAR_PAGE * 64 + 63].map(|slot| slot as i64).to_vec();
    let rows: Vec<_> = (0..slots.len()).map(|row| samples::row(Float::F32, row)).collect();
    let bytes = |part: fn(&Numbers) -> &[f32]| -> Vec<u8> {
        rows.iter().flat_map(|row| samples::encode(Float::F32, part(row))).collect()
    };
    let content = backend.buffer(&bytes(|row| &row.0))?;
    let rope = backend.buffer(&bytes(|row| &row.1))?;
    let slot_buffer = backend.buffer(bytes_of(&slots))?;
    let mut p = init!(snapmla_k_append_params);
    (p.dtype, p.num_tokens) = (Float::F32.code(), slots.len() as i64);
    (p.content, p.rope, p.slots) = (content.at::<c_void>(0), rope.at::<c_void>(0), slot_buffer.at(0));
    // SAFETY: three packed rows each.
    unsafe { backend.k_append(&cache, &p, &backend.stream)? };
    let out = Buffer::filled(&backend.memory, slots.len() * CONTENT * 4, 0xFF)?;
    let mut p = init!(snapmla_fetch_params);
    (p.dtype, p.num_tokens) = (Float::F32.code(), slots.len() as i64);
    (p.slots, p.content) = (slot_buffer.at(0), out.at::<c_void>(0));
    // SAFETY: as above.
    unsafe { backend.fetch(&cache, &p, &backend.stream)? };
    backend.stream.wait()?;
    let numbers = |(content, rope): &Numbers| {
        let record = Record::quantise(content, rope);
        record.content.map(|x| crate::bits::E4M3[x as usize] * record.scale)
    };
    let want: Vec<u8> = rows.iter().flat_map(numbers).flat_map(f32::to_le_bytes).collect();
    first_difference("what was fetched", &out.download()?, &want, |byte| format!("record {}", byte / 2048))?;
    for (&slot, (content, rope)) in slots.iter().zip(&rows) {
        let mut page = vec![0; geometry.page_bytes()];
        cache.memory.download_into(geometry.page(0, slot as usize / 64), &mut page)?;
        if crate::record::read(&page, 64, slot as usize % 64) != Record::quantise(content, rope) {
            return Err(format!("slot {slot} does not hold what was appended"));
        }
    }
    Ok(Metrics::none())
}
