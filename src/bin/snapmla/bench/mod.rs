//! How fast decode and the cache operations are, shape by shape.
//!
//! On CUDA a number is GPU time from graph replays: 20 calls back to back over different page tables of a pool larger
//! than the L2 cache, after two seconds of the same load, so that the clock is where a server's would be. Everything
//! that a call launches is counted. On the CPU it is the wall time of a call, again over changing pages.

mod clock;
pub mod decode;
mod layers;
mod operations;
mod output;
mod peer;
mod pool;
pub mod shapes;
mod uneven;

use std::path::PathBuf;

use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;

use crate::ceiling;
use crate::engine::{self, Device, Engine};
use crate::failure::{Context, Failure, Result};
use crate::progress;
use crate::report::Report;
use clock::Method;
use decode::{Ceilings, H200};
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
    /// Run FlashMLA's kernels beside it, in turns: needs Python with PyTorch and the wheel sgl-flash-mla 1.0.0
    #[arg(long, conflicts_with_all = ["tokens", "page_size", "pool", "batch_invariant", "read", "fp8", "bf16"])]
    peer: bool,
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    uneven: Vec<uneven::Line>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    layers: Vec<layers::Line>,
}

/// What is measured.
enum Work {
    Decode(Vec<Shape>),
    Operations { heads: usize, tokens: Vec<usize> },
    Uneven { heads: Vec<usize> },
    Layers { heads: Vec<usize> },
}

pub fn bench(options: &engine::Options, args: &Bench) -> Result<Report> {
    if args.peer {
        return peer::compare(options, args);
    }
    let engine = Engine::open(options)?;
    let work = Work::of(&engine, args)?;
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
        uneven: Vec::new(),
        layers: Vec::new(),
    };
    let bar = progress::bar(work.steps());
    work.measure(&engine, args, &method, &mut numbers, &bar)?;
    bar.finish_and_clear();
    if let Some(folder) = &args.out {
        output::write(&numbers, folder).context(|| folder.display().to_string())?;
    }
    let mut report = Report::new(output::text(&numbers), &numbers)?;
    report.broken = numbers.layers.iter().find_map(|line| line.broken.clone());
    Ok(report)
}

impl Work {
    fn of(engine: &Engine, args: &Bench) -> Result<Self> {
        let preset = args.preset.unwrap_or(if engine.on_gpu() { Preset::Headline } else { Preset::Small });
        let preset = args.batch.is_empty().then_some(preset);
        if !args.tokens.is_empty() && preset != Some(Preset::Ops) {
            return Err(Failure::new("tokens are counts of the preset ops"));
        }
        if !args.q_len.is_empty() && matches!(preset, Some(Preset::Ops | Preset::Uneven | Preset::Layers)) {
            return Err(Failure::new("the preset has no query lengths to choose from"));
        }
        let heads = |preset: &[usize]| if args.heads.is_empty() { preset.to_vec() } else { args.heads.clone() };
        let most = snapmla::abi::types::SNAPMLA_MAX_HEADS as usize;
        if let Some(n) = args.heads.iter().find(|n| !(1..=most).contains(*n)) {
            return Err(Failure::new(format!("heads {n} is not within 1 to {most}")));
        }
        match preset {
            Some(Preset::Ops) => {
                let tokens = if args.tokens.is_empty() { operations::TOKENS.to_vec() } else { args.tokens.clone() };
                if let Some(n) = tokens.iter().find(|n| !(1..=operations::MOST_TOKENS).contains(*n)) {
                    return Err(Failure::new(format!("tokens {n} is not within 1 to {}", operations::MOST_TOKENS)));
                }
                Ok(Self::Operations { heads: args.heads.first().copied().unwrap_or(128), tokens })
            }
            Some(Preset::Uneven) => Ok(Self::Uneven { heads: heads(&uneven::HEADS) }),
            Some(Preset::Layers) => Ok(Self::Layers { heads: heads(&layers::HEADS) }),
            _ => {
                let shapes = match preset {
                    Some(preset) => shapes::filter(preset.shapes(), &args.heads, &args.q_len),
                    None => shapes::product(&args.batch, &args.length, &args.heads, &args.q_len),
                };
                if shapes.is_empty() {
                    return Err(Failure::new("the preset has no shape with these heads and query lengths"));
                }
                shapes.iter().try_for_each(Shape::check)?;
                Ok(Self::Decode(shapes))
            }
        }
    }

    /// Of the progress bar.
    fn steps(&self) -> usize {
        1 + match self {
            Self::Decode(shapes) => shapes.len(),
            Self::Operations { tokens, .. } => operations::STEPS * tokens.len(),
            Self::Uneven { heads } => uneven::BATCHES.len() * heads.len(),
            Self::Layers { heads } => (layers::STEPS + 2) * heads.len(),
        }
    }

    fn measure(
        &self,
        engine: &Engine,
        args: &Bench,
        method: &Method,
        numbers: &mut Numbers,
        bar: &ProgressBar,
    ) -> Result<()> {
        let fill = |tokens: usize| {
            bar.set_message("filling the cache");
            let megabytes = args.pool.unwrap_or(if engine.on_gpu() { GPU_POOL } else { CPU_POOL });
            let pool = Pool::fill(engine, args.page_size, megabytes.saturating_mul(1_000_000), tokens);
            bar.inc(1);
            pool
        };
        let page_size = args.page_size.max(1);
        match self {
            Self::Decode(shapes) => {
                let in_pages = |shape: &Shape| shape.batch * shape.length.div_ceil(page_size) * page_size;
                let pool = fill(shapes.iter().map(in_pages).max().unwrap_or(0))?;
                let ceilings = ceilings(engine, &args.ceilings)?;
                numbers.ceilings = Some(ceilings);
                for shape in shapes {
                    bar.set_message(shape.to_string());
                    let line = decode::measure(engine, &pool, method, shape, args.batch_invariant, &ceilings)?;
                    numbers.decode.push(line);
                    bar.inc(1);
                }
            }
            Self::Operations { heads, tokens } => {
                let pool = fill(operations::POOL_TOKENS)?;
                let copy = ceiling::copy_rate(engine, if engine.on_gpu() { 4 << 30 } else { 1 << 29 })?;
                numbers.copy_bytes_per_s = Some(copy);
                numbers.operations = operations::measure(engine, &pool, method, *heads, tokens, copy, bar)?;
            }
            Self::Uneven { heads } => {
                let pool = fill(uneven::pool_tokens(page_size))?;
                numbers.uneven = uneven::measure(engine, &pool, method, heads, args.batch_invariant, bar)?;
            }
            Self::Layers { heads } => {
                let size = if engine.on_gpu() { layers::GPU } else { layers::CPU };
                bar.inc(1);
                for &heads in heads {
                    let call =
                        layers::Call { heads, page_size: args.page_size, batch_invariant: args.batch_invariant };
                    numbers.layers.push(layers::measure(engine, args.warm, size, call, bar)?);
                }
            }
        }
        Ok(())
    }
}

fn ceilings(engine: &Engine, options: &CeilingOptions) -> Result<Ceilings> {
    let gpu = engine.on_gpu();
    let read = match options.read {
        Some(terabytes) => terabytes * 1e12,
        None if gpu => H200.read,
        None => ceiling::measure(engine)?.bytes_per_s,
    };
    let rate = |given: Option<f64>, default: Option<f64>| {
        given.map(|teraflops| teraflops * 1e12).or(if gpu { default } else { None })
    };
    Ok(Ceilings { read, fp8: rate(options.fp8, H200.fp8), bf16: rate(options.bf16, H200.bf16) })
}
