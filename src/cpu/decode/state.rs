//! The unfinished results of rows: a sum of values, the weights' sum, and the maximum that both are relative to.

use crate::layout::CONTENT_DIM;

/// A row's sum of values, in weights relative to its maximum.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct RowOutput(pub [f32; CONTENT_DIM]);

impl RowOutput {
    pub const ZERO: Self = Self([0.0; CONTENT_DIM]);
}

/// The other half of a row's state. `sum` 0 means that the row has attended to nothing yet.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RowSum {
    /// Sum of e^(logit - max). Double, so that the log-sum-exp does not drift over many splits.
    pub sum: f64,
    /// Largest logit.
    pub max: f32,
}

impl RowSum {
    pub const EMPTY: Self = Self { sum: 0.0, max: f32::NEG_INFINITY };

    /// Natural log of the sum of e^logit; -inf for none.
    pub fn lse(&self) -> f32 {
        if self.sum == 0.0 { f32::NEG_INFINITY } else { (f64::from(self.max) + self.sum.ln()) as f32 }
    }

    /// What the row's output has to be multiplied by at the end.
    pub fn factor(&self) -> f32 {
        if self.sum == 0.0 { 1.0 } else { (1.0 / self.sum) as f32 }
    }
}

/// The state of an item's rows.
pub struct State<'a> {
    pub outputs: &'a mut [RowOutput],
    pub sums: &'a mut [RowSum],
}

impl State<'_> {
    pub fn clear(&mut self) {
        self.outputs.fill(RowOutput::ZERO);
        self.sums.fill(RowSum::EMPTY);
    }
}

/// Bytes of a slot: `rows` outputs, then as many sums.
pub const fn slot_bytes(rows: usize) -> usize {
    (rows * (size_of::<RowOutput>() + size_of::<RowSum>())).next_multiple_of(256)
}

/// The caller's workspace: slots for partial results, then two more for the rows carried from wave to wave.
#[derive(Debug, Clone, Copy)]
pub struct Partials {
    base: *mut u8,
    slots: usize,
    rows: usize,
}

impl Partials {
    /// Slots of `rows` rows in `bytes` bytes. `base` is 256-byte aligned, or NULL when there are none.
    pub fn new(base: *mut u8, bytes: usize, rows: usize) -> Self {
        Self { base, slots: (bytes / slot_bytes(rows)).saturating_sub(2), rows }
    }

    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Most rows of a slot.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Where carry 0 or 1 lies, as a slot.
    pub fn carry(&self, carry: usize) -> usize {
        self.slots + carry
    }

    fn slot(&self, slot: usize) -> (*mut RowOutput, *mut RowSum) {
        let base = self.base.wrapping_add(slot * slot_bytes(self.rows));
        (base.cast(), base.wrapping_add(self.rows * size_of::<RowOutput>()).cast())
    }

    /// The first `rows` rows of a slot, to be written.
    ///
    /// # Safety
    /// Nobody else uses the slot meanwhile.
    pub unsafe fn state<'a>(&self, slot: usize, rows: usize) -> State<'a> {
        let (outputs, sums) = self.slot(slot);
        // SAFETY: the slot is in the workspace, aligned, and the caller's alone; any bits are floats.
        unsafe {
            State {
                outputs: std::slice::from_raw_parts_mut(outputs, rows),
                sums: std::slice::from_raw_parts_mut(sums, rows),
            }
        }
    }

    /// One row of a slot.
    ///
    /// # Safety
    /// The row has been written, and nobody writes it meanwhile.
    pub unsafe fn row<'a>(&self, slot: usize, row: usize) -> (&'a RowOutput, RowSum) {
        let (outputs, sums) = self.slot(slot);
        // SAFETY: the slot is in the workspace and aligned, and nobody writes the row.
        unsafe { (&*outputs.add(row), *sums.add(row)) }
    }

    /// Writes one row of a slot.
    ///
    /// # Safety
    /// Nobody else uses the row meanwhile.
    pub unsafe fn put_row(&self, slot: usize, row: usize, output: &RowOutput, sum: RowSum) {
        let (outputs, sums) = self.slot(slot);
        // SAFETY: the slot is in the workspace and aligned, and the row the caller's alone.
        unsafe {
            outputs.add(row).write(*output);
            sums.add(row).write(sum);
        }
    }
}
