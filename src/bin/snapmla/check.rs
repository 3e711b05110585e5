//! What FP8 costs on a layer's real numbers: this library and BF16 attention, both against attention in f64.

use std::path::PathBuf;

use clap::Args;
use half::bf16;
use rayon::prelude::*;
use serde::Serialize;

use crate::api::{Cache, Decode, DecodeLimits, Queries};
use crate::compare::{Comparison, Errors};
use crate::dump::Dump;
use crate::engine::{self, Device, Engine};
use crate::failure::{Failure, Result};
use crate::layer::{CONTENT, RECORD_BYTES, ROPE, Rows};
use crate::memory::Buffer;
use crate::progress;
use crate::reference::attend;
use crate::report::Report;
use crate::session::PAGE_SIZE;
use crate::table::{Columns, Facts, grouped};

/// Query tokens of one decode call.
const QUERIES_A_CALL: usize = 8;
/// Heads of one decode call at most.
const MAX_HEADS: usize = snapmla::abi::types::SNAPMLA_MAX_HEADS as usize;

/// What `--help` says.
pub const LONG_ABOUT: &str = "\
Measure what FP8 costs on a layer's real numbers.

FILE is a safetensors file with one layer's tensors, each BF16, F16 or F32:
  q_content  [queries, heads, 512]  absorbed queries (q W_UK)
  q_rope     [queries, heads, 64]   positional queries, after RoPE
  latent     [tokens, 512]          compressed latents c_KV
  k_rope     [tokens, 64]           positional keys, after RoPE
Metadata softmax_scale is optional; 1/sqrt(192) without it. `snapmla synth` writes such a file.

Two answers are held against attention in f64 on the file's numbers: attention in BF16 (inputs and outputs
rounded to BF16, exact sums between) and this library's.";

#[derive(Args)]
pub struct Check {
    /// Dump of one layer
    file: PathBuf,
    /// The queries are the last tokens' own: each attends to itself and what precedes it
    #[arg(long)]
    causal: bool,
}

#[derive(Serialize)]
struct Numbers {
    file: String,
    device: Device,
    tokens: usize,
    queries: usize,
    heads: usize,
    causal: bool,
    softmax_scale: f32,
    cache_bytes: usize,
    cache_bytes_bf16: usize,
    all: Pair,
    worst_head: usize,
    per_head: Vec<Pair>,
}

#[derive(Serialize, Clone, Copy)]
struct Pair {
    bf16: Errors,
    snapmla: Errors,
}

pub fn check(options: &engine::Options, args: &Check) -> Result<Report> {
    let dump = Dump::read(&args.file)?;
    let (tokens, queries) = (dump.num_tokens(), dump.num_queries());
    if args.causal && queries > tokens {
        let text = format!("--causal: {queries} queries cannot be the last of {tokens} tokens");
        return Err(Failure::new(text));
    }
    let engine = Engine::open(options)?;
    let bar = progress::bar(queries + 1);
    bar.set_message("this library");
    let ours = decode(&engine, &dump, args.causal)?;
    bar.inc(1);

    bar.set_message("f64 and BF16");
    let rounded = Dump { queries: to_bf16(&dump.queries), tokens: to_bf16(&dump.tokens), ..dump };
    let per_row: Vec<(Comparison, Comparison)> = (0..queries * dump.heads)
        .into_par_iter()
        .map(|row| {
            let query = row / dump.heads;
            let count = if args.causal { tokens - queries + query + 1 } else { tokens };
            let answer = |rows: &Rows, tokens: &Rows| attend(rows.row(row), tokens, count, dump.softmax_scale).out;
            let wanted = answer(&dump.queries, &dump.tokens);
            let in_bf16 = answer(&rounded.queries, &rounded.tokens);
            if row % dump.heads == 0 {
                bar.inc(1);
            }
            let in_bf16 = in_bf16.into_iter().map(|x| bf16::from_f64(x).to_f64());
            let ours = ours[row * CONTENT..][..CONTENT].iter().map(|x| x.to_f64());
            (Comparison::of(in_bf16, &wanted), Comparison::of(ours, &wanted))
        })
        .collect();
    bar.finish_and_clear();

    let per_head: Vec<Pair> = (0..dump.heads).map(|head| pair(per_row[head..].iter().step_by(dump.heads))).collect();
    let numbers = Numbers {
        file: args.file.display().to_string(),
        device: engine.device(),
        tokens,
        queries,
        heads: dump.heads,
        causal: args.causal,
        softmax_scale: dump.softmax_scale,
        cache_bytes: tokens * RECORD_BYTES,
        cache_bytes_bf16: tokens * 2 * (CONTENT + ROPE),
        all: pair(per_row.iter()),
        worst_head: worst(&per_head),
        per_head,
    };
    Report::new(text(&numbers), &numbers)
}

/// The library's answers, [queries][heads][512]: the tokens appended to a paged cache, then decode calls.
fn decode(engine: &Engine, dump: &Dump, causal: bool) -> Result<Vec<bf16>> {
    let (tokens, queries, heads) = (dump.num_tokens(), dump.num_queries(), dump.heads);
    let place = &engine.place;
    let pages = tokens.div_ceil(PAGE_SIZE);
    let cache = Cache::create(&engine.context, place, PAGE_SIZE, pages)?;
    let slots: Vec<i64> = (0..tokens as i64).collect();
    let (content, rope) = (place.upload(&dump.tokens.content)?, place.upload(&dump.tokens.rope)?);
    cache.append(content.all().into(), rope.all().into(), place.upload(&slots)?.all())?;
    let block_table = place.upload(&(0..pages as i32).collect::<Vec<_>>())?;
    let workspace = engine.context.workspace_size(&DecodeLimits {
        batch_invariant: false,
        batch: 1,
        q_len: QUERIES_A_CALL,
        heads: heads.min(MAX_HEADS),
        seq_len: pages * PAGE_SIZE,
    })?;
    let workspace = place.buffer(workspace as usize)?;

    let mut answers = vec![bf16::NAN; queries * heads * CONTENT];
    for first in (0..queries).step_by(QUERIES_A_CALL) {
        let q_len = QUERIES_A_CALL.min(queries - first);
        // Causal decode counts from the sequence's end, so the sequence ends with the last query of the call.
        let seq_len = if causal { tokens - queries + first + q_len } else { tokens };
        let seq_lens = place.upload(&[seq_len as i32])?;
        for first_head in (0..heads).step_by(MAX_HEADS) {
            let call_heads = MAX_HEADS.min(heads - first_head);
            let rows: Vec<usize> = (first..first + q_len)
                .flat_map(|query| (first_head..first_head + call_heads).map(move |head| query * heads + head))
                .collect();
            let content: Vec<f32> = rows.iter().flat_map(|&row| dump.queries.row(row).0).copied().collect();
            let rope: Vec<f32> = rows.iter().flat_map(|&row| dump.queries.row(row).1).copied().collect();
            let (content, rope) = (place.upload(&content)?, place.upload(&rope)?);
            let out: Buffer<bf16> = place.buffer(rows.len() * CONTENT)?;
            let lse: Buffer<f32> = place.buffer(rows.len())?;
            cache.decode(&Decode {
                causal,
                batch_invariant: false,
                batch: 1,
                q_len,
                heads: call_heads,
                softmax_scale: dump.softmax_scale,
                queries: Queries::Raw { content: content.all().into(), rope: rope.all().into() },
                seq_lens: seq_lens.all(),
                block_table: block_table.all(),
                max_pages: pages,
                max_seq_len: 0,
                out: out.all().into(),
                lse: lse.all(),
                workspace: &workspace,
            })?;
            for (row, answer) in rows.iter().zip(out.read(0..out.len())?.chunks_exact(CONTENT)) {
                answers[row * CONTENT..][..CONTENT].copy_from_slice(answer);
            }
        }
    }
    Ok(answers)
}

fn to_bf16(rows: &Rows) -> Rows {
    let round = |values: &[f32]| values.iter().map(|&x| bf16::from_f32(x).to_f32()).collect();
    Rows { content: round(&rows.content), rope: round(&rows.rope) }
}

fn pair<'a>(rows: impl Iterator<Item = &'a (Comparison, Comparison)>) -> Pair {
    let (mut in_bf16, mut ours) = (Comparison::default(), Comparison::default());
    for (one, other) in rows {
        in_bf16.add(one);
        ours.add(other);
    }
    Pair { bf16: in_bf16.errors(), snapmla: ours.errors() }
}

/// The head with the largest relative L2 of ours; a NaN is the worst of all.
fn worst(per_head: &[Pair]) -> usize {
    let size = |head: &usize| per_head[*head].snapmla.relative_l2;
    (0..per_head.len()).max_by(|a, b| size(a).total_cmp(&size(b))).unwrap_or(0)
}

fn text(n: &Numbers) -> String {
    let mut facts = Facts::default();
    facts.add("device", n.device.to_string());
    let mask = if n.causal { ", causal" } else { "" };
    let tokens = grouped(n.tokens as u64);
    facts.add("layer", format!("{tokens} tokens, {} queries of {} heads{mask}", n.queries, n.heads));
    let (ours, in_bf16) = (grouped(n.cache_bytes as u64), grouped(n.cache_bytes_bf16 as u64));
    facts.add("cache", format!("{ours} bytes against {in_bf16} in BF16"));
    let mut columns = Columns::new(&["against f64", "RMSE", "1 - cosine", "relative L2"]);
    let mut line = |name: String, errors: &Errors| {
        let numbers = [errors.rmse, errors.one_minus_cosine, errors.relative_l2].map(|x| format!("{x:.2e}"));
        columns.add([vec![name], numbers.to_vec()].concat());
    };
    line("BF16, all heads".into(), &n.all.bf16);
    line("snapmla, all heads".into(), &n.all.snapmla);
    let worst = &n.per_head[n.worst_head];
    line(format!("BF16, head {}", n.worst_head), &worst.bf16);
    line(format!("snapmla, head {} (worst)", n.worst_head), &worst.snapmla);
    if n.heads <= 16 {
        for (head, pair) in n.per_head.iter().enumerate() {
            line(format!("snapmla, head {head}"), &pair.snapmla);
        }
    }
    format!("{facts}\n{columns}")
}
