//! The cache of a case: which page holds what, and the suite's own copy of its bytes.

use rayon::prelude::*;

use super::Case;
use crate::memory::Result;
use crate::memory::host::Sparse;
use crate::prng::Rng;
use crate::record::{self, CONTENT, Numbers, RECORD_BYTES, ROPE, Record};

/// What a block-table entry holds that must not be read.
pub const NO_PAGE: i32 = 2_147_480_000;

/// Where layers and pages lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// One layer, pages side by side, strides passed as 0.
    Single,
    /// Layers one after the other.
    LayersOutside(usize),
    /// Layers inside each page, 48 bytes between them.
    LayersInside(usize),
    /// One layer, this many bytes from a page to the next.
    Spread(i64),
    /// Two layers, this many bytes from one to the next.
    FarLayers(i64),
}

/// How sequences share pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// Each sequence has its own, scattered over the cache among poisoned ones.
    Private,
    /// Full pages are drawn from this many; last partial pages are shared by equal lengths. For long sequences.
    Drawn(usize),
    /// Each its own, in ascending order behind this many pages that are never touched (and not poisoned).
    Behind(usize),
}

#[derive(Debug, Clone, Copy)]
pub struct Geometry {
    pub page_size: usize,
    pub num_pages: usize,
    pub num_layers: usize,
    pub page_stride: i64,
    pub layer_stride: i64,
    /// Strides are passed as 0.
    pub packed: bool,
}

impl Geometry {
    pub fn new(placement: Placement, page_size: usize, num_pages: usize) -> Self {
        let blob = (RECORD_BYTES * page_size) as i64;
        let all = blob * num_pages as i64;
        let (num_layers, page_stride, layer_stride) = match placement {
            Placement::Single => (1, blob, all),
            Placement::LayersOutside(layers) => (layers, blob, all + 32),
            Placement::LayersInside(layers) => (layers, layers as i64 * (blob + 48), blob + 48),
            Placement::Spread(stride) => (1, stride, 0),
            Placement::FarLayers(stride) => (2, blob, stride),
        };
        let packed = placement == Placement::Single;
        Self { page_size, num_pages, num_layers, page_stride, layer_stride, packed }
    }

    pub fn page_bytes(&self) -> usize {
        RECORD_BYTES * self.page_size
    }

    /// Where a page begins.
    pub fn page(&self, layer: usize, page: usize) -> usize {
        (layer as i64 * self.layer_stride + page as i64 * self.page_stride) as usize
    }

    /// Bytes from the cache's start to its last page's end.
    pub fn span(&self) -> usize {
        self.page(self.num_layers - 1, self.num_pages - 1) + self.page_bytes()
    }
}

/// The suite's copy of a cache, and the block table into it.
pub struct Image {
    pub geometry: Geometry,
    pub layer: usize,
    pub bytes: Sparse,
    /// [batch][columns]
    pub table: Vec<i32>,
    pub columns: usize,
    /// The pages that hold tokens.
    pub written: Vec<usize>,
    /// Everything else is poison. Not so where pages are far apart: filling the gaps would cost real memory.
    pub poisoned: bool,
}

/// A page to write: the first `count` records are the tokens of `sequence` from `first` on.
struct Plan {
    page: usize,
    sequence: usize,
    first: usize,
    count: usize,
}

impl Image {
    pub fn build(case: &Case) -> Result<Self> {
        let columns = case.columns();
        let mut table = vec![NO_PAGE; case.batch() * columns];
        let mut rng = Rng::of(case.seed, 1, 1);
        let (plans, num_pages) = assign(case, columns, &mut table, &mut rng);
        let geometry = Geometry::new(case.placement, case.page_size, num_pages);
        let mut bytes = Sparse::new(geometry.span())?;
        let far = matches!(case.placement, Placement::Spread(_) | Placement::FarLayers(_));
        let poisoned = !far && !matches!(case.pages, Pages::Behind(_));
        if poisoned {
            bytes.par_chunks_mut(1 << 20).for_each(|chunk| chunk.fill(0xFF));
        }
        let written = plans.iter().map(|plan| plan.page).collect();
        // A few hundred pages at a time: made on all cores, put in place on one.
        for plans in plans.chunks(512) {
            let pages: Vec<Vec<u8>> = plans.par_iter().map(|plan| make_page(case, plan)).collect();
            for (plan, page) in plans.iter().zip(pages) {
                let at = geometry.page(case.layer, plan.page);
                bytes[at..at + page.len()].copy_from_slice(&page);
            }
        }
        Ok(Self { geometry, layer: case.layer, bytes, table, columns, written, poisoned })
    }

    /// The page that holds a sequence's token, and the record in it.
    pub fn find(&self, sequence: usize, token: usize) -> (usize, usize) {
        let page = self.table[sequence * self.columns + token / self.geometry.page_size];
        (page as usize, token % self.geometry.page_size)
    }

    pub fn record(&self, sequence: usize, token: usize) -> Record {
        let (page, row) = self.find(sequence, token);
        record::read(self.page_bytes(page), self.geometry.page_size, row)
    }

    pub fn put_record(&mut self, sequence: usize, token: usize, record: &Record) {
        let (page, row) = self.find(sequence, token);
        let at = self.geometry.page(self.layer, page);
        let end = at + self.geometry.page_bytes();
        record::write(&mut self.bytes[at..end], self.geometry.page_size, row, record);
    }

    pub fn page_bytes(&self, page: usize) -> &[u8] {
        let at = self.geometry.page(self.layer, page);
        &self.bytes[at..at + self.geometry.page_bytes()]
    }
}

/// Fills the block table; says which pages to write and how many there are.
fn assign(case: &Case, columns: usize, table: &mut [i32], rng: &mut Rng) -> (Vec<Plan>, usize) {
    let page_size = case.page_size;
    let needs: Vec<usize> = (0..case.batch()).map(|b| case.tokens_of(b).div_ceil(page_size)).collect();
    let needed: usize = needs.iter().sum();
    if let Pages::Drawn(pool) = case.pages {
        return draw(case, columns, table, rng, pool);
    }
    let before = if let Pages::Behind(pages) = case.pages { pages } else { needed / 8 + 2 };
    let num_pages = needed + before;
    let mut ids: Vec<usize> = (0..num_pages).collect();
    match case.pages {
        Pages::Behind(pages) => drop(ids.drain(..pages)),
        _ => rng.shuffle(&mut ids),
    }
    let mut plans = Vec::with_capacity(needed);
    for (sequence, &need) in needs.iter().enumerate() {
        for column in 0..need {
            let page = ids[plans.len()];
            table[sequence * columns + column] = page as i32;
            let first = column * page_size;
            plans.push(Plan { page, sequence, first, count: (case.tokens_of(sequence) - first).min(page_size) });
        }
    }
    (plans, num_pages)
}

/// As [`assign`], with full pages drawn from a pool and one partial page for each count of records.
fn draw(case: &Case, columns: usize, table: &mut [i32], rng: &mut Rng, pool: usize) -> (Vec<Plan>, usize) {
    let page_size = case.page_size;
    let plan = |page: usize, count: usize| Plan { page, sequence: page, first: 0, count };
    let mut plans: Vec<Plan> = (0..pool).map(|page| plan(page, page_size)).collect();
    let mut partial = vec![None; page_size];
    for sequence in 0..case.batch() {
        let tokens = case.tokens_of(sequence);
        for column in 0..tokens / page_size {
            table[sequence * columns + column] = rng.below(pool) as i32;
        }
        let rest = tokens % page_size;
        if rest > 0 {
            let page = *partial[rest].get_or_insert_with(|| {
                plans.push(plan(plans.len(), rest));
                plans.len() - 1
            });
            table[sequence * columns + tokens / page_size] = page as i32;
        }
    }
    let num_pages = plans.len() + 2;
    (plans, num_pages)
}

/// A page's bytes: records of its tokens, poison behind them.
fn make_page(case: &Case, plan: &Plan) -> Vec<u8> {
    let mut page = vec![0xFF; RECORD_BYTES * case.page_size];
    for row in 0..plan.count {
        let (content, rope) = numbers_of_token(case, plan.sequence, plan.first + row);
        record::write(&mut page, case.page_size, row, &Record::quantise(&content, &rope));
    }
    page
}

/// A token as it was before it was quantised.
pub fn numbers_of_token(case: &Case, sequence: usize, position: usize) -> Numbers {
    let (mut content, mut rope) = ([0.0; CONTENT], [0.0; ROPE]);
    let mut rng = Rng::of(case.seed ^ 0x70AD, sequence as u64, position as u64);
    (case.tokens)(&mut rng, sequence, position, &mut content, &mut rope);
    (content, rope)
}
