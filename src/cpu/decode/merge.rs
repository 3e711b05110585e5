//! Merges the partial results of a row's splits, in the order of the tokens.

use super::Call;
use super::item::write_row;
use super::plan::Group;
use super::sequence::Sequence;
use super::state::{RowOutput, RowSum};
use crate::cpu::isa::Kernel;
use crate::cpu::simd::Simd;

/// Merges what one wave has of a row with what earlier waves had; writes the row's result once it is whole.
pub fn merge_row(call: &Call, group: &Group, row: usize) {
    let partials = &call.partials;
    let mut output = RowOutput::ZERO;
    let mut sum = RowSum::EMPTY;
    let carried = group.carry_in.map(|carry| partials.carry(carry));
    for slot in carried.into_iter().chain(group.first_slot..group.first_slot + group.slots) {
        // SAFETY: the items, or the merge after the wave before, have written the row; nothing writes it now.
        let (part, part_sum) = unsafe { partials.row(slot, row) };
        call.isa.run(Merge { output: &mut output, sum: &mut sum, part, part_sum });
    }
    match group.carry_out {
        // SAFETY: each row is merged by one thread, and this carry is not the one being read.
        Some(carry) => unsafe { partials.put_row(partials.carry(carry), row, &output, sum) },
        None => {
            let sequence = Sequence::new(call.request, group.sequence);
            write_row(call, &sequence, group.first_row + row, &output, &sum);
        }
    }
}

struct Merge<'a> {
    output: &'a mut RowOutput,
    sum: &'a mut RowSum,
    part: &'a RowOutput,
    part_sum: RowSum,
}

impl Kernel for Merge<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { output, sum, part, part_sum } = self;
        if part_sum.sum == 0.0 {
            return;
        }
        let max = sum.max.max(part_sum.max);
        let weight = |max_of_part: f32| (f64::from(max_of_part) - f64::from(max)).exp();
        let (decay, weight) = (if sum.sum == 0.0 { 0.0 } else { weight(sum.max) }, weight(part_sum.max));
        *sum = RowSum { sum: sum.sum * decay + part_sum.sum * weight, max };
        let (decay, weight) = (simd.splat(decay as f32), simd.splat(weight as f32));
        for (to, from) in output.0.chunks_exact_mut(S::LANES).zip(part.0.chunks_exact(S::LANES)) {
            // SAFETY: both chunks are LANES long.
            unsafe {
                let (so_far, part) = (simd.load(to.as_ptr()), simd.load(from.as_ptr()));
                simd.store(to.as_mut_ptr(), simd.mul_add(part, weight, simd.mul(so_far, decay)));
            }
        }
    }
}
