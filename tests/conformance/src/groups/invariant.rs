use std::ffi::c_void;
use std::ops::Range;

use super::Suite;
use super::lengths::LENGTHS;
use crate::backend::Backend;
use crate::bits::Float;
use crate::case::{Answers, Case, Image, Loaded, Pages, QLens, Questions};
use crate::check::{Expected, compare, first_difference};
use crate::memory::Result;
use crate::prng::Rng;
use crate::report::Metrics;
use crate::strides::Row;

pub fn run(suite: &mut Suite) {
    let long = suite.pick(5_000, 70_000);
    let lengths = [long, 1, 0, 129, 3000, 64, 1024, 1025, 2049, 8_192];
    for (heads, q_len, causal) in [(16, 1, false), (8, 4, true), (20, 1, false), (64, 1, true), (128, 2, true)] {
        let case = Case { heads, q_lens: QLens::Uniform(q_len), causal, ..invariant(&lengths) };
        let parts = [0..1, 3..4, 4..5, 9..10, 0..5, 1..10, 4..9];
        suite.case(format!("parts-of-ten-h{heads}-q{q_len}"), |backend| parts_alone(backend, &case, &parts));
    }
    let case = Case {
        heads: 16,
        causal: true,
        q_lens: QLens::Ragged(vec![1, 4, 0, 2, 3, 8, 1]),
        ..invariant(&LENGTHS[1..])
    };
    suite.case("parts-of-a-ragged-batch", |backend| parts_alone(backend, &case, &[0..2, 3..4, 4..7, 6..7]));
    // On both sides of every bound that the plans of a batch have, and more splits than the CPU merges at once.
    for batch in [127, 128, 129, 300] {
        let mut rng = Rng::new(batch as u64);
        let lengths: Vec<usize> =
            (0..batch).map(|i| if i % 9 == 0 { rng.below(4_000) } else { rng.below(300) }).collect();
        let case = Case { heads: 16, pages: Pages::Drawn(200), ..invariant(&lengths) };
        let parts = [0..1, 0..batch - 1, 1..batch, batch - 1..batch, batch / 2..batch / 2 + 3];
        suite.case(format!("parts-of-{batch}"), |backend| parts_alone(backend, &case, &parts));
    }
    if suite.cpu() {
        let case = invariant(&lengths);
        suite.case("without-the-flag-on-the-cpu", |backend| {
            let (with, without) =
                (answers(backend, &case)?, answers(backend, &Case { batch_invariant: false, ..case })?);
            first_difference("out", &without.out, &with.out, |byte| format!("row {}", byte / 2048))
                .map(|()| Metrics::none())
        });
    }
    // What a caller may have otherwise.
    for (heads, q_len, lengths) in [(1, 1, &LENGTHS[..]), (20, 2, &LENGTHS), (128, 4, &LENGTHS), (40, 1, &[long])] {
        let case =
            Case { heads, q_lens: QLens::Uniform(q_len), causal: true, out: Float::Bf16, ..invariant(lengths) };
        suite.decode(format!("right-h{heads}-q{q_len}-b{}", lengths.len()), &case);
    }
    let case = Case { max_seq_len: 2_000, page_size: 16, ..invariant(&[4_000, 1 << 20, 0, 1_999]) };
    suite.decode("cut", &Case { max_pages: Some(150), ..case });
}

fn invariant(lengths: &[usize]) -> Case {
    Case { batch_invariant: true, out: Float::F32, ..Case::new(lengths) }
}

fn answers(backend: &Backend, case: &Case) -> Result<Answers> {
    Loaded::new(backend, case, &Image::build(case)?, &Questions::build(case))?.run(backend)
}

/// Each part of the batch as a call of its own: the bits that its rows have in the whole batch, which is right.
fn parts_alone(backend: &Backend, case: &Case, parts: &[Range<usize>]) -> Result<Metrics> {
    let (image, questions) = (Image::build(case)?, Questions::build(case));
    let mut loaded = Loaded::new(backend, case, &image, &questions)?;
    let whole = loaded.run(backend)?;
    let measured = compare(case, backend.is_cpu(), &whole, &Expected::of(case, &image, &questions))?;
    let params = loaded.params;
    let (cu_q_lens, rows) = (case.cu_q_lens(), case.rows());
    for part in parts {
        // A uniform batch starts at its first sequence; a ragged one where `cu_q_lens` says, in the whole tensors.
        let first = if case.dims().q_len.is_some() { cu_q_lens[part.start] as usize * case.heads } else { 0 };
        loaded.params = params;
        let p = &mut loaded.params;
        p.batch = part.len() as u32;
        p.seq_lens = params.seq_lens.wrapping_add(part.start);
        p.block_table = params.block_table.wrapping_add(part.start * image.columns);
        if !params.cu_q_lens.is_null() {
            p.cu_q_lens = params.cu_q_lens.wrapping_add(part.start);
        }
        p.q_content = params.q_content.wrapping_byte_add(first * 512 * case.query_element.bytes());
        p.q_rope = params.q_rope.wrapping_byte_add(first * 64 * case.query_element.bytes());
        p.out = params.out.wrapping_byte_add(first * 512 * case.out.bytes()).cast::<c_void>();
        p.lse = params.lse.wrapping_add(first);
        // No more than these sequences need: what else is in the batch may have been longer.
        let longest = part.clone().map(|sequence| case.tokens_of(sequence)).max().unwrap_or(0);
        p.max_seq_len = longest.max(1) as u32;
        let alone = loaded.run(backend)?;
        for row in rows.iter().filter(|row| part.contains(&row.sequence)) {
            same_row(&alone, &whole, *row).map_err(|text| format!("sequences {part:?} alone: {text}"))?;
        }
    }
    Ok(measured.into())
}

fn same_row(got: &Answers, want: &Answers, row: Row) -> Result<()> {
    let (out, lse) = (want.out_strides.range(row), want.lse_strides.range(row));
    if got.out[out.clone()] != want.out[out] {
        return Err(format!("out of {row} has other bits than in the whole batch"));
    }
    if got.lse[lse.clone()] != want.lse[lse] {
        return Err(format!("lse of {row} has other bits than in the whole batch"));
    }
    Ok(())
}
