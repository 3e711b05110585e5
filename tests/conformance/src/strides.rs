//! Where the rows of a tensor [tokens][heads][row] stand, in every arrangement that an engine might have.

/// The rows of one decode call.
#[derive(Debug, Clone)]
pub struct Dims {
    pub batch: usize,
    /// Query tokens a sequence in a uniform batch; `None` in a ragged one.
    pub q_len: Option<usize>,
    /// Query tokens in all.
    pub tokens: usize,
    pub heads: usize,
}

/// One row: query token `query` of sequence `sequence`, which is token `token` of the call, and a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub sequence: usize,
    pub query: usize,
    pub token: usize,
    pub head: usize,
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "sequence {}, query {}, head {}", self.sequence, self.query, self.head)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// [tokens][heads], strides passed as 0.
    Packed,
    /// [tokens][heads] with gaps everywhere, the base one element (or one alignment unit) past the allocation's.
    Padded,
    /// [batch][heads][queries]; [heads][tokens] in a ragged batch.
    HeadMajor,
    /// [heads][tokens] over the whole call.
    Transposed,
}

impl Style {
    pub const ALL: [Style; 4] = [Style::Packed, Style::Padded, Style::HeadMajor, Style::Transposed];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strides {
    pub base: usize,
    pub batch: i64,
    pub token: i64,
    pub head: i64,
    row_bytes: usize,
    ragged: bool,
    packed: bool,
}

impl Strides {
    /// `unit`: what every address must be a multiple of.
    pub fn new(style: Style, dims: &Dims, row_bytes: usize, unit: usize) -> Self {
        let row = row_bytes as i64;
        let (heads, tokens) = (dims.heads as i64, dims.tokens as i64);
        let queries = dims.q_len.map_or(tokens, |q| q as i64);
        let unit = unit as i64;
        let (base, batch, token, head) = match style {
            Style::Packed => (0, queries * heads * row, heads * row, row),
            Style::Padded => {
                let head = row + 3 * unit;
                let token = heads * head + 5 * unit;
                (unit, queries * token + 7 * unit, token, head)
            }
            Style::HeadMajor => (0, heads * queries * row, row, queries * row),
            Style::Transposed => (0, queries * row, row, tokens * row),
        };
        let packed = style == Style::Packed;
        Self { base: base as usize, batch, token, head, row_bytes, ragged: dims.q_len.is_none(), packed }
    }

    /// The same rows, `offset` bytes further inside rows of their own (rope behind content).
    pub fn shifted(self, offset: usize, row_bytes: usize) -> Self {
        Self { base: self.base + offset, row_bytes, packed: false, ..self }
    }

    /// Strides passed in so many words, never 0.
    pub fn explicit(self) -> Self {
        Self { packed: false, ..self }
    }

    /// Where a row begins.
    pub fn offset(&self, row: Row) -> usize {
        let across = if self.ragged {
            row.token as i64 * self.token
        } else {
            row.sequence as i64 * self.batch + row.query as i64 * self.token
        };
        self.base + (across + row.head as i64 * self.head) as usize
    }

    pub fn range(&self, row: Row) -> std::ops::Range<usize> {
        let start = self.offset(row);
        start..start + self.row_bytes
    }

    /// Bytes from the allocation's start to the last row's end.
    pub fn extent(&self, dims: &Dims) -> usize {
        if dims.tokens == 0 {
            return self.base;
        }
        let last = Row {
            sequence: dims.batch - 1,
            query: dims.q_len.map_or(0, |q| q - 1),
            token: dims.tokens - 1,
            head: dims.heads - 1,
        };
        self.range(last).end
    }

    /// Batch, token and head stride as the caller passes them: 0 where packed.
    pub fn passed(&self) -> (i64, i64, i64) {
        match (self.packed, self.ragged) {
            (true, _) => (0, 0, 0),
            // "Batch strides are then unused": a value that would show.
            (false, true) => (self.row_bytes as i64 * 1_000_000_000, self.token, self.head),
            (false, false) => (self.batch, self.token, self.head),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_never_overlap() {
        for q_len in [Some(3), None] {
            let dims = Dims { batch: 2, q_len, tokens: 6, heads: 5 };
            for style in Style::ALL {
                let strides = Strides::new(style, &dims, 8, 2);
                let mut taken = vec![false; strides.extent(&dims)];
                for token in 0..6 {
                    for head in 0..5 {
                        for byte in strides.range(Row { sequence: token / 3, query: token % 3, token, head }) {
                            assert!(!std::mem::replace(&mut taken[byte], true), "{style:?}");
                        }
                    }
                }
            }
        }
    }
}
