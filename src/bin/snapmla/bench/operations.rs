//! The four cache operations, from one token to many.

use half::bf16;
use indicatif::ProgressBar;
use serde::Serialize;

use super::clock::{Method, Timing};
use super::pool::Pool;
use crate::api::QuantisedQueries;
use crate::engine::Engine;
use crate::failure::Result;
use crate::layer::{CONTENT, RECORD_BYTES, ROPE};
use crate::memory::Buffer;

pub const TOKENS: [usize; 12] = [1, 4, 16, 64, 128, 256, 1024, 4096, 8192, 16_384, 32_768, MOST_TOKENS];
pub const MOST_TOKENS: usize = 65_536;
/// The most that a call needs: records-copy reads as many as it writes, and a page is 1024 at most.
pub const POOL_TOKENS: usize = 2 * MOST_TOKENS + 2 * 1024;
/// Steps of the progress bar for each number of tokens.
pub const STEPS: usize = 6;
/// Rows of the raw buffers: calls take turns in them, so that they do not stay in a cache.
const GPU_ROWS: usize = 20 * MOST_TOKENS;
const CPU_ROWS: usize = 2 * MOST_TOKENS;

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
    /// Seconds that one plain copy of as many bytes takes, timed as the operation is: what the fixed cost of a call of
    /// this size amounts to. A median.
    pub plain_copy: f64,
}

pub fn measure(
    engine: &Engine,
    pool: &Pool,
    method: &Method,
    heads: usize,
    tokens: &[usize],
    copy_rate: f64,
    bar: &ProgressBar,
) -> Result<Vec<Line>> {
    let place = &engine.place;
    let rows = if engine.on_gpu() { GPU_ROWS } else { CPU_ROWS };
    let (mut content_buffer, mut rope_buffer): (Buffer<bf16>, Buffer<bf16>) =
        (place.buffer(rows * CONTENT)?, place.buffer(rows * ROPE)?);
    fill(&mut content_buffer, &pool.content)?;
    fill(&mut rope_buffer, &pool.rope)?;

    let copied: Buffer<bf16> = place.buffer(rows * CONTENT)?;

    let mut lines = Vec::new();
    for &tokens in tokens {
        bar.set_message(format!("{tokens} tokens"));
        let slots = place.upload(&random_slots(pool, 2 * method.calls, tokens))?;
        let slots = |call: usize| slots.slice(call * tokens..(call + 1) * tokens);
        let window = |call: usize| call * tokens % (rows - tokens + 1);
        let content =
            |call: usize| content_buffer.slice(window(call) * CONTENT..(window(call) + tokens) * CONTENT).into();
        let rope = |call: usize| rope_buffer.slice(window(call) * ROPE..(window(call) + tokens) * ROPE).into();

        // Half of the bytes are read, half written.
        let plain_copy = |bytes: usize| -> Result<f64> {
            let count = tokens * bytes / (2 * size_of::<bf16>());
            let window = |call: usize| call * count % (rows * CONTENT - count + 1);
            let range = |call: usize| window(call)..window(call) + count;
            let copy = |call| content_buffer.slice(range(call)).copy_to(&copied.slice(range(call)));
            let timing = method.measure(place, copy)?;
            bar.inc(1);
            Ok(timing.median)
        };
        let quantised = (RAW_BYTES + RECORD_BYTES, plain_copy(RAW_BYTES + RECORD_BYTES)?);
        let moved = (2 * RECORD_BYTES, plain_copy(2 * RECORD_BYTES)?);
        let mut add = |operation, (bytes, plain_copy), timing: Timing| {
            let bytes_per_s = (tokens * bytes) as f64 / timing.median;
            let share_of_copy = bytes_per_s / copy_rate;
            lines.push(Line { operation, tokens, timing, bytes_per_s, share_of_copy, plain_copy });
            bar.inc(1);
        };

        let append = |call| pool.cache.append(content(call), rope(call), slots(call));
        add("k_append", quantised, method.measure(place, append)?);
        // Reads back what other pages hold into the buffers that append took from: the same numbers, rounded.
        let fetch = |call| pool.cache.fetch_slots(slots(call), content(call), rope(call));
        add("fetch_dequant", quantised, method.measure(place, fetch)?);
        let copy = |call| pool.cache.copy_records(slots(call), slots(method.calls + call));
        add("records_copy", moved, method.measure(place, copy)?);

        // The largest power of two, so that it divides `tokens`.
        let heads = 1 << heads.min(tokens).ilog2();
        let queries = QuantisedQueries::new(place, tokens)?;
        let quantise = |call| queries.quantise(&engine.context, place, heads, content(call), rope(call));
        add("q_quant", quantised, method.measure(place, quantise)?);
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
