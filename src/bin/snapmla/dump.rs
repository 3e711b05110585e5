//! One layer's queries and latent tokens in a safetensors file.
//!
//! | tensor | shape | type |
//! |---|---|---|
//! | `q_content` | [queries, heads, 512] | BF16, F16 or F32 |
//! | `q_rope` | [queries, heads, 64] | BF16, F16 or F32 |
//! | `latent` | [tokens, 512] | BF16, F16 or F32 |
//! | `k_rope` | [tokens, 64] | BF16, F16 or F32 |
//!
//! Queries are absorbed ones (q W_UK), rope parts come after RoPE. The metadata may hold `softmax_scale`; without it
//! 1/sqrt(192) is taken, DeepSeek's without YaRN.

use std::collections::HashMap;
use std::path::Path;

use half::{bf16, f16};
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize_to_file};

use crate::failure::{Context, Failure, Result};
use crate::layer::{CONTENT, ROPE, Rows, SOFTMAX_SCALE};

pub struct Dump {
    pub heads: usize,
    pub softmax_scale: f32,
    /// [queries][heads]
    pub queries: Rows,
    /// [tokens]
    pub tokens: Rows,
}

impl Dump {
    pub fn num_queries(&self) -> usize {
        self.queries.rope.len() / ROPE / self.heads
    }

    pub fn num_tokens(&self) -> usize {
        self.tokens.rope.len() / ROPE
    }

    pub fn read(path: &Path) -> Result<Self> {
        let name = path.display();
        let bytes = std::fs::read(path).context(|| name.to_string())?;
        let file = SafeTensors::deserialize(&bytes).context(|| format!("{name} is not a safetensors file"))?;
        let (_, header) = SafeTensors::read_metadata(&bytes).context(|| name.to_string())?;
        let softmax_scale = match header.metadata().as_ref().and_then(|map| map.get("softmax_scale")) {
            None => SOFTMAX_SCALE,
            Some(text) => text
                .parse()
                .ok()
                .filter(|scale: &f32| scale.is_finite())
                .ok_or_else(|| Failure::new(format!("{name}: softmax_scale '{text}' is not a finite number")))?,
        };

        let in_file = |error: Failure| Failure::new(format!("{name}: {error}"));
        let (shape, q_content) = tensor(&file, "q_content", &[None, None, Some(CONTENT)]).map_err(in_file)?;
        let (queries, heads) = (shape[0], shape[1]);
        let (_, q_rope) = tensor(&file, "q_rope", &[Some(queries), Some(heads), Some(ROPE)]).map_err(in_file)?;
        let (shape, latent) = tensor(&file, "latent", &[None, Some(CONTENT)]).map_err(in_file)?;
        let (_, k_rope) = tensor(&file, "k_rope", &[Some(shape[0]), Some(ROPE)]).map_err(in_file)?;
        for (what, count) in [("queries", queries), ("heads", heads), ("tokens", shape[0])] {
            if count == 0 {
                return Err(in_file(Failure::new(format!("there are no {what}"))));
            }
        }
        Ok(Self {
            heads,
            softmax_scale,
            queries: Rows { content: q_content, rope: q_rope },
            tokens: Rows { content: latent, rope: k_rope },
        })
    }

    pub fn write(&self, path: &Path, dtype: Dtype) -> Result<()> {
        let (queries, heads, tokens) = (self.num_queries(), self.heads, self.num_tokens());
        let tensors = [
            ("q_content", vec![queries, heads, CONTENT], &self.queries.content),
            ("q_rope", vec![queries, heads, ROPE], &self.queries.rope),
            ("latent", vec![tokens, CONTENT], &self.tokens.content),
            ("k_rope", vec![tokens, ROPE], &self.tokens.rope),
        ]
        .map(|(name, shape, values)| (name, shape, encode(values, dtype)));
        let mut views = Vec::new();
        for (name, shape, bytes) in &tensors {
            let view = TensorView::new(dtype, shape.clone(), bytes).context(|| name.to_string())?;
            views.push((*name, view));
        }
        let metadata = HashMap::from([("softmax_scale".to_string(), self.softmax_scale.to_string())]);
        serialize_to_file(views, Some(metadata), path).context(|| path.display().to_string())
    }
}

/// The shape and the numbers of a tensor; `wanted` holds the sizes that are given.
fn tensor(file: &SafeTensors, name: &str, wanted: &[Option<usize>]) -> Result<(Vec<usize>, Vec<f32>)> {
    let Ok(view) = file.tensor(name) else {
        let mut names = file.names();
        names.sort_unstable();
        return Err(Failure::new(format!("tensor '{name}' is missing; there are: {}", names.join(", "))));
    };
    let shape = view.shape();
    let fits =
        shape.len() == wanted.len() && shape.iter().zip(wanted).all(|(is, want)| want.is_none_or(|n| n == *is));
    if !fits {
        let wanted: Vec<String> =
            wanted.iter().map(|size| size.map_or("any".to_string(), |size| size.to_string())).collect();
        let wanted = wanted.join(", ");
        return Err(Failure::new(format!("tensor '{name}' has shape {shape:?}, [{wanted}] is wanted")));
    }
    let values = decode(view.data(), view.dtype()).ok_or_else(|| {
        Failure::new(format!("tensor '{name}' has type {:?}; BF16, F16 or F32 is wanted", view.dtype()))
    })?;
    match values.iter().position(|value| !value.is_finite()) {
        Some(at) => Err(Failure::new(format!("tensor '{name}' holds {} at element {at}", values[at]))),
        None => Ok((shape.to_vec(), values)),
    }
}

fn decode(bytes: &[u8], dtype: Dtype) -> Option<Vec<f32>> {
    let halves = |widen: fn([u8; 2]) -> f32| bytes.chunks_exact(2).map(|b| widen([b[0], b[1]])).collect();
    match dtype {
        Dtype::BF16 => Some(halves(|b| bf16::from_le_bytes(b).to_f32())),
        Dtype::F16 => Some(halves(|b| f16::from_le_bytes(b).to_f32())),
        Dtype::F32 => Some(bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()),
        _ => None,
    }
}

fn encode(values: &[f32], dtype: Dtype) -> Vec<u8> {
    match dtype {
        Dtype::BF16 => values.iter().flat_map(|&x| bf16::from_f32(x).to_le_bytes()).collect(),
        Dtype::F16 => values.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect(),
        _ => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
    }
}
