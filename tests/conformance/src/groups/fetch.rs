use std::ffi::c_void;

use snapmla::abi::types::snapmla_fetch_params;

use super::{Suite, samples};
use crate::backend::{Backend, Cache, init};
use crate::bits::{E4M3, Float, from_bf16};
use crate::case::{Geometry, NO_PAGE, Placement};
use crate::check::untouched;
use crate::memory::{Buffer, Result, bytes_of};
use crate::prng::Rng;
use crate::record::{self, CONTENT, ROPE, Record};
use crate::report::Metrics;

/// What to fetch, and how the output stands.
#[derive(Clone, Copy)]
struct Fetch {
    element: Float,
    geometry: Geometry,
    by_table: bool,
    padded: bool,
    content: bool,
    rope: bool,
}

pub fn run(suite: &mut Suite) {
    let placements = [Placement::Single, Placement::LayersOutside(2), Placement::LayersInside(2)];
    let mut turn = 0;
    for page_size in [8, 16, 24, 32, 64, 128, 256] {
        for placement in placements {
            for by_table in [false, true] {
                let element = Float::ALL[turn % 3];
                let padded = turn % 2 == 1;
                turn += 1;
                let geometry = Geometry::new(placement, page_size, 7);
                let how = if by_table { "table" } else { "slots" };
                let fetch = Fetch { element, geometry, by_table, padded, content: true, rope: true };
                suite.case(format!("{}-{page_size}-{placement:?}-{how}", element.name()), |b| run_one(b, fetch));
            }
        }
    }
    let geometry = Geometry::new(Placement::Single, 64, 7);
    for element in Float::ALL {
        for (content, rope) in [(true, false), (false, true)] {
            let which = if content { "content" } else { "rope" };
            for by_table in [false, true] {
                let fetch = Fetch { element, geometry, by_table, padded: false, content, rope };
                let how = if by_table { "table" } else { "slots" };
                suite.case(format!("{}-only-{which}-{how}", element.name()), |backend| run_one(backend, fetch));
            }
        }
    }
}

/// The same fetch on the backend and against the scalar code; on CUDA also against the CPU backend, where even the
/// bits of a NaN must agree.
fn run_one(backend: &Backend, fetch: Fetch) -> Result<Metrics> {
    let wanted = Wanted::new(&fetch);
    let got = wanted.run(backend)?;
    wanted.check(&got)?;
    if !backend.is_cpu() {
        let host = wanted.run(&Backend::cpu()?)?;
        for (what, got, host) in [("content", &got.0, &host.0), ("rope", &got.1, &host.1)] {
            if let Some(at) = got.iter().zip(host).position(|(a, b)| a != b) {
                return Err(format!("{what}: byte {at} is {:#04x}, {:#04x} on the CPU", got[at], host[at]));
            }
        }
    }
    Ok(Metrics::none())
}

/// A cache, what to read from it, and what must come out.
struct Wanted {
    fetch: Fetch,
    cache: Vec<u8>,
    /// The record that each output row shows; `None`: the row is not written.
    rows: Vec<Option<Record>>,
    slots: Vec<i64>,
    table: Vec<i32>,
    columns: usize,
    starts: Vec<i32>,
    cu_tokens: Vec<i32>,
}

impl Wanted {
    fn new(fetch: &Fetch) -> Self {
        let Geometry { page_size, num_pages, num_layers, .. } = fetch.geometry;
        let layer = num_layers - 1;
        let mut cache = vec![0xFF; fetch.geometry.span()];
        for slot in 0..num_pages * page_size {
            let at = fetch.geometry.page(layer, slot / page_size);
            let page = &mut cache[at..at + fetch.geometry.page_bytes()];
            record::write(page, page_size, slot % page_size, &sample(slot));
        }
        let mut wanted = Wanted {
            fetch: *fetch,
            cache,
            rows: Vec::new(),
            slots: Vec::new(),
            table: Vec::new(),
            columns: 4,
            starts: Vec::new(),
            cu_tokens: vec![0],
        };
        if fetch.by_table {
            wanted.by_table()
        } else {
            wanted.by_slots()
        }
        wanted
    }

    fn by_slots(&mut self) {
        let mut rng = Rng::new(5);
        let all = self.fetch.geometry.num_pages * self.fetch.geometry.page_size;
        for i in 0..100 {
            let slot = rng.below(all);
            self.slots.push(if i % 9 == 4 { -2 } else { slot as i64 });
            self.rows.push((i % 9 != 4).then(|| sample(slot)));
        }
    }

    /// Five sequences, one of none of whose tokens is asked for; table entries that must not be read are no pages.
    fn by_table(&mut self) {
        let page_size = self.fetch.geometry.page_size;
        let pages = [
            [3, 1, NO_PAGE, NO_PAGE],
            [NO_PAGE; 4],
            [5, 0, 6, 2],
            [NO_PAGE, 4, NO_PAGE, NO_PAGE],
            [1, 3, 5, NO_PAGE],
        ];
        self.starts = vec![0, 0, page_size as i32 / 2 + 1, page_size as i32 + 3, 1];
        let counts = [page_size + 1, 0, 3 * page_size, page_size - 4, page_size];
        for (sequence, &count) in counts.iter().enumerate() {
            let first = self.starts[sequence] as usize;
            for token in first..first + count {
                let page = pages[sequence][token / page_size] as usize;
                self.rows.push(Some(sample(page * page_size + token % page_size)));
            }
            self.cu_tokens.push(self.rows.len() as i32);
        }
        self.table = pages.concat();
        // Rows past cu_tokens[batch] are not written.
        self.rows.extend([const { None }; 3]);
    }

    /// Base and stride of an output of `dims` numbers a row.
    fn place(&self, dims: usize) -> (usize, usize) {
        let e = self.fetch.element.bytes();
        if self.fetch.padded { (e, (dims + 5) * e) } else { (0, dims * e) }
    }

    fn extent(&self, dims: usize) -> usize {
        let (base, stride) = self.place(dims);
        base + (self.rows.len() - 1) * stride + dims * self.fetch.element.bytes()
    }

    fn run(&self, backend: &Backend) -> Result<(Vec<u8>, Vec<u8>)> {
        let fetch = &self.fetch;
        let cache = Cache::over(backend, fetch.geometry, backend.buffer(&self.cache)?, true)?;
        let content = Buffer::filled(&backend.memory, self.extent(CONTENT), 0xFF)?;
        let rope = Buffer::filled(&backend.memory, self.extent(ROPE), 0xFF)?;
        let (slots, table) = (backend.buffer(bytes_of(&self.slots))?, backend.buffer(bytes_of(&self.table))?);
        let starts = backend.buffer(bytes_of(&self.starts))?;
        let cu_tokens = backend.buffer(bytes_of(&self.cu_tokens))?;
        let mut p = init!(snapmla_fetch_params);
        (p.layer, p.dtype) = (fetch.geometry.num_layers as i32 - 1, fetch.element.code());
        p.num_tokens = self.rows.len() as i64;
        if fetch.by_table {
            (p.block_table, p.max_pages, p.batch) = (table.at(0), self.columns as u32, self.starts.len() as u32);
            (p.starts, p.cu_tokens) = (starts.at(0), cu_tokens.at(0));
        } else {
            p.slots = slots.at(0);
        }
        if fetch.content {
            p.content = content.at::<c_void>(self.place(CONTENT).0);
        }
        if fetch.rope {
            p.rope = rope.at::<c_void>(self.place(ROPE).0);
        }
        if fetch.padded {
            (p.content_stride, p.rope_stride) = (self.place(CONTENT).1 as i64, self.place(ROPE).1 as i64);
        }
        // SAFETY: the buffers are as large as the strides say.
        unsafe { backend.fetch(&cache, &p, &backend.stream)? };
        backend.stream.wait()?;
        Ok((content.download()?, rope.download()?))
    }

    fn check(&self, (content, rope): &(Vec<u8>, Vec<u8>)) -> Result<()> {
        let numbers = |record: &Record| record.content.map(|x| E4M3[x as usize] * record.scale).to_vec();
        self.check_part("content", content, CONTENT, self.fetch.content, numbers)?;
        let numbers = |record: &Record| record.rope.map(|x| from_bf16(x) * record.scale).to_vec();
        self.check_part("rope", rope, ROPE, self.fetch.rope, numbers)
    }

    fn check_part(
        &self,
        what: &str,
        got: &[u8],
        dims: usize,
        asked: bool,
        numbers: impl Fn(&Record) -> Vec<f32>,
    ) -> Result<()> {
        let (element, e) = (self.fetch.element, self.fetch.element.bytes());
        let (base, stride) = self.place(dims);
        let written = |row: &usize| asked && self.rows[*row].is_some();
        let range = |row: usize| base + row * stride..base + row * stride + dims * e;
        untouched(what, got, 0xFF, (0..self.rows.len()).filter(written).map(range))?;
        for (row, record) in self.rows.iter().enumerate().filter(|_| asked) {
            let Some(record) = record else { continue };
            for (dim, x) in numbers(record).into_iter().enumerate() {
                let at = base + row * stride + dim * e;
                let mut want = [0; 4];
                element.put(x, &mut want);
                let got = &got[at..at + e];
                let same = got == &want[..e] || (x.is_nan() && element.get(got).is_nan());
                if !same {
                    let (got, want) = (element.get(got), element.get(&want));
                    return Err(format!("{what}[{row}][{dim}] is {got:e}, not {want:e}"));
                }
            }
        }
        Ok(())
    }
}

/// What slot `slot` holds: mostly tricky rows as they are quantised, now and then every byte there is.
fn sample(slot: usize) -> Record {
    if slot % 11 == 5 {
        let mut rng = Rng::of(6, slot as u64, 0);
        return Record {
            content: std::array::from_fn(|i| (i + slot) as u8),
            rope: std::array::from_fn(|_| rng.bits() as u16),
            scale: rng.bell().abs() * 0.1,
        };
    }
    let (content, rope) = samples::row(Float::F32, slot);
    Record::quantise(&content, &rope)
}
