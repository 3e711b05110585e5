//! How fast decode and the cache operations are, shape by shape.
//!
//! On CUDA a number is GPU time from graph replays: 20 calls back to back over different page tables of a pool larger
//! than the L2 cache, after two seconds of the same load, so that the clock is where a server's would be. Everything
//! that a call launches is counted. On the CPU it is the wall time of a call, again over changing pages.

mod clock;
mod decode;
mod operations;
mod output;
mod pool;
mod shapes;

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::ceiling;
use crate::engine::{self, Device, Engine};
use crate::failure::{Context, Failure, Result};
use crate::progress;
use crate::report::Report;
use clock::Method;
use decode::Ceilings;
use pool::Pool;
use shapes::{Preset, Shape};

/// Megabytes, larger than any cache by far; on a GPU, what 32 x 65,536 tokens take.
const GPU_POOL: usize = 1351;
const CPU_POOL: usize = 400;

#[derive(Args)]
pub struct Bench {
    /// Shapes to measure [default: headline on CUDA, small on the CPU]
    #[arg(long, value_enum, conflicts_with_all = ["batch", "length"])]
    preset: Option<Preset>,
    /// Batch sizes, comma-separated
    #[arg(long, value_name = "N,..", value_delimiter = ',', requires = "length")]
    batch: Vec<usize>,
    /// Cached tokens of each sequence, comma-separated
    #[arg(long, value_name = "N,..", value_delimiter = ',', requires = "batch")]
    length: Vec<usize>,
    /// Head counts, comma-separated; with a preset, only its shapes with these
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    heads: Vec<usize>,
    /// Query tokens a sequence, comma-separated; with a preset, only its shapes with these
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    q_len: Vec<usize>,
    /// Tokens of a call, comma-separated, with the preset ops [default: 1 to 65536]
    #[arg(long, value_name = "N,..", value_delimiter = ',', requires = "preset", conflicts_with_all = ["batch", "length"])]
    tokens: Vec<usize>,
    /// Tokens a page
    #[arg(long, value_name = "N", default_value_t = 64)]
    page_size: usize,
    /// Least megabytes of the pool that calls draw their pages from [default: 1351 on CUDA, 400 on the CPU]
    #[arg(long, value_name = "MB")]
    pool: Option<usize>,
    /// Decode so that a row's bits do not depend on the rest of its batch
    #[arg(long)]
    batch_invariant: bool,
    /// Seconds of load before a CUDA number is taken
    #[arg(long, value_name = "S", default_value_t = 2.0)]
    warm: f64,
    /// Write bench.json and a CSV file a table to this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    ceilings: CeilingOptions,
}

/// What the floor of a call is reckoned with. The defaults are measured on an H200.
#[derive(Args)]
struct CeilingOptions {
    /// Streaming read bandwidth, TB/s [default: 4.53 on CUDA, measured on the CPU]
    #[arg(long, value_name = "TB/S")]
    read: Option<f64>,
    /// FP8 matrix rate, TFLOP/s [default: 1459 on CUDA, no bound on the CPU]
    #[arg(long, value_name = "TFLOP/S")]
    fp8: Option<f64>,
    /// BF16 matrix rate, TFLOP/s [default: 788 on CUDA, no bound on the CPU]
    #[arg(long, value_name = "TFLOP/S")]
    bf16: Option<f64>,
}

#[derive(Serialize)]
pub struct Numbers {
    version: String,
    date: String,
    command: String,
    device: Device,
    page_size: usize,
    batch_invariant: bool,
    method: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ceilings: Option<Ceilings>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    decode: Vec<decode::Line>,
    /// Bytes read and written a second by a copy inside the same memory, in the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    copy_bytes_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    operations: Vec<operations::Line>,
}

pub fn bench(options: &engine::Options, args: &Bench) -> Result<Report> {
    let engine = Engine::open(options)?;
    let preset = args.preset.unwrap_or(if engine.on_gpu() { Preset::Headline } else { Preset::Small });
    let shapes = if args.batch.is_empty() {
        shapes::filter(preset.shapes(), &args.heads, &args.q_len)
    } else {
        shapes::product(&args.batch, &args.length, &args.heads, &args.q_len)
    };
    for shape in &shapes {
        shape.check()?;
    }
    let operations = args.batch.is_empty() && preset == Preset::Ops;
    let tokens = match args.tokens.as_slice() {
        [] => &operations::TOKENS,
        _ if !operations => return Err(Failure::new("tokens are counts of the preset ops")),
        tokens => tokens,
    };
    if let Some(n) = tokens.iter().find(|n| !(1..=operations::MOST_TOKENS).contains(*n)) {
        return Err(Failure::new(format!("tokens {n} is not within 1 to {}", operations::MOST_TOKENS)));
    }
    if shapes.is_empty() && !operations {
        return Err(Failure::new("the preset has no shape with these heads and query lengths"));
    }

    let method = Method { warm: args.warm, calls: 20 };
    let mut numbers = Numbers {
        version: crate::api::version(),
        date: output::utc_now(),
        command: std::env::args().collect::<Vec<_>>().join(" "),
        device: engine.device(),
        page_size: args.page_size,
        batch_invariant: args.batch_invariant,
        method: method.text(engine.on_gpu()),
        ceilings: None,
        decode: Vec::new(),
        copy_bytes_per_s: None,
        operations: Vec::new(),
    };
    let smallest = args.pool.unwrap_or(if engine.on_gpu() { GPU_POOL } else { CPU_POOL }).saturating_mul(1_000_000);
    let in_pages = |shape: &Shape| shape.batch * shape.length.div_ceil(args.page_size.max(1)) * args.page_size;
    let pooled = if operations { operations::POOL_TOKENS } else { shapes.iter().map(in_pages).max().unwrap_or(0) };
    let bar = progress::bar(1 + if operations { operations::STEPS * tokens.len() } else { shapes.len() });
    bar.set_message("filling the cache");
    let pool = Pool::fill(&engine, args.page_size, smallest, pooled)?;
    bar.inc(1);

    if operations {
        let heads = args.heads.first().copied().unwrap_or(128);
        let copy = ceiling::copy_rate(&engine, if engine.on_gpu() { 4 << 30 } else { 1 << 29 })?;
        numbers.copy_bytes_per_s = Some(copy);
        numbers.operations = operations::measure(&engine, &pool, &method, heads, tokens, copy, &bar)?;
    } else {
        let ceilings = ceilings(&engine, &args.ceilings)?;
        numbers.ceilings = Some(ceilings);
        for shape in &shapes {
            bar.set_message(shape.to_string());
            numbers.decode.push(decode::measure(&engine, &pool, &method, shape, args.batch_invariant, &ceilings)?);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    if let Some(folder) = &args.out {
        output::write(&numbers, folder).context(|| folder.display().to_string())?;
    }
    Report::new(output::text(&numbers), &numbers)
}

fn ceilings(engine: &Engine, options: &CeilingOptions) -> Result<Ceilings> {
    let gpu = engine.on_gpu();
    let read = match options.read {
        Some(terabytes) => terabytes * 1e12,
        None if gpu => 4.53e12,
        None => ceiling::measure(engine)?.bytes_per_s,
    };
    let rate = |given: Option<f64>, default: f64| given.or(gpu.then_some(default)).map(|teraflops| teraflops * 1e12);
    Ok(Ceilings { read, fp8: rate(options.fp8, 1459.0), bf16: rate(options.bf16, 788.0) })
}
