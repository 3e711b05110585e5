//! One item: its queries, then tile by tile scores, softmax and values, then the result.

use super::Call;
use super::numbers::put_row;
use super::plan::{Item, SPLIT_TOKENS};
use super::scores::Scores;
use super::scratch::{Scratch, Work};
use super::sequence::Sequence;
use super::softmax::Softmax;
use super::state::{RowOutput, RowSum, State};
use super::tile::LoadTile;
use super::values::Values;
use crate::cpu::isa::Kernel;
use crate::cpu::row::{FloatRow, QuantisedRow, narrow, quantise};
use crate::cpu::simd::Simd;
use crate::layout::{CONTENT_DIM, ROPE_DIM, TILE_TOKENS};
use crate::request::{DecodeRequest, Queries};

pub fn decode_item(call: &Call, item: &Item) {
    let sequence = Sequence::new(call.request, item.sequence);
    Scratch::with(|scratch| match item.slot {
        Some(slot) => {
            // SAFETY: the slot is this item's alone until the wave has run.
            let mut state = unsafe { call.partials.state(slot, item.rows) };
            attend(call, &sequence, item, &mut scratch.work, &mut state);
        }
        None => {
            let (outputs, sums) = (&mut scratch.outputs[..item.rows], &mut scratch.sums[..item.rows]);
            attend(call, &sequence, item, &mut scratch.work, &mut State { outputs, sums });
            for (i, (output, sum)) in scratch.outputs.iter().zip(&scratch.sums).take(item.rows).enumerate() {
                write_row(call, &sequence, item.first_row + i, output, sum);
            }
        }
    });
}

/// Puts the split's part of every row into `state`.
fn attend(call: &Call, sequence: &Sequence, item: &Item, work: &mut Work, state: &mut State) {
    state.clear();
    let end = sequence.len.min(item.first_token + SPLIT_TOKENS);
    // Rows come in the order of their query tokens, so the last attends to the most.
    let end = end.min(sequence.attended(call.request, item.first_row + item.rows - 1));
    if item.first_token >= end {
        return;
    }
    call.isa.run(LoadQueries { request: call.request, sequence, item, work });
    for first_token in (item.first_token..end).step_by(TILE_TOKENS) {
        let tokens = TILE_TOKENS.min(end - first_token);
        let spoiled = call.isa.run(LoadTile { call, sequence, first_token, tokens, work });
        let first_row = work.rows[..item.rows].partition_point(|row| row.attended <= first_token);
        let rows = first_row..item.rows;
        call.isa.run(Scores { rows: rows.clone(), tokens, work });
        call.isa.run(Softmax { rows: rows.clone(), first_token, tokens, work, sums: state.sums });
        call.isa.run(Values { rows, first_token, tokens, spoiled, work, outputs: state.outputs });
    }
}

/// Writes a finished row's output and log-sum-exp.
pub fn write_row(call: &Call, sequence: &Sequence, row: usize, output: &RowOutput, sum: &RowSum) {
    let request = call.request;
    let heads = request.num_heads as usize;
    call.isa.run(WriteOutput { request, output, factor: sum.factor(), to: sequence.at(&request.out, heads, row) });
    if !request.lse.ptr.is_null() {
        // SAFETY: the caller's tensor has an entry for every row.
        unsafe { sequence.at(&request.lse, heads, row).write_unaligned(sum.lse()) };
    }
}

struct WriteOutput<'a> {
    request: &'a DecodeRequest,
    output: &'a RowOutput,
    factor: f32,
    to: *mut u8,
}

impl Kernel for WriteOutput<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        // SAFETY: the caller's tensor has 512 numbers in every row.
        unsafe { narrow(simd, self.request.out_dtype, &self.output.0, self.factor, self.to) };
    }
}

struct LoadQueries<'a> {
    request: &'a DecodeRequest,
    sequence: &'a Sequence,
    item: &'a Item,
    work: &'a mut Work,
}

impl Kernel for LoadQueries<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { request, sequence, item, work } = self;
        let heads = request.num_heads as usize;
        let mut raw = FloatRow::ZERO;
        let mut quantised = QuantisedRow::ZERO;
        for i in 0..item.rows {
            let row = item.first_row + i;
            let content = sequence.at(&request.q_content, heads, row);
            let rope = sequence.at(&request.q_rope, heads, row);
            // SAFETY: the caller's tensors hold 512 and 64 numbers and, where they are quantised, a scale for
            // every row.
            unsafe {
                match &request.queries {
                    Queries::Raw(dtype) => {
                        raw.widen(simd, *dtype, content, rope);
                        quantise(simd, &raw, &mut quantised);
                    }
                    Queries::Quantised(scales) => {
                        content.copy_to_nonoverlapping(quantised.content.as_mut_ptr(), CONTENT_DIM);
                        rope.copy_to_nonoverlapping(quantised.rope.as_mut_ptr().cast(), ROPE_DIM * 2);
                        quantised.scale = sequence.at(scales, heads, row).read_unaligned();
                    }
                }
            }
            put_row(simd, &quantised, &mut work.queries[i]);
            work.rows[i].attended = sequence.attended(request, row);
            work.rows[i].logit_factor = request.softmax_scale * quantised.scale;
        }
    }
}
