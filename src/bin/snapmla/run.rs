//! The main job: a decode session as a server runs it, its answers held against attention in f64.

use std::time::Instant;

use clap::Args;
use serde::Serialize;

use crate::ceiling::{self, Ceiling};
use crate::engine::{self, Device, Engine};
use crate::failure::Result;
use crate::layer::{CONTENT, Layer, RECORD_BYTES, ROPE, SOFTMAX_SCALE};
use crate::progress;
use crate::queries::QuerySet;
use crate::report::Report;
use crate::rng::Rng;
use crate::session::{Limits, Output, Session};
use crate::table::{Facts, duration, flop_rate, grouped, rate};
use crate::verify::{Bounds, Measured, Verification, check_prefix};

const SEED: u64 = 1;
/// Query tokens of the last step, as multi-token prediction asks them.
const MTP: usize = 4;
/// Back-to-back calls under the clock; fewer where they take longer than a second.
const TIMED_CALLS: usize = 20;
/// Steps after which answers are looked at.
const LOOKS: usize = 4;
/// Bytes that a BF16 cache would keep of a token.
const BF16_BYTES: usize = 2 * (CONTENT + ROPE);

#[derive(Args, Default)]
pub struct Shape {
    /// Sequences decoding side by side [default: 8 on the CPU, 32 on CUDA]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    sequences: Option<u32>,
    /// Tokens of the longest sequence's prompt [default: 8192, 16384]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4_000_000))]
    tokens: Option<u32>,
    /// Query heads [default: 16, 128]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=128))]
    heads: Option<u32>,
    /// Decode steps [default: 16, 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    steps: Option<u32>,
}

#[derive(Serialize)]
struct Numbers {
    device: Device,
    sequences: usize,
    heads: usize,
    tokens_cached: usize,
    bytes_per_token: usize,
    bytes_per_token_bf16: usize,
    prompt_tokens_per_s: f64,
    steps: usize,
    /// New tokens a second over the whole loop: appends, queries, decode, of this one layer.
    tokens_per_s: f64,
    /// One call at the final lengths, from back-to-back calls.
    decode_s: f64,
    decode_bytes_per_s: f64,
    decode_flops: f64,
    ceiling: Ceiling,
    share_of_ceiling: f64,
    rows_checked: usize,
    decode_error: Measured,
    whole_error: Measured,
    prefix_tokens: usize,
    prefix_relative_l2: f64,
    passed: bool,
}

pub fn run(options: &engine::Options, shape: &Shape) -> Result<Report> {
    let engine = Engine::open(options)?;
    let gpu = engine.on_gpu();
    let choose = |given: Option<u32>, cpu: usize, cuda: usize| match given {
        Some(n) => n as usize,
        None if gpu => cuda,
        None => cpu,
    };
    let sequences = choose(shape.sequences, 8, 32);
    let tokens = choose(shape.tokens, 8192, 16_384);
    let heads = choose(shape.heads, 16, 128);
    let steps = choose(shape.steps, 16, 64);
    let chunk = if gpu { 4096 } else { 512 };

    let bar = progress::bar(tokens.div_ceil(chunk) + steps + 4);
    bar.set_message("drawing tokens");
    let mut rng = Rng::new(SEED, 3, 0);
    let layer = Layer::new(SEED, heads, SOFTMAX_SCALE);
    let limits = Limits { sequences, tokens: tokens + steps + MTP, heads, q_len: MTP };
    let mut session = Session::new(&engine, &limits, &layer.tokens(tokens), &mut rng)?;
    let one = QuerySet::new(&engine, heads, &layer.queries(tokens, sequences))?;
    let several = QuerySet::new(&engine, heads, &layer.queries(tokens, sequences * MTP))?;
    let (out_one, out_several) = (session.output(1, heads)?, session.output(MTP, heads)?);
    let mut verification = Verification::default();

    bar.set_message("prompts, in chunks");
    let prompts: Vec<usize> = (0..sequences).map(|b| prompt_length(tokens, b, sequences)).collect();
    let mut prompt_seconds = 0.0;
    for at in (0..tokens).step_by(chunk) {
        let counts: Vec<usize> = prompts.iter().map(|len| len.saturating_sub(at).min(chunk)).collect();
        prompt_seconds += session.append(&counts)?;
        bar.inc(1);
    }

    bar.set_message("decode steps");
    let ones = vec![1; sequences];
    let mut loop_seconds = 0.0;
    for step in 0..steps {
        let start = Instant::now();
        session.append(&ones)?;
        session.decode(one.raw(), 1, heads, SOFTMAX_SCALE, &out_one)?;
        engine.place.synchronize()?;
        loop_seconds += start.elapsed().as_secs_f64();
        if step % steps.div_ceil(LOOKS) == 0 || step + 1 == steps {
            verification.look(&session, &one, (1, heads), SOFTMAX_SCALE, &out_one, &mut rng)?;
        }
        bar.inc(1);
    }

    bar.set_message("the clock");
    let bytes: usize = session.sequences.iter().map(|sequence| sequence.len * RECORD_BYTES).sum();
    let decode_s = time_calls(&engine, &session, &one, heads, &out_one)?;
    bar.inc(1);

    bar.set_message("several tokens a step");
    session.append(&vec![MTP; sequences])?;
    session.decode(several.quantised(), MTP, heads, SOFTMAX_SCALE, &out_several)?;
    verification.look(&session, &several, (MTP, heads), SOFTMAX_SCALE, &out_several, &mut rng)?;
    bar.inc(1);

    bar.set_message("a prefix read back");
    let prefix_tokens = session.sequences[0].len.div_ceil(2);
    let prefix = check_prefix(&session.fetched(0, prefix_tokens)?, &session.original(0))?;
    bar.inc(1);

    bar.set_message("the memory's own speed");
    let tokens_cached = session.sequences.iter().map(|sequence| sequence.len).sum();
    drop(session);
    let ceiling = ceiling::measure(&engine)?;
    bar.finish_and_clear();

    let bounds = Bounds::of(&engine);
    let (decode_error, whole_error) = (verification.decode.measured(), verification.whole.measured());
    let broken = bounds.broken(&decode_error, &whole_error);
    let decode_bytes_per_s = bytes as f64 / decode_s;
    let numbers = Numbers {
        device: engine.device(),
        sequences,
        heads,
        tokens_cached,
        bytes_per_token: RECORD_BYTES,
        bytes_per_token_bf16: BF16_BYTES,
        prompt_tokens_per_s: prompts.iter().sum::<usize>() as f64 / prompt_seconds,
        steps,
        tokens_per_s: (steps * sequences) as f64 / loop_seconds,
        decode_s,
        decode_bytes_per_s,
        decode_flops: (bytes / RECORD_BYTES * heads * 2 * (2 * CONTENT + ROPE)) as f64 / decode_s,
        ceiling,
        share_of_ceiling: decode_bytes_per_s / ceiling.bytes_per_s,
        rows_checked: verification.rows,
        decode_error,
        whole_error,
        prefix_tokens,
        prefix_relative_l2: prefix.errors().relative_l2,
        passed: broken.is_none(),
    };
    let mut report = Report::new(facts(&numbers, bounds), &numbers)?;
    report.broken = broken;
    Ok(report)
}

/// From `tokens` down to half of it, and no two sequences on the same page boundary.
fn prompt_length(tokens: usize, b: usize, sequences: usize) -> usize {
    (tokens - tokens * b / (2 * sequences)).saturating_sub(7 * b).max(1)
}

/// Seconds of one decode call, from calls put on the stream back to back.
fn time_calls(engine: &Engine, session: &Session, queries: &QuerySet, heads: usize, output: &Output) -> Result<f64> {
    let time = |calls: usize| {
        let work = || (0..calls).try_for_each(|_| session.decode(queries.raw(), 1, heads, SOFTMAX_SCALE, output));
        Ok(engine.place.time(work)? / calls as f64)
    };
    let first = time(1)?;
    time(((1.0 / first) as usize).clamp(1, TIMED_CALLS))
}

fn facts(n: &Numbers, bounds: &Bounds) -> Facts {
    let error = |measured: &Measured, l2: f64, lse: f64| {
        format!(
            "relative L2 {:.1e} (bound {l2:.0e}), 1 - cosine {:.1e}, LSE {:.1e} (bound {lse:.0e})",
            measured.out.relative_l2, measured.out.one_minus_cosine, measured.lse
        )
    };
    let mut facts = Facts::default();
    facts.add("device", n.device.to_string());
    facts.add(
        "cache",
        format!(
            "{} B a token against {} in BF16 ({:.2}x fewer); {} tokens of {} sequences",
            n.bytes_per_token,
            n.bytes_per_token_bf16,
            n.bytes_per_token_bf16 as f64 / n.bytes_per_token as f64,
            grouped(n.tokens_cached as u64),
            n.sequences
        ),
    );
    facts.add("append", format!("{} prompt tokens/s", grouped(n.prompt_tokens_per_s as u64)));
    facts.add(
        "steps",
        format!(
            "{} steps, {} heads: {} tokens/s through this layer",
            n.steps,
            n.heads,
            grouped(n.tokens_per_s as u64)
        ),
    );
    facts.add(
        "decode",
        format!(
            "{} a call: {}, {:.0} % of {} ({}); {}",
            duration(n.decode_s),
            rate(n.decode_bytes_per_s),
            100.0 * n.share_of_ceiling,
            rate(n.ceiling.bytes_per_s),
            n.ceiling.how,
            flop_rate(n.decode_flops)
        ),
    );
    facts.add("decode error", error(&n.decode_error, bounds.decode, bounds.lse));
    facts.add("with quantisation", error(&n.whole_error, bounds.whole, bounds.whole_lse));
    facts.add("prefix", format!("{} tokens read back, relative L2 {:.1e}", n.prefix_tokens, n.prefix_relative_l2));
    facts.add("checked", format!("{} rows against attention in f64", n.rows_checked));
    facts
}
