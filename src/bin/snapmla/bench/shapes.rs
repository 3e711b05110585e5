//! The shapes that are measured.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Result};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// 32 sequences of 65,536 tokens
    Headline,
    /// Batch 1 to 128, 1,024 to 131,072 tokens
    Sweep,
    /// A few sequences of a few thousand tokens, where a call's fixed cost shows
    Small,
    /// The paper's figure 6: 16k to 128k tokens, the heads a rank has at TP8, TP2 and TP1
    Figure6,
    /// The paper's figure 7: batch 32, 16 to 128 heads, one, two and four query tokens
    Figure7,
    /// Sequences of very different lengths, beside as many tokens in even ones
    Uneven,
    /// Appends and decodes of a model's 61 layers: one graph, replayed while the batch changes
    Layers,
    /// K-append, Q-quant, fetch-dequant and records-copy instead of decode
    Ops,
}

#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
pub struct Shape {
    pub batch: usize,
    pub length: usize,
    pub heads: usize,
    pub q_len: usize,
}

impl Preset {
    pub fn shapes(self) -> Vec<Shape> {
        match self {
            Preset::Headline => product(&[32], &[65_536], &[16, 64, 128], &[1]),
            Preset::Sweep => [
                (1, 8_192),
                (1, 131_072),
                (8, 8_192),
                (8, 131_072),
                (32, 16_384),
                (32, 65_536),
                (32, 131_072),
                (128, 1_024),
                (128, 8_192),
            ]
            .into_iter()
            .flat_map(|(batch, length)| product(&[batch], &[length], &[8, 16, 32, 64, 128], &[1, 2, 4]))
            .collect(),
            Preset::Small => product(&[1, 2, 4, 8], &[1_024, 4_096, 8_192], &[16, 128], &[1]),
            Preset::Figure6 => product(&[32], &[16_384, 32_768, 65_536, 131_072], &[16, 64, 128], &[1]),
            Preset::Figure7 => product(&[32], &[16_384], &[16, 32, 64, 128], &[1, 2, 4]),
            Preset::Uneven | Preset::Layers | Preset::Ops => Vec::new(),
        }
    }
}

impl Shape {
    /// Tokens that the call reads.
    pub fn tokens(&self) -> usize {
        self.batch * self.length
    }

    pub fn check(&self) -> Result<()> {
        let in_range = |name: &str, is: usize, most: usize| match is {
            0 => Err(Failure::new(format!("{name} 0 is less than 1"))),
            n if n > most => Err(Failure::new(format!("{name} {n} is more than {most}"))),
            _ => Ok(()),
        };
        in_range("batch", self.batch, 65_536)?;
        in_range("length", self.length, 1 << 24)?;
        in_range("heads", self.heads, snapmla::abi::types::SNAPMLA_MAX_HEADS as usize)?;
        in_range("q_len", self.q_len, self.length.min(64))
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} x {}, {} heads, q_len {}", self.batch, self.length, self.heads, self.q_len)
    }
}

/// Every combination. No heads mean 128, no query lengths 1.
pub fn product(batches: &[usize], lengths: &[usize], heads: &[usize], q_lens: &[usize]) -> Vec<Shape> {
    let heads = if heads.is_empty() { &[128] } else { heads };
    let q_lens = if q_lens.is_empty() { &[1] } else { q_lens };
    let mut shapes = Vec::new();
    for &batch in batches {
        for &length in lengths {
            for &q_len in q_lens {
                shapes.extend(heads.iter().map(|&heads| Shape { batch, length, heads, q_len }));
            }
        }
    }
    shapes
}

/// The shapes with these heads and query lengths; an empty list lets all pass.
pub fn filter(mut shapes: Vec<Shape>, heads: &[usize], q_lens: &[usize]) -> Vec<Shape> {
    shapes.retain(|shape| {
        (heads.is_empty() || heads.contains(&shape.heads)) && (q_lens.is_empty() || q_lens.contains(&shape.q_len))
    });
    shapes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_hold_legal_shapes() {
        for preset in Preset::value_variants() {
            assert!(preset.shapes().iter().all(|shape| shape.check().is_ok()));
        }
        assert_eq!(Preset::Sweep.shapes().len(), 135);
    }

    #[test]
    fn filters_cut_a_preset_down() {
        let shapes = filter(Preset::Figure7.shapes(), &[64], &[2]);
        assert_eq!(shapes, [Shape { batch: 32, length: 16_384, heads: 64, q_len: 2 }]);
    }
}
