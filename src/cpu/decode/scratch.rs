//! What a thread needs while it works on an item, kept from call to call.

use std::cell::Cell;

use super::plan::CHUNK_ROWS;
use super::state::{RowOutput, RowSum};
use crate::cpu::row::FloatRow;
use crate::layout::TILE_TOKENS;

/// A number for each token of a tile.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct TileRow(pub [f32; TILE_TOKENS]);

impl TileRow {
    pub const ZERO: Self = Self([0.0; TILE_TOKENS]);
}

/// Room for four vectors, of 16 lanes at most, of every pair of tokens of a tile.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct Pairs(pub [f32; TILE_TOKENS / 2 * 4 * 16]);

impl Pairs {
    pub const ZERO: Self = Self([0.0; TILE_TOKENS / 2 * 4 * 16]);
}

/// A row of the item.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Tokens it attends to, from the sequence's first.
    pub attended: usize,
    /// What the product of query and key has to be multiplied by, besides the key's scale.
    pub logit_factor: f32,
    /// In the current tile: what the earlier output is multiplied by.
    pub decay: f32,
    /// In the current tile: the scale of the quantised probabilities.
    pub weight_scale: f32,
}

/// About 440 KB, meant for a second-level cache.
pub struct Scratch {
    pub work: Work,
    /// Room for the state of an item that has no slot.
    pub outputs: Box<[RowOutput]>,
    pub sums: Box<[RowSum]>,
}

/// What an item's steps hand to each other.
pub struct Work {
    /// Keys of the current tile, which are its values too.
    pub tile: Box<[FloatRow]>,
    pub tile_scales: TileRow,
    pub queries: Box<[FloatRow]>,
    pub rows: Box<[Row]>,
    /// Products of query and key, then quantised probabilities (in pairs of BF16: the first half of a row).
    pub weights: Box<[TileRow]>,
    /// Some dims of a tile's values, in pairs of tokens.
    pub pairs: Pairs,
}

impl Scratch {
    fn new() -> Self {
        let row = Row { attended: 0, logit_factor: 0.0, decay: 0.0, weight_scale: 0.0 };
        let work = Work {
            tile: vec![FloatRow::ZERO; TILE_TOKENS].into(),
            tile_scales: TileRow::ZERO,
            queries: vec![FloatRow::ZERO; CHUNK_ROWS].into(),
            rows: vec![row; CHUNK_ROWS].into(),
            weights: vec![TileRow::ZERO; CHUNK_ROWS].into(),
            pairs: Pairs::ZERO,
        };
        Self { work, outputs: vec![RowOutput::ZERO; CHUNK_ROWS].into(), sums: vec![RowSum::EMPTY; CHUNK_ROWS].into() }
    }

    /// Lends this thread's scratch.
    pub fn with<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
        thread_local!(static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) });
        let scratch = SCRATCH.try_with(Cell::take).unwrap_or_default();
        let mut scratch = scratch.unwrap_or_else(|| Box::new(Scratch::new()));
        let result = work(&mut scratch);
        // Without thread-local storage (the thread is being torn down) the memory is just freed.
        _ = SCRATCH.try_with(|cell| cell.set(Some(scratch)));
        result
    }
}
