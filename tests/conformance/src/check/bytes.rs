//! Byte for byte.

use crate::memory::Result;

/// Where two byte strings first differ, told by `name`, and how many bytes do.
pub fn first_difference(what: &str, got: &[u8], want: &[u8], name: impl Fn(usize) -> String) -> Result<()> {
    if got.len() != want.len() {
        return Err(format!("{what}: {} bytes, not {}", got.len(), want.len()));
    }
    let Some(first) = got.iter().zip(want).position(|(got, want)| got != want) else { return Ok(()) };
    let count = got.iter().zip(want).filter(|(got, want)| got != want).count();
    let (got, want) = (got[first], want[first]);
    Err(format!(
        "{what}: {count} bytes differ, the first at byte {first}, {}: {got:#04x}, not {want:#04x}",
        name(first)
    ))
}

/// Checks that every byte outside `written` still is `before`.
pub fn untouched(
    what: &str,
    bytes: &[u8],
    before: u8,
    written: impl Iterator<Item = std::ops::Range<usize>>,
) -> Result<()> {
    let mut ranges: Vec<_> = written.collect();
    ranges.sort_by_key(|range| range.start);
    let mut at = 0;
    let end = bytes.len();
    for range in ranges.into_iter().chain(std::iter::once(end..end)) {
        let gap = at.min(range.start)..range.start;
        if let Some(found) = bytes[gap.clone()].iter().position(|&byte| byte != before) {
            return Err(format!("{what}: byte {}, which belongs to no row, was written", gap.start + found));
        }
        at = range.end;
    }
    Ok(())
}
