//! Decode at one shape.

use half::bf16;
use serde::Serialize;

use super::clock::{Method, Timing};
use super::pool::Pool;
use super::shapes::Shape;
use crate::api::{Decode, DecodeLimits, Queries};
use crate::engine::Engine;
use crate::failure::Result;
use crate::layer::{CONTENT, Layer, RECORD_BYTES, ROPE, SOFTMAX_SCALE};
use crate::memory::{Buffer, Element};

/// What the machine can do at most: bytes and operations a second. None: not a bound.
#[derive(Serialize, Clone, Copy)]
pub struct Ceilings {
    pub read: f64,
    pub fp8: Option<f64>,
    pub bf16: Option<f64>,
}

#[derive(Serialize)]
pub struct Line {
    #[serde(flatten)]
    pub shape: Shape,
    #[serde(flatten)]
    pub timing: Timing,
    pub tflops: f64,
    pub bytes_per_s: f64,
    /// Seconds that the ceilings allow at best.
    pub floor: f64,
    /// Floor / median.
    pub share_of_floor: f64,
}

/// Measured on an H200.
pub const H200: Ceilings = Ceilings { read: 4.53e12, fp8: Some(1459e12), bf16: Some(788e12) };

/// Operations of a shape, whatever the precision.
pub fn flops(shape: &Shape) -> f64 {
    2.0 * shape.tokens() as f64 * (shape.heads * shape.q_len) as f64 * (2 * CONTENT + ROPE) as f64
}

impl Ceilings {
    pub fn floor(&self, shape: &Shape) -> f64 {
        let bytes = (shape.tokens() * RECORD_BYTES) as f64 / self.read;
        let per_dim = 2.0 * shape.tokens() as f64 * (shape.heads * shape.q_len) as f64;
        let content = self.fp8.map_or(0.0, |rate| per_dim * (2 * CONTENT) as f64 / rate);
        let rope = self.bf16.map_or(0.0, |rate| per_dim * ROPE as f64 / rate);
        bytes.max(content + rope)
    }
}

pub fn measure(
    engine: &Engine,
    pool: &Pool,
    method: &Method,
    shape: &Shape,
    batch_invariant: bool,
    ceilings: &Ceilings,
) -> Result<Line> {
    let lengths = vec![shape.length; shape.batch];
    let timing = time(engine, pool, method, &lengths, (shape.heads, shape.q_len), batch_invariant)?;
    let floor = ceilings.floor(shape);
    Ok(Line {
        shape: *shape,
        timing,
        tflops: flops(shape) / timing.median * 1e-12,
        bytes_per_s: (shape.tokens() * RECORD_BYTES) as f64 / timing.median,
        floor,
        share_of_floor: floor / timing.median,
    })
}

/// A call over sequences of these lengths.
pub fn time(
    engine: &Engine,
    pool: &Pool,
    method: &Method,
    lengths: &[usize],
    (heads, q_len): (usize, usize),
    batch_invariant: bool,
) -> Result<Timing> {
    let place = &engine.place;
    let (page_size, batch) = (pool.cache.page_size, lengths.len());
    let pages: Vec<usize> = lengths.iter().map(|length| length.div_ceil(page_size)).collect();
    let max_pages = pages.iter().copied().max().unwrap_or(0);
    let table_len = batch * max_pages;
    let drawn = pool.random_pages(method.calls, pages.iter().sum());
    let mut drawn = drawn.iter();
    // No page of the pool lies past a sequence's end.
    let mut tables = vec![-1; method.calls * table_len];
    for (row, &count) in tables.chunks_exact_mut(max_pages).zip(pages.iter().cycle()) {
        row.iter_mut().take(count).zip(&mut drawn).for_each(|(entry, &page)| *entry = page);
    }
    let tables = place.upload(&tables)?;
    let seq_lens: Vec<i32> = lengths.iter().map(|&length| length as i32).collect();
    let seq_lens = place.upload(&seq_lens)?;
    let rows = Layer::new(2, heads, SOFTMAX_SCALE).queries(0, batch * q_len);
    let narrow = |values: &[f32]| values.iter().map(|&x| bf16::of(x)).collect::<Vec<_>>();
    let (content, rope) = (place.upload(&narrow(&rows.content))?, place.upload(&narrow(&rows.rope))?);
    let rows = batch * q_len * heads;
    let out: Buffer<bf16> = place.buffer(rows * CONTENT)?;
    let lse: Buffer<f32> = place.buffer(rows)?;
    let workspace = engine.context.workspace_size(&DecodeLimits {
        batch_invariant,
        batch,
        q_len,
        heads,
        seq_len: max_pages * page_size,
    })?;
    let workspace = place.buffer(workspace as usize)?;
    method.measure(place, |call| {
        pool.cache.decode(&Decode {
            causal: q_len > 1,
            batch_invariant,
            batch,
            q_len,
            heads,
            softmax_scale: SOFTMAX_SCALE,
            queries: Queries::Raw { content: content.all().into(), rope: rope.all().into() },
            seq_lens: seq_lens.all(),
            block_table: tables.slice(call * table_len..(call + 1) * table_len),
            max_pages,
            max_seq_len: 0,
            out: out.all().into(),
            lse: lse.all(),
            workspace: &workspace,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_of_an_h200() {
        let floor = |heads| H200.floor(&Shape { batch: 32, length: 65_536, heads, q_len: 1 }) * 1e6;
        assert_eq!((floor(16).round(), floor(128).round()), (298.0, 420.0));
    }
}
