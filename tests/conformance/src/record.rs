//! The cache format and the quantiser, written from the contract and not from the library.

use crate::bits::{E4M3, bf16, e4m3, from_bf16};

pub const CONTENT: usize = 512;
pub const ROPE: usize = 64;
pub const RECORD_BYTES: usize = 644;

/// Content and rope of a token or a query head.
pub type Numbers = ([f32; CONTENT], [f32; ROPE]);

/// One quantised row: a token of the cache, or one head of a query.
#[derive(Clone, PartialEq)]
pub struct Record {
    pub content: [u8; CONTENT],
    pub rope: [u16; ROPE],
    pub scale: f32,
}

/// Largest magnitude; a NaN is no magnitude.
fn largest(row: &[f32]) -> f32 {
    let mut largest = 0.0;
    for x in row {
        if x.abs() > largest {
            largest = x.abs();
        }
    }
    largest
}

impl Record {
    pub const POISON: Record = Record { content: [0xFF; CONTENT], rope: [0xFFFF; ROPE], scale: f32::NAN };

    pub fn quantise(content: &[f32], rope: &[f32]) -> Self {
        let mut scale = largest(content) / 448.0;
        if scale == 0.0 {
            scale = 1.0;
        }
        let least = largest(rope) * 2f32.powi(-60);
        if scale < least {
            scale = least;
        }
        Record {
            content: std::array::from_fn(|i| e4m3(content[i] / scale)),
            rope: std::array::from_fn(|j| bf16(rope[j] / scale)),
            scale,
        }
    }

    /// The numbers that the record stands for, before its scale.
    pub fn unpack(&self, content: &mut [f32; CONTENT], rope: &mut [f32; ROPE]) {
        for (to, from) in content.iter_mut().zip(&self.content) {
            *to = E4M3[*from as usize];
        }
        for (to, from) in rope.iter_mut().zip(&self.rope) {
            *to = from_bf16(*from);
        }
    }
}

/// Where byte `byte` of 128-byte row `row` stands: the eight 16-byte chunks are permuted by the row's number.
fn swizzled(row: usize, byte: usize) -> usize {
    ((byte / 16) ^ (row % 8)) * 16 + byte % 16
}

/// Offset in a page of dimension `dim` of record `row`'s content.
pub fn content_offset(page_size: usize, row: usize, dim: usize) -> usize {
    dim / 128 * (128 * page_size) + row * 128 + swizzled(row, dim % 128)
}

/// Offset in a page of dimension `dim` of record `row`'s rope.
pub fn rope_offset(page_size: usize, row: usize, dim: usize) -> usize {
    512 * page_size + row * 128 + swizzled(row, 2 * dim)
}

/// Offset in a page of record `row`'s scale.
pub fn scale_offset(page_size: usize, row: usize) -> usize {
    640 * page_size + 4 * row
}

pub fn write(page: &mut [u8], page_size: usize, row: usize, record: &Record) {
    for first in (0..CONTENT).step_by(16) {
        let at = content_offset(page_size, row, first);
        page[at..at + 16].copy_from_slice(&record.content[first..first + 16]);
    }
    for (dim, x) in record.rope.iter().enumerate() {
        let at = rope_offset(page_size, row, dim);
        page[at..at + 2].copy_from_slice(&x.to_le_bytes());
    }
    let at = scale_offset(page_size, row);
    page[at..at + 4].copy_from_slice(&record.scale.to_le_bytes());
}

pub fn read(page: &[u8], page_size: usize, row: usize) -> Record {
    let mut record = Record::POISON;
    for first in (0..CONTENT).step_by(16) {
        let at = content_offset(page_size, row, first);
        record.content[first..first + 16].copy_from_slice(&page[at..at + 16]);
    }
    for (dim, x) in record.rope.iter_mut().enumerate() {
        let at = rope_offset(page_size, row, dim);
        *x = u16::from_le_bytes([page[at], page[at + 1]]);
    }
    let at = scale_offset(page_size, row);
    record.scale = f32::from_le_bytes(page[at..at + 4].try_into().expect("four bytes"));
    record
}

/// Which part of which record a byte of a page belongs to, for messages.
pub fn name_of_byte(page_size: usize, offset: usize) -> String {
    let row = offset / 128 % page_size;
    let byte = offset % 128;
    let logical = swizzled(row, byte);
    if offset < 512 * page_size {
        format!("content[{}] of record {row}", offset / (128 * page_size) * 128 + logical)
    } else if offset < 640 * page_size {
        format!("rope[{}] of record {row}", logical / 2)
    } else if offset < RECORD_BYTES * page_size {
        format!("scale of record {}", (offset - 640 * page_size) / 4)
    } else {
        "no record (past the page)".to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prng::Rng;

    #[test]
    fn a_page_is_written_wholly_and_read_back() {
        for page_size in [8, 24, 64] {
            let mut rng = Rng::new(3);
            let mut page = vec![0xCD; RECORD_BYTES * page_size];
            let records: Vec<Record> = (0..page_size)
                .map(|_| Record {
                    content: std::array::from_fn(|_| rng.bits() as u8 & 0x77),
                    rope: std::array::from_fn(|_| rng.bits() as u16 & 0x7777),
                    scale: 1.0,
                })
                .collect();
            for (row, record) in records.iter().enumerate() {
                write(&mut page, page_size, row, record);
            }
            assert!(!page.contains(&0xCD));
            for (row, record) in records.iter().enumerate() {
                assert!(read(&page, page_size, row) == *record);
            }
        }
    }

    #[test]
    fn bytes_are_named_as_they_are_placed() {
        let at = content_offset(16, 5, 300);
        assert_eq!(name_of_byte(16, at), "content[300] of record 5");
        assert_eq!(name_of_byte(16, rope_offset(16, 9, 33)), "rope[33] of record 9");
        assert_eq!(name_of_byte(16, scale_offset(16, 15)), "scale of record 15");
    }
}
