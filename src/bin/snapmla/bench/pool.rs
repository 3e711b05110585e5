//! A cache full of plausible tokens, and random page tables over it.

use half::bf16;

use crate::api::Cache;
use crate::engine::Engine;
use crate::failure::{Failure, Result};
use crate::layer::{Layer, RECORD_BYTES, SOFTMAX_SCALE};
use crate::memory::{Buffer, Element};
use crate::rng::Rng;

/// Tokens drawn; the pool repeats them.
const TEXT: usize = 16_384;
const SEED: u64 = 1;

pub struct Pool {
    pub cache: Cache,
    /// The drawn tokens, [TEXT][512] and [TEXT][64].
    pub content: Buffer<bf16>,
    pub rope: Buffer<bf16>,
}

impl Pool {
    /// At least `bytes` and `tokens`.
    pub fn fill(engine: &Engine, page_size: usize, bytes: usize, tokens: usize) -> Result<Self> {
        if page_size == 0 {
            return Err(Failure::new("page_size 0 is less than 8"));
        }
        let pages = bytes.div_ceil(RECORD_BYTES).max(tokens).div_ceil(page_size);
        let text = Layer::new(SEED, 1, SOFTMAX_SCALE).tokens(TEXT);
        let narrow = |values: &[f32]| values.iter().map(|&x| bf16::of(x)).collect::<Vec<_>>();
        let content = engine.place.upload(&narrow(&text.content))?;
        let rope = engine.place.upload(&narrow(&text.rope))?;
        let cache = Cache::create(&engine.context, &engine.place, page_size, pages)?;
        let slots = pages * page_size;
        for first in (0..slots).step_by(TEXT) {
            let count = TEXT.min(slots - first);
            let chunk: Vec<i64> = (first as i64..(first + count) as i64).collect();
            let chunk = engine.place.upload(&chunk)?;
            cache.append(
                content.slice(0..count * crate::layer::CONTENT).into(),
                rope.slice(0..count * crate::layer::ROPE).into(),
                chunk.all(),
            )?;
            // The chunk is freed at the end of this round.
            engine.place.synchronize()?;
        }
        Ok(Self { cache, content, rope })
    }

    /// `tables` lists of `count` pages, each without repetition; one list goes on where the last one ended.
    pub fn random_pages(&self, tables: usize, count: usize) -> Vec<i32> {
        let mut order: Vec<i32> = (0..self.cache.pages as i32).collect();
        let mut rng = Rng::new(SEED, 4, count as u64);
        let mut next = order.len();
        let mut pages = Vec::with_capacity(tables * count);
        for _ in 0..tables {
            if next + count > order.len() {
                rng.shuffle(&mut order);
                next = 0;
            }
            pages.extend(&order[next..next + count]);
            next += count;
        }
        pages
    }
}
