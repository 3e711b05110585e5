//! What a server keeps beside the library: sequences, a page allocator, block tables.

use half::bf16;

use crate::api::{Cache, Decode, DecodeLimits, Queries};
use crate::engine::Engine;
use crate::failure::{Failure, Result};
use crate::layer::{CONTENT, ROPE, Rows};
use crate::memory::{Buffer, Element};
use crate::rng::Rng;

pub const PAGE_SIZE: usize = 64;

pub struct Sequence {
    /// Token t of the sequence is token `first + t` of the text that all sequences are cut from.
    first: usize,
    pub len: usize,
    pages: Vec<i32>,
}

/// Sequences decoding side by side, one layer.
pub struct Session<'e> {
    engine: &'e Engine,
    pub cache: Cache,
    /// What the model would have computed for each token of the text, in BF16.
    content: Vec<bf16>,
    rope: Vec<bf16>,
    pub sequences: Vec<Sequence>,
    free_pages: Vec<i32>,
    max_pages: usize,
    seq_lens: Buffer<i32>,
    block_table: Buffer<i32>,
    workspace: Buffer<u8>,
}

/// Bounds that the session's buffers are made for.
pub struct Limits {
    pub sequences: usize,
    pub tokens: usize,
    pub heads: usize,
    pub q_len: usize,
}

/// What a decode call wrote.
pub struct Output {
    pub out: Buffer<bf16>,
    pub lse: Buffer<f32>,
}

impl<'e> Session<'e> {
    pub fn new(engine: &'e Engine, limits: &Limits, text: &Rows, rng: &mut Rng) -> Result<Self> {
        let max_pages = limits.tokens.div_ceil(PAGE_SIZE);
        let pages = limits.sequences * max_pages;
        let cache = Cache::create(&engine.context, &engine.place, PAGE_SIZE, pages)?;
        let mut free_pages: Vec<i32> = (0..pages as i32).collect();
        rng.shuffle(&mut free_pages);
        let workspace = engine.context.workspace_size(&DecodeLimits {
            batch_invariant: false,
            batch: limits.sequences,
            q_len: limits.q_len,
            heads: limits.heads,
            seq_len: max_pages * PAGE_SIZE,
        })?;
        let text_len = text.rope.len() / ROPE;
        Ok(Self {
            engine,
            cache,
            content: text.content.iter().map(|&x| bf16::of(x)).collect(),
            rope: text.rope.iter().map(|&x| bf16::of(x)).collect(),
            sequences: (0..limits.sequences)
                .map(|_| Sequence { first: rng.below(text_len), len: 0, pages: Vec::new() })
                .collect(),
            free_pages,
            max_pages,
            seq_lens: engine.place.buffer(limits.sequences)?,
            block_table: engine.place.upload(&vec![0; limits.sequences * max_pages])?,
            workspace: engine.place.buffer(workspace as usize)?,
        })
    }

    /// Appends `counts[b]` tokens to sequence b, all in one call. Gives the seconds that the call took.
    pub fn append(&mut self, counts: &[usize]) -> Result<f64> {
        let text_len = self.rope.len() / ROPE;
        let total: usize = counts.iter().sum();
        let (mut content, mut rope) = (Vec::with_capacity(total * CONTENT), Vec::with_capacity(total * ROPE));
        let mut slots = Vec::with_capacity(total);
        for (b, &count) in counts.iter().enumerate() {
            for _ in 0..count {
                slots.push(self.next_slot(b)?);
                let sequence = &mut self.sequences[b];
                let token = (sequence.first + sequence.len) % text_len;
                content.extend_from_slice(&self.content[token * CONTENT..][..CONTENT]);
                rope.extend_from_slice(&self.rope[token * ROPE..][..ROPE]);
                sequence.len += 1;
            }
        }
        let place = &self.engine.place;
        let (content, rope, slots) = (place.upload(&content)?, place.upload(&rope)?, place.upload(&slots)?);
        let seconds = place.time(|| self.cache.append(content.all().into(), rope.all().into(), slots.all()))?;
        let seq_lens: Vec<i32> = self.sequences.iter().map(|sequence| sequence.len as i32).collect();
        self.seq_lens.write(0, &seq_lens)?;
        Ok(seconds)
    }

    /// The slot of sequence `b`'s next token; takes a free page when the last one is full.
    fn next_slot(&mut self, b: usize) -> Result<i64> {
        let sequence = &mut self.sequences[b];
        if sequence.len == sequence.pages.len() * PAGE_SIZE {
            let page = self.free_pages.pop().ok_or_else(|| Failure::new("the cache has no free page"))?;
            if sequence.pages.len() == self.max_pages {
                return Err(Failure::new(format!("sequence {b} is longer than {} pages", self.max_pages)));
            }
            self.block_table.write(b * self.max_pages + sequence.pages.len(), &[page])?;
            sequence.pages.push(page);
        }
        let page = sequence.pages[sequence.len / PAGE_SIZE] as i64;
        Ok(page * PAGE_SIZE as i64 + (sequence.len % PAGE_SIZE) as i64)
    }

    pub fn output(&self, q_len: usize, heads: usize) -> Result<Output> {
        let rows = self.sequences.len() * q_len * heads;
        let poison = vec![f32::NAN; rows];
        let out = self.engine.place.upload(&vec![bf16::NAN; rows * CONTENT])?;
        Ok(Output { out, lse: self.engine.place.upload(&poison)? })
    }

    /// Attention of the last `q_len` tokens of every sequence, causal among them.
    pub fn decode(&self, queries: Queries, q_len: usize, heads: usize, scale: f32, output: &Output) -> Result<()> {
        self.cache.decode(&Decode {
            causal: true,
            batch_invariant: false,
            batch: self.sequences.len(),
            q_len,
            heads,
            softmax_scale: scale,
            queries,
            seq_lens: self.seq_lens.all(),
            block_table: self.block_table.all(),
            max_pages: self.max_pages,
            max_seq_len: 0,
            out: output.out.all().into(),
            lse: output.lse.all(),
            workspace: &self.workspace,
        })
    }

    /// The tokens of sequence `b` as the model computed them.
    pub fn original(&self, b: usize) -> Rows {
        let text_len = self.rope.len() / ROPE;
        let mut rows = Rows::default();
        for t in 0..self.sequences[b].len {
            let token = (self.sequences[b].first + t) % text_len;
            rows.content.extend(self.content[token * CONTENT..][..CONTENT].iter().map(|x| x.to_f32()));
            rows.rope.extend(self.rope[token * ROPE..][..ROPE].iter().map(|x| x.to_f32()));
        }
        rows
    }

    /// The first `tokens` of sequence `b` as the cache gives them back.
    pub fn fetched(&self, b: usize, tokens: usize) -> Result<Rows> {
        let place = &self.engine.place;
        let content: Buffer<f32> = place.buffer(tokens * CONTENT)?;
        let rope: Buffer<f32> = place.buffer(tokens * ROPE)?;
        let pages = self.block_table.slice(b * self.max_pages..(b + 1) * self.max_pages);
        self.cache.fetch_prefix(pages, tokens, content.all().into(), rope.all().into())?;
        Ok(Rows { content: content.read(0..content.len())?, rope: rope.read(0..rope.len())? })
    }
}
