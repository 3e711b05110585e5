//! Queries for the sequences of a session: raw, and as the library quantises them.

use std::ops::Range;

use half::bf16;

use crate::api::{QuantisedQueries, Queries};
use crate::engine::Engine;
use crate::failure::Result;
use crate::fp8::e4m3;
use crate::layer::{CONTENT, ROPE, Rows};
use crate::memory::{Buffer, Element};

/// Queries [tokens][heads], in BF16.
pub struct QuerySet {
    /// The same numbers on the host.
    pub original: Rows,
    content: Buffer<bf16>,
    rope: Buffer<bf16>,
    quantised: QuantisedQueries,
    /// What the quantised ones stand for.
    pub dequantised: Rows,
}

impl QuerySet {
    pub fn new(engine: &Engine, heads: usize, rows: &Rows) -> Result<Self> {
        let narrow = |values: &[f32]| values.iter().map(|&x| bf16::of(x)).collect::<Vec<_>>();
        let widen = |values: &[bf16]| values.iter().map(|x| x.to_f32()).collect::<Vec<_>>();
        let (content, rope) = (narrow(&rows.content), narrow(&rows.rope));
        let original = Rows { content: widen(&content), rope: widen(&rope) };
        let (content, rope) = (engine.place.upload(&content)?, engine.place.upload(&rope)?);
        let quantised = QuantisedQueries::new(&engine.place, rows.rope.len() / ROPE)?;
        quantised.quantise(&engine.context, &engine.place, heads, content.all().into(), rope.all().into())?;
        let dequantised = dequantise(&quantised)?;
        Ok(Self { original, content, rope, quantised, dequantised })
    }

    pub fn raw(&self) -> Queries<'_> {
        self.raw_rows(0..self.rope.len() / ROPE)
    }

    pub fn raw_rows(&self, rows: Range<usize>) -> Queries<'_> {
        let part = |width: usize| rows.start * width..rows.end * width;
        Queries::Raw { content: self.content.slice(part(CONTENT)).into(), rope: self.rope.slice(part(ROPE)).into() }
    }

    pub fn quantised(&self) -> Queries<'_> {
        Queries::Quantised(&self.quantised)
    }
}

fn dequantise(queries: &QuantisedQueries) -> Result<Rows> {
    let scale = queries.scale.read(0..queries.scale.len())?;
    let content = queries.content.read(0..queries.content.len())?;
    let rope = queries.rope.read(0..queries.rope.len())?;
    Ok(Rows {
        content: content.iter().enumerate().map(|(i, &byte)| e4m3(byte) * scale[i / CONTENT]).collect(),
        rope: rope.iter().enumerate().map(|(i, x)| x.to_f32() * scale[i / ROPE]).collect(),
    })
}
