//! One described decode call: what to try, and everything needed to try it.

mod cache;
mod loaded;
mod queries;

pub use cache::{Geometry, Image, NO_PAGE, Pages, Placement, numbers_of_token};
pub use loaded::{Answers, Loaded, Room};
pub use queries::{QueryForm, Questions, numbers_of_query};

use crate::bits::Float;
use crate::data::{self, Fill};
use crate::prng::Rng;
use crate::strides::{Dims, Row, Style};
use crate::tolerance::Gate;

/// Query tokens of each sequence.
#[derive(Debug, Clone)]
pub enum QLens {
    Uniform(usize),
    Ragged(Vec<usize>),
}

/// A decode call, described. Start from [`Case::new`] and change what the case is about.
#[derive(Clone)]
pub struct Case {
    pub seed: u64,
    pub page_size: usize,
    pub placement: Placement,
    pub pages: Pages,
    pub layer: usize,
    pub heads: usize,
    pub q_lens: QLens,
    /// As the caller says them, cut or not.
    pub seq_lens: Vec<i32>,
    pub causal: bool,
    pub batch_invariant: bool,
    pub softmax_scale: f32,
    pub query_form: QueryForm,
    /// Element type of raw queries; what quantised ones were before.
    pub query_element: Float,
    pub query_style: Style,
    /// Raw queries only: content and rope of a row in one row of 576.
    pub fused_rows: bool,
    pub out: Float,
    pub out_style: Style,
    pub lse_style: Style,
    pub want_lse: bool,
    /// 0: not said.
    pub max_seq_len: u32,
    /// Columns of the block table; `None`: two more than the longest sequence needs.
    pub max_pages: Option<usize>,
    pub tokens: Fill,
    pub queries: Fill,
    pub gate: Gate,
    /// How much of the call to check, as rows times tokens.
    pub budget: usize,
}

impl Case {
    pub fn new(seq_lens: &[usize]) -> Self {
        Self {
            seed: 1,
            page_size: 64,
            placement: Placement::Single,
            pages: Pages::Private,
            layer: 0,
            heads: 16,
            q_lens: QLens::Uniform(1),
            seq_lens: seq_lens.iter().map(|&len| len as i32).collect(),
            causal: false,
            batch_invariant: false,
            softmax_scale: data::SCALE,
            query_form: QueryForm::Raw,
            query_element: Float::Bf16,
            query_style: Style::Packed,
            fused_rows: false,
            out: Float::Bf16,
            out_style: Style::Packed,
            lse_style: Style::Packed,
            want_lse: true,
            max_seq_len: 0,
            max_pages: None,
            tokens: data::mixed(),
            queries: data::queries(),
            gate: Gate::Mixed,
            budget: 1 << 20,
        }
    }

    pub fn batch(&self) -> usize {
        self.seq_lens.len()
    }

    pub fn q_len(&self, sequence: usize) -> usize {
        match &self.q_lens {
            QLens::Uniform(q_len) => *q_len,
            QLens::Ragged(q_lens) => q_lens[sequence],
        }
    }

    pub fn longest_q_len(&self) -> usize {
        (0..self.batch()).map(|b| self.q_len(b)).max().unwrap_or(1).max(1)
    }

    pub fn dims(&self) -> Dims {
        let q_len = match self.q_lens {
            QLens::Uniform(q_len) => Some(q_len),
            QLens::Ragged(_) => None,
        };
        let tokens = (0..self.batch()).map(|b| self.q_len(b)).sum();
        Dims { batch: self.batch(), q_len, tokens, heads: self.heads }
    }

    /// Prefix sums of the query lengths.
    pub fn cu_q_lens(&self) -> Vec<i32> {
        let mut sums = vec![0];
        for b in 0..self.batch() {
            sums.push(sums[b] + self.q_len(b) as i32);
        }
        sums
    }

    pub fn columns(&self) -> usize {
        let longest = self.seq_lens.iter().copied().max().unwrap_or(0).max(0) as usize;
        self.max_pages.unwrap_or_else(|| longest.div_ceil(self.page_size) + 2)
    }

    /// Cached tokens of a sequence that count: cut at `max_seq_len` and at the table's end.
    pub fn tokens_of(&self, sequence: usize) -> usize {
        let said = self.seq_lens[sequence].max(0) as usize;
        let table = self.max_pages.map_or(usize::MAX, |pages| pages * self.page_size);
        let bound = if self.max_seq_len == 0 { usize::MAX } else { self.max_seq_len as usize };
        said.min(table).min(bound)
    }

    /// How many of its first tokens a query token attends.
    pub fn keys(&self, sequence: usize, query: usize) -> usize {
        let all = self.tokens_of(sequence);
        if self.causal { (all + query + 1).saturating_sub(self.q_len(sequence)) } else { all }
    }

    pub fn rows(&self) -> Vec<Row> {
        let cu = self.cu_q_lens();
        let mut rows = Vec::new();
        for (sequence, first) in cu.into_iter().enumerate().take(self.batch()) {
            for query in 0..self.q_len(sequence) {
                let token = first as usize + query;
                rows.extend((0..self.heads).map(|head| Row { sequence, query, token, head }));
            }
        }
        rows
    }

    /// The rows to check: all of them, or a drawn part that fits the budget, with the corners of the call first.
    pub fn rows_to_check(&self) -> Vec<Row> {
        let mut rows = self.rows();
        let cost = |row: &Row| self.keys(row.sequence, row.query) + 16;
        if rows.iter().map(cost).sum::<usize>() <= self.budget {
            return rows;
        }
        Rng::new(self.seed).shuffle(&mut rows);
        let (last_token, last_head) = (self.dims().tokens - 1, self.heads - 1);
        let corner = |row: &Row| [0, last_token].contains(&row.token) && [0, last_head].contains(&row.head);
        rows.sort_by_key(|row| !corner(row));
        let mut left = self.budget;
        let mut count = 0;
        while count < rows.len() && left >= cost(&rows[count]) {
            left -= cost(&rows[count]);
            count += 1;
        }
        rows.truncate(count.max(4));
        rows
    }
}
