//! The four cache operations, from one token to many.

use half::bf16;
use indicatif::ProgressBar;
use serde::Serialize;

use super::clock::{Method, Timing};
use super::pool::Pool;
use crate::api::QuantisedQueries;
use crate::engine::Engine;
use crate::failure::Result;
use crate::layer::{CONTENT, ROPE};
use crate::memory::Buffer;

const TOKENS: [usize; 9] = [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536];
/// The most that a call needs: records-copy reads as many as it writes, and a page is 1024 at most.
pub const POOL_TOKENS: usize = 2 * 65_536 + 2 * 1024;
/// Steps of the progress bar.
pub const STEPS: usize = 4 * TOKENS.len();
/// Rows of the raw buffers: calls take turns in them, so that they do not stay in a cache.
const GPU_ROWS: usize = 20 * 65_536;
const CPU_ROWS: usize = 2 * 65_536;

const RECORD_BYTES: usize = snapmla::abi::types::SNAPMLA_RECORD_BYTES as usize;
const RAW_BYTES: usize = 2 * (CONTENT + ROPE);

#[derive(Serialize)]
pub struct Line {
    pub operation: &'static str,
    /// Tokens, or for q_quant rows of queries.
    pub tokens: usize,
    #[serde(flatten)]
    pub timing: Timing,
    /// Read and written.
    pub bytes_per_s: f64,
    pub share_of_copy: f64,
}

pub fn measure(
    engine: &Engine,
    pool: &Pool,
    method: &Method,
    heads: usize,
    copy_rate: f64,
    bar: &ProgressBar,
) -> Result<Vec<Line>> {
    let place = &engine.place;
    let rows = if engine.on_gpu() { GPU_ROWS } else { CPU_ROWS };
    let (mut content, mut rope): (Buffer<bf16>, Buffer<bf16>) =
        (place.buffer(rows * CONTENT)?, place.buffer(rows * ROPE)?);
    fill(&mut content, &pool.content)?;
    fill(&mut rope, &pool.rope)?;

    let mut lines = Vec::new();
    let mut add = |operation, tokens: usize, bytes: usize, timing: Timing| {
        let bytes_per_s = (tokens * bytes) as f64 / timing.median;
        lines.push(Line { operation, tokens, timing, bytes_per_s, share_of_copy: bytes_per_s / copy_rate });
        bar.inc(1);
    };
    for tokens in TOKENS {
        bar.set_message(format!("{tokens} tokens"));
        let slots = place.upload(&random_slots(pool, 2 * method.calls, tokens))?;
        let slots = |call: usize| slots.slice(call * tokens..(call + 1) * tokens);
        let window = |call: usize| call * tokens % (rows - tokens + 1);
        let content = |call: usize| content.slice(window(call) * CONTENT..(window(call) + tokens) * CONTENT).into();
        let rope = |call: usize| rope.slice(window(call) * ROPE..(window(call) + tokens) * ROPE).into();

        let append = |call| pool.cache.append(content(call), rope(call), slots(call));
        add("k_append", tokens, RAW_BYTES + RECORD_BYTES, method.measure(place, append)?);
        // Reads back what other pages hold into the buffers that append took from: the same numbers, rounded.
        let fetch = |call| pool.cache.fetch_slots(slots(call), content(call), rope(call));
        add("fetch_dequant", tokens, RECORD_BYTES + RAW_BYTES, method.measure(place, fetch)?);
        let copy = |call| pool.cache.copy_records(slots(call), slots(method.calls + call));
        add("records_copy", tokens, 2 * RECORD_BYTES, method.measure(place, copy)?);

        // The largest power of two, so that it divides `tokens`.
        let heads = 1 << heads.min(tokens).ilog2();
        let queries = QuantisedQueries::new(place, tokens)?;
        let quantise = |call| queries.quantise(&engine.context, place, heads, content(call), rope(call));
        add("q_quant", tokens, RAW_BYTES + RECORD_BYTES, method.measure(place, quantise)?);
    }
    lines.sort_by_key(|line| line.operation);
    Ok(lines)
}

/// `lists` lists of `count` slots in whole random pages, none twice in a pair of lists half of `lists` apart.
fn random_slots(pool: &Pool, lists: usize, count: usize) -> Vec<i64> {
    let page_size = pool.cache.page_size;
    let pages_a_list = count.div_ceil(page_size);
    // A list and the one half of `lists` further on come from one draw without repetition.
    let pairs = pool.random_pages(lists / 2, 2 * pages_a_list);
    let slots = |pages: &[i32]| -> Vec<i64> {
        (0..count).map(|i| pages[i / page_size] as i64 * page_size as i64 + (i % page_size) as i64).collect()
    };
    let halves = |half: usize| {
        pairs.chunks_exact(2 * pages_a_list).flat_map(move |pair| {
            let pages: Vec<i32> = pair[half * pages_a_list..][..pages_a_list].to_vec();
            pages
        })
    };
    let from: Vec<i32> = halves(0).chain(halves(1)).collect();
    from.chunks_exact(pages_a_list).flat_map(slots).collect()
}

/// Repeats `text` until the buffer is full.
fn fill(buffer: &mut Buffer<bf16>, text: &Buffer<bf16>) -> Result<()> {
    let text = text.read(0..text.len())?;
    for at in (0..buffer.len()).step_by(text.len()) {
        let count = text.len().min(buffer.len() - at);
        buffer.write(at, &text[..count])?;
    }
    Ok(())
}
