//! Writes a dump of a synthetic layer with the paper's distributions, to try `check` on.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use safetensors::tensor::Dtype;
use serde::Serialize;

use crate::dump::Dump;
use crate::failure::Result;
use crate::layer::{Layer, SOFTMAX_SCALE};
use crate::report::Report;
use crate::table::Facts;

#[derive(Clone, Copy, ValueEnum)]
enum Type {
    Bf16,
    F16,
    F32,
}

#[derive(Args)]
pub struct Synth {
    /// File to write
    file: PathBuf,
    /// Cached tokens
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    tokens: u32,
    /// Query heads
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    heads: u32,
    /// Query tokens
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    queries: u32,
    /// Seed of the random numbers
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Element type of the tensors
    #[arg(long, value_enum, default_value = "bf16")]
    dtype: Type,
}

#[derive(Serialize)]
struct Written {
    file: String,
    tokens: u32,
    heads: u32,
    queries: u32,
    seed: u64,
    bytes: u64,
}

pub fn synth(args: &Synth) -> Result<Report> {
    let (tokens, heads, queries) = (args.tokens as usize, args.heads as usize, args.queries as usize);
    let layer = Layer::new(args.seed, heads, SOFTMAX_SCALE);
    let dump = Dump {
        heads,
        softmax_scale: SOFTMAX_SCALE,
        // The last tokens ask.
        queries: layer.queries(tokens.saturating_sub(queries), queries),
        tokens: layer.tokens(tokens),
    };
    let dtype = match args.dtype {
        Type::Bf16 => Dtype::BF16,
        Type::F16 => Dtype::F16,
        Type::F32 => Dtype::F32,
    };
    dump.write(&args.file, dtype)?;
    let written = Written {
        file: args.file.display().to_string(),
        tokens: args.tokens,
        heads: args.heads,
        queries: args.queries,
        seed: args.seed,
        bytes: std::fs::metadata(&args.file).map_or(0, |file| file.len()),
    };
    let mut facts = Facts::default();
    facts.add("written", written.file.clone());
    facts.add("holds", format!("{tokens} tokens, {queries} queries of {heads} heads, seed {}", args.seed));
    Report::new(facts, &written)
}
