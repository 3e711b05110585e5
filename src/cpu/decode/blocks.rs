//! Register blocks of rows.

use std::ops::Range;

/// Cuts `rows` into as few blocks of at most `most` as there can be, of nearly equal size: a small block left over at
/// the end would take nearly the time of a large one.
pub fn even_blocks(rows: Range<usize>, most: usize) -> impl Iterator<Item = Range<usize>> {
    let blocks = rows.len().div_ceil(most).max(1);
    let size = rows.len().div_ceil(blocks).max(1);
    rows.clone().step_by(size).map(move |first| first..rows.end.min(first + size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_the_rows_evenly() {
        for first in [0, 3] {
            for n in 0..70 {
                let blocks: Vec<_> = even_blocks(first..first + n, 12).collect();
                assert_eq!(blocks.len(), n.div_ceil(12));
                assert!(blocks.iter().all(|block| (1..=12).contains(&block.len())));
                assert!(blocks.iter().cloned().flatten().eq(first..first + n));
            }
        }
    }
}
