//! Decode calls and the attention that they must give: a loop over tokens in double precision.

use super::fixture::*;
use crate::cpu::Cpu;
use crate::error::Result;
use crate::layout::{CONTENT_DIM, ROPE_DIM};
use crate::request::*;

/// Block-table entry that nothing may follow.
const GARBAGE: i32 = 2_147_480_000;

/// A decode call with everything it points to.
pub struct Case {
    pub cache: Cache,
    pub layer: usize,
    pub causal: bool,
    pub heads: usize,
    pub q_lens: Vec<usize>,
    pub ragged: bool,
    pub softmax_scale: f32,
    /// None for quantised queries.
    pub q_dtype: Option<Dtype>,
    pub out_dtype: Dtype,
    /// Content and rope of every query row, by sequence, query token and head, as the tensors hold them.
    pub queries: Vec<(Vec<f32>, Vec<f32>)>,
    pub seq_lens: Vec<i32>,
    pub max_seq_len: u32,
    pub max_pages: usize,
    pub table: Vec<i32>,
    /// Lists of slots, [sequences][max_seq_len], to hand over in place of the table.
    pub slots: Option<Vec<i64>>,
    /// Bytes between the rows of every tensor.
    pub padding: usize,
}

/// What a decode call wrote, by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Attention {
    pub out: Vec<Vec<f64>>,
    pub lse: Vec<f64>,
}

#[derive(Debug, Clone)]
pub struct Shape {
    pub page_size: usize,
    pub heads: usize,
    pub q_lens: Vec<usize>,
    pub seq_lens: Vec<i32>,
    pub causal: bool,
    pub ragged: bool,
    pub q_dtype: Option<Dtype>,
    pub out_dtype: Dtype,
}

impl Shape {
    pub fn uniform(page_size: usize, heads: usize, q_len: usize, seq_lens: &[i32]) -> Self {
        Self {
            page_size,
            heads,
            q_lens: vec![q_len; seq_lens.len()],
            seq_lens: seq_lens.to_vec(),
            causal: false,
            ragged: false,
            q_dtype: Some(Dtype::F32),
            out_dtype: Dtype::F32,
        }
    }
}

impl Case {
    /// Random queries and tokens; every page that no sequence needs, and every token past an end, is poisoned.
    pub fn random(shape: &Shape, seed: u64) -> Self {
        let mut tokens = Random(seed);
        Self::new(shape, seed, |_, _| Record::random(&mut tokens))
    }

    /// As `random`, with the tokens (by sequence and position) from `token`.
    pub fn new(shape: &Shape, seed: u64, mut token: impl FnMut(usize, usize) -> Record) -> Self {
        let Shape { page_size, heads, q_lens, seq_lens, .. } = shape.clone();
        let mut random = Random(seed ^ 0xABCD);
        let columns = |len: i32| (len.max(0) as usize).div_ceil(page_size);
        let max_pages = seq_lens.iter().map(|&len| columns(len)).max().unwrap_or(0) + 2;
        let num_pages = seq_lens.iter().map(|&len| columns(len)).sum::<usize>() + 3;
        let mut cache = Cache::poisoned(page_size, num_pages, 2);
        let mut free: Vec<i32> = (0..num_pages as i32).collect();
        let mut table = vec![GARBAGE; max_pages * seq_lens.len()];
        for (sequence, &len) in seq_lens.iter().enumerate() {
            for column in 0..columns(len) {
                let page = free.swap_remove(random.below(free.len()));
                table[sequence * max_pages + column] = page;
                for offset in 0..page_size.min(len as usize - column * page_size) {
                    let record = token(sequence, column * page_size + offset);
                    cache.put(1, page as usize * page_size + offset, &record);
                }
            }
        }
        let rows = q_lens.iter().sum::<usize>() * heads;
        let dtype = shape.q_dtype.unwrap_or(Dtype::F32);
        let mut query = |n: usize| from_bytes(dtype, &to_bytes(dtype, &random.normals(n)));
        Self {
            cache,
            layer: 1,
            causal: shape.causal,
            heads,
            ragged: shape.ragged,
            softmax_scale: 0.1,
            q_dtype: shape.q_dtype,
            out_dtype: shape.out_dtype,
            queries: (0..rows).map(|_| (query(CONTENT_DIM), query(ROPE_DIM))).collect(),
            max_seq_len: (max_pages * page_size) as u32,
            q_lens,
            seq_lens,
            max_pages,
            table,
            slots: None,
            padding: 16,
        }
    }

    /// The slot of a token.
    pub fn slot(&self, sequence: usize, token: usize) -> usize {
        if let Some(slots) = &self.slots {
            return slots[sequence * self.max_seq_len as usize + token] as usize;
        }
        let page_size = self.cache.view.page_size;
        self.table[sequence * self.max_pages + token / page_size] as usize * page_size + token % page_size
    }

    pub fn len(&self, sequence: usize) -> usize {
        (self.seq_lens[sequence].max(0) as usize).min(self.max_seq_len as usize)
    }

    /// Rows as (sequence, query token, head).
    pub fn rows(&self) -> Vec<(usize, usize, usize)> {
        let queries = self.q_lens.iter().enumerate().flat_map(|(b, &q_len)| (0..q_len).map(move |i| (b, i)));
        queries.flat_map(|(b, i)| (0..self.heads).map(move |h| (b, i, h))).collect()
    }

    pub fn attended(&self, sequence: usize, query: usize) -> usize {
        match self.causal {
            true => (self.len(sequence) + query + 1).saturating_sub(self.q_lens[sequence]),
            false => self.len(sequence),
        }
    }

    /// By the definition, on the quantised numbers, with exact probabilities.
    pub fn reference(&self) -> Attention {
        let mut attention = Attention { out: Vec::new(), lse: Vec::new() };
        let mut tokens: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
        let mut tokens_of = usize::MAX;
        for (row, (sequence, query, _)) in self.rows().into_iter().enumerate() {
            if tokens_of != sequence {
                let token = |t| {
                    let record = self.cache.record(self.layer, self.slot(sequence, t));
                    let wide = |v: Vec<f32>| v.iter().map(|&v| f64::from(v) * f64::from(record.scale())).collect();
                    (wide(record.content_times(1.0)), wide(record.rope_times(1.0)))
                };
                tokens = (0..self.len(sequence)).map(token).collect();
                tokens_of = sequence;
            }
            let tokens = &tokens[..self.attended(sequence, query)];
            let (content, rope) = &self.queries[row];
            let q = Record::quantised(content, rope);
            let (content, rope) = (q.content_times(1.0), q.rope_times(1.0));
            let dot = |a: &[f32], b: &[f64]| a.iter().zip(b).map(|(&a, b)| f64::from(a) * b).sum::<f64>();
            let factor = f64::from(self.softmax_scale) * f64::from(q.scale());
            let logits: Vec<f64> = tokens.iter().map(|(c, r)| factor * (dot(&content, c) + dot(&rope, r))).collect();
            let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = logits.iter().map(|x| (x - max).exp()).collect();
            let total: f64 = weights.iter().sum();
            let mut out = vec![0.0; CONTENT_DIM];
            for (weight, (content, _)) in weights.iter().zip(tokens) {
                out.iter_mut().zip(content).for_each(|(o, c)| *o += weight / total * c);
            }
            attention.out.push(out);
            attention.lse.push(if tokens.is_empty() { f64::NEG_INFINITY } else { max + total.ln() });
        }
        attention
    }

    pub fn decode(&self, cpu: &Cpu) -> Result<Attention> {
        self.call(cpu, |request| cpu.decode(request))
    }

    /// Hands the call's request to `work`. Rows of every tensor are `padding` bytes further apart than they need be.
    pub fn call(&self, cpu: &Cpu, work: impl FnOnce(&DecodeRequest) -> Result<()>) -> Result<Attention> {
        let rows = self.rows();
        let tokens: usize = self.q_lens.iter().sum();
        let q_len = self.q_lens.iter().copied().max().unwrap_or(0);
        let mut cu_q_lens = vec![0i32];
        for &q_len in &self.q_lens {
            cu_q_lens.push(cu_q_lens[cu_q_lens.len() - 1] + q_len as i32);
        }
        let strided = |row_bytes: usize| {
            let head = (row_bytes + self.padding) as i64;
            let token = head * self.heads as i64 + self.padding as i64;
            (head, token, token * q_len as i64 + if self.ragged { 0 } else { self.padding as i64 })
        };
        // Room for every row of a tensor, uniform or ragged.
        let room = |row_bytes: usize| {
            let (_, token, batch) = strided(row_bytes);
            (token * tokens as i64 + batch * self.q_lens.len() as i64) as usize
        };
        let at = |row_bytes: usize, (sequence, query, head): (usize, usize, usize)| {
            let (head_stride, token_stride, batch_stride) = strided(row_bytes);
            let from = match self.ragged {
                true => i64::from(cu_q_lens[sequence]) * token_stride,
                false => sequence as i64 * batch_stride,
            };
            (from + query as i64 * token_stride + head as i64 * head_stride) as usize
        };
        fn batch_rows<P>(ptr: P, (head_stride, token_stride, batch_stride): (i64, i64, i64)) -> BatchRows<P> {
            BatchRows { ptr, batch_stride, token_stride, head_stride }
        }
        let put = |tensor: &mut [u8], at: usize, bytes: &[u8]| tensor[at..at + bytes.len()].copy_from_slice(bytes);

        let q_bytes = self.q_dtype.map_or((1, 2), |dtype| (dtype.bytes(), dtype.bytes()));
        let (content_row, rope_row) = (CONTENT_DIM * q_bytes.0, ROPE_DIM * q_bytes.1);
        let mut q_content = vec![0xFFu8; room(content_row)];
        let mut q_rope = vec![0xFFu8; room(rope_row)];
        let mut q_scale = vec![0xFFu8; room(4)];
        for (&row, (content, rope)) in rows.iter().zip(&self.queries) {
            match self.q_dtype {
                Some(dtype) => {
                    put(&mut q_content, at(content_row, row), &to_bytes(dtype, content));
                    put(&mut q_rope, at(rope_row, row), &to_bytes(dtype, rope));
                }
                None => {
                    let record = Record::quantised(content, rope);
                    let rope: Vec<u8> = record.rope.iter().flat_map(|r| r.to_ne_bytes()).collect();
                    put(&mut q_content, at(content_row, row), &record.content);
                    put(&mut q_rope, at(rope_row, row), &rope);
                    put(&mut q_scale, at(4, row), &record.scale.to_ne_bytes());
                }
            }
        }
        let out_row = CONTENT_DIM * self.out_dtype.bytes();
        let mut out = vec![0xFFu8; room(out_row)];
        let mut lse = vec![0xFFu8; room(4)];
        let limits = DecodeLimits {
            max_batch: self.q_lens.len() as u32,
            max_q_len: q_len as u32,
            max_heads: self.heads as u32,
            max_seq_len: self.max_seq_len.max(1),
            batch_invariant: false,
        };
        let workspace_size = cpu.decode_workspace_size(&limits);
        let mut workspace = vec![[0xFFu128; 16]; workspace_size as usize / 256 + 1];
        let from = workspace.as_mut_ptr().cast::<u8>();
        let workspace_start = from.wrapping_add(from.align_offset(256));
        let request = DecodeRequest {
            cache: self.cache.view,
            layer: self.layer,
            causal: self.causal,
            batch_invariant: false,
            batch: self.q_lens.len() as u32,
            q_len: q_len as u32,
            num_heads: self.heads as u32,
            softmax_scale: self.softmax_scale,
            queries: match self.q_dtype {
                Some(dtype) => Queries::Raw(dtype),
                None => Queries::Quantised(batch_rows(q_scale.as_ptr().cast(), strided(4))),
            },
            q_content: batch_rows(q_content.as_ptr(), strided(content_row)),
            q_rope: batch_rows(q_rope.as_ptr(), strided(rope_row)),
            cu_q_lens: if self.ragged { cu_q_lens.as_ptr() } else { std::ptr::null() },
            seq_lens: self.seq_lens.as_ptr(),
            block_table: Rows { ptr: self.table.as_ptr(), stride: self.max_pages as i64 * 4 },
            max_pages: self.max_pages as u32,
            slots: Rows {
                ptr: self.slots.as_ref().map_or(std::ptr::null(), |slots| slots.as_ptr()),
                stride: i64::from(self.max_seq_len) * 8,
            },
            max_seq_len: self.max_seq_len,
            out_dtype: self.out_dtype,
            out: batch_rows(out.as_mut_ptr(), strided(out_row)),
            lse: batch_rows(lse.as_mut_ptr().cast(), strided(4)),
            workspace: if workspace_size == 0 { std::ptr::null_mut() } else { workspace_start },
            workspace_size,
        };
        let result = work(&request);
        let get = |tensor: &mut Vec<u8>, at: usize, len: usize| {
            tensor[at..at + len].iter_mut().map(|b| std::mem::replace(b, 0xFF)).collect::<Vec<u8>>()
        };
        let mut attention = Attention { out: Vec::new(), lse: Vec::new() };
        for &row in &rows {
            let wide = |v: Vec<f32>| v.into_iter().map(f64::from).collect::<Vec<_>>();
            attention.out.push(wide(from_bytes(self.out_dtype, &get(&mut out, at(out_row, row), out_row))));
            attention.lse.push(wide(from_bytes(Dtype::F32, &get(&mut lse, at(4, row), 4)))[0]);
        }
        // Whatever no row owns is as it was.
        assert!(out.iter().chain(&lse).all(|&b| b == 0xFF));
        if result.is_err() {
            assert!(attention.lse.iter().all(|v| v.is_nan()), "written in spite of {result:?}");
        }
        result.map(|()| attention)
    }
}

impl Attention {
    /// Bits that two equal results share.
    pub fn bits(&self) -> Vec<u64> {
        self.out.iter().flatten().chain(&self.lse).map(|v| v.to_bits()).collect()
    }

    pub fn relative_l2(&self, reference: &Attention) -> f64 {
        let pairs = || self.out.iter().flatten().zip(reference.out.iter().flatten());
        let error: f64 = pairs().map(|(a, b)| (a - b).powi(2)).sum();
        let size: f64 = pairs().map(|(_, b)| b * b).sum();
        if error == 0.0 { 0.0 } else { (error / size).sqrt() }
    }

    /// Largest difference of log-sum-exps; an infinity where one is empty and the other is not.
    pub fn lse_error(&self, reference: &Attention) -> f64 {
        let differ = |(&a, &b): (&f64, &f64)| if a == b { 0.0 } else { (a - b).abs() };
        self.lse.iter().zip(&reference.lse).map(differ).fold(0.0, |m, d| if d > m || d.is_nan() { d } else { m })
    }
}
