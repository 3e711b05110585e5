//! The queries of a case, as the caller lays them out and as they are once quantised.

use rayon::prelude::*;

use super::Case;
use crate::bits::Float;
use crate::prng::Rng;
use crate::record::{CONTENT, Numbers, ROPE, Record};
use crate::strides::{Row, Strides, Style};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryForm {
    Raw,
    Quantised,
}

/// The query tensors' bytes and strides.
pub struct Questions {
    form: QueryForm,
    element: Float,
    pub content: Vec<u8>,
    pub content_strides: Strides,
    /// Empty when rope stands behind content in fused rows.
    pub rope: Vec<u8>,
    pub rope_strides: Strides,
    /// Quantised queries only.
    pub scale: Vec<u8>,
    pub scale_strides: Strides,
}

/// The numbers of one query row before it is quantised, as its type holds them.
pub fn numbers_of_query(case: &Case, row: Row) -> Numbers {
    let element = case.query_element;
    let (mut content, mut rope) = ([0.0; CONTENT], [0.0; ROPE]);
    let mut rng = Rng::of(case.seed ^ 0x0E71, row.token as u64, row.head as u64);
    (case.queries)(&mut rng, row.token, row.head, &mut content, &mut rope);
    (content.map(|x| element.round(x)), rope.map(|x| element.round(x)))
}

impl Questions {
    pub fn build(case: &Case) -> Self {
        let dims = case.dims();
        let style = case.query_style;
        let e = case.query_element.bytes();
        let (content_strides, rope_strides) = match case.query_form {
            QueryForm::Raw if case.fused_rows => {
                let rows = Strides::new(style, &dims, (CONTENT + ROPE) * e, e).explicit();
                (rows, rows.shifted(CONTENT * e, ROPE * e))
            }
            QueryForm::Raw => (Strides::new(style, &dims, CONTENT * e, e), Strides::new(style, &dims, ROPE * e, e)),
            QueryForm::Quantised => {
                (Strides::new(style, &dims, CONTENT, 16), Strides::new(style, &dims, ROPE * 2, 16))
            }
        };
        let scale_style = if style == Style::Padded { Style::HeadMajor } else { style };
        let scale_strides = Strides::new(scale_style, &dims, 4, 4);
        // What stands between rows must not be read: NaN.
        let mut questions = Self {
            form: case.query_form,
            element: case.query_element,
            content: vec![0xFF; content_strides.extent(&dims)],
            content_strides,
            rope: vec![0xFF; if case.fused_rows { 0 } else { rope_strides.extent(&dims) }],
            rope_strides,
            scale: vec![0xFF; scale_strides.extent(&dims)],
            scale_strides,
        };
        for rows in case.rows().chunks(4096) {
            let made: Vec<_> = rows.par_iter().map(|&row| encode(case, row)).collect();
            for (&row, (content, rope, scale)) in rows.iter().zip(&made) {
                questions.put(row, content, rope, scale);
            }
        }
        questions
    }

    fn put(&mut self, row: Row, content: &[u8], rope: &[u8], scale: &[u8]) {
        let at = self.content_strides.offset(row);
        self.content[at..at + content.len()].copy_from_slice(content);
        let at = self.rope_strides.offset(row);
        let ropes = if self.rope.is_empty() { &mut self.content } else { &mut self.rope };
        ropes[at..at + rope.len()].copy_from_slice(rope);
        let at = self.scale_strides.offset(row);
        self.scale[at..at + 4].copy_from_slice(scale);
    }

    /// What attention sees of a row.
    pub fn record(&self, row: Row) -> Record {
        let content = &self.content[self.content_strides.offset(row)..];
        let ropes = if self.rope.is_empty() { &self.content } else { &self.rope };
        let rope = &ropes[self.rope_strides.offset(row)..];
        match self.form {
            QueryForm::Raw => {
                let (element, e) = (self.element, self.element.bytes());
                let content: [f32; CONTENT] = std::array::from_fn(|i| element.get(&content[i * e..]));
                let rope: [f32; ROPE] = std::array::from_fn(|j| element.get(&rope[j * e..]));
                Record::quantise(&content, &rope)
            }
            QueryForm::Quantised => {
                let scale = &self.scale[self.scale_strides.offset(row)..];
                Record {
                    content: std::array::from_fn(|i| content[i]),
                    rope: std::array::from_fn(|j| u16::from_le_bytes([rope[2 * j], rope[2 * j + 1]])),
                    scale: Float::F32.get(scale),
                }
            }
        }
    }
}

/// Content, rope and scale bytes of a row in the case's form.
fn encode(case: &Case, row: Row) -> (Vec<u8>, Vec<u8>, [u8; 4]) {
    let element = case.query_element;
    let (content, rope) = numbers_of_query(case, row);
    match case.query_form {
        QueryForm::Raw => {
            let bytes = |numbers: &[f32]| {
                let mut bytes = vec![0; numbers.len() * element.bytes()];
                for (x, to) in numbers.iter().zip(bytes.chunks_mut(element.bytes())) {
                    element.put(*x, to);
                }
                bytes
            };
            (bytes(&content), bytes(&rope), [0xFF; 4])
        }
        QueryForm::Quantised => {
            let record = Record::quantise(&content, &rope);
            let rope = record.rope.iter().flat_map(|x| x.to_le_bytes()).collect();
            (record.content.to_vec(), rope, record.scale.to_le_bytes())
        }
    }
}
