//! Strides: defaults filled in, rows kept apart, 64-bit arithmetic that cannot overflow later.

use super::Dtype;
use crate::error::{Error, Result};

/// One tensor's innermost rows.
#[derive(Clone, Copy)]
pub struct Row {
    /// Bytes of a row.
    pub bytes: i64,
    /// Every stride is a multiple of this.
    pub unit: i64,
}

impl Row {
    /// One F32, such as a log-sum-exp.
    pub const F32: Self = Self { bytes: 4, unit: 4 };

    /// `dim` numbers.
    pub fn of(dim: usize, dtype: Dtype) -> Self {
        Self { bytes: (dim * dtype.bytes()) as i64, unit: dtype.bytes() as i64 }
    }
}

/// One dimension over the rows.
#[derive(Clone, Copy)]
pub struct Dim {
    /// The stride's name in the caller's struct.
    pub name: &'static str,
    /// The caller's bytes; 0 means packed.
    pub stride: i64,
    /// Entries, or the most there can be.
    pub count: i64,
    /// Whether `count` is known and not only bounded.
    pub exact: bool,
}

impl Dim {
    pub fn new(name: &'static str, stride: i64, count: i64) -> Self {
        Self { name, stride, count, exact: true }
    }

    /// A dimension whose length only the device knows.
    pub fn bounded(name: &'static str, stride: i64, count: i64) -> Self {
        Self { name, stride, count, exact: false }
    }
}

/// The strides in bytes, given dimensions from the innermost out.
///
/// A dimension of one entry strides nowhere: frameworks leave anything there, so it is not looked at. Any order of
/// the dimensions in memory will do, but one's entries must not run into each other: each stride is at least the span
/// of the dimensions with smaller ones, which also finds strides given in elements.
pub fn resolve<const N: usize>(row: Row, mut dims: [Dim; N]) -> Result<[i64; N]> {
    let mut packed = row.bytes;
    for dim in &mut dims {
        if dim.stride == 0 || dim.count <= 1 {
            dim.stride = packed;
        }
        // Before any stride is derived from it.
        if dim.stride < row.bytes {
            return Err(Error::invalid(too_small(dim, row.bytes, None)));
        }
        packed = product(dim.count.max(1), dim)?;
    }
    let strides = dims.map(|dim| dim.stride);
    dims.sort_unstable_by_key(|dim| dim.stride);
    let mut inner: Option<Dim> = None;
    let (mut span, mut reach) = (row.bytes, row.bytes);
    for dim in dims.into_iter().filter(|dim| dim.count > 1) {
        if dim.stride < span {
            return Err(Error::invalid(too_small(&dim, span, inner)));
        }
        if dim.stride % row.unit != 0 {
            return Err(Error::invalid(format!("{} {} is not a multiple of {}", dim.name, dim.stride, row.unit)));
        }
        let last = product(dim.count - 1, &dim)?;
        reach = reach.checked_add(last).ok_or_else(|| overflow(&dim))?;
        if dim.exact {
            span += last;
            inner = Some(dim);
        }
    }
    Ok(strides)
}

fn product(count: i64, dim: &Dim) -> Result<i64> {
    count.checked_mul(dim.stride).ok_or_else(|| overflow(dim))
}

fn overflow(dim: &Dim) -> Error {
    Error::invalid(format!("{} {} * {} entries overflows 64 bits", dim.name, dim.stride, dim.count))
}

fn too_small(dim: &Dim, span: i64, inner: Option<Dim>) -> String {
    let why = match inner {
        None => "the bytes of a row".to_owned(),
        Some(inner) => format!("the span of {} rows at {} {}", inner.count, inner.name, inner.stride),
    };
    format!("{} {} is less than {span}, {why} (strides are bytes)", dim.name, dim.stride)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Row = Row { bytes: 1024, unit: 2 };

    fn two(head: i64, heads: i64, token: i64, tokens: i64) -> Result<[i64; 2]> {
        resolve(ROW, [Dim::new("head_stride", head, heads), Dim::new("token_stride", token, tokens)])
    }

    fn message<T>(result: Result<T>) -> String {
        result.err().expect("refused").message
    }

    #[test]
    fn zero_means_packed_on_what_is_inside() {
        assert_eq!(two(0, 16, 0, 4).unwrap(), [1024, 16384]);
        assert_eq!(two(2048, 16, 0, 4).unwrap(), [2048, 32768]);
    }

    #[test]
    fn any_order_in_memory_will_do() {
        // [heads][tokens][512], as a batched matrix product leaves absorbed queries.
        assert_eq!(two(4 * 1024, 16, 1024, 4).unwrap(), [4096, 1024]);
    }

    #[test]
    fn one_entry_strides_nowhere() {
        assert_eq!(two(3, 1, -7, 1).unwrap(), [1024, 1024]);
        assert_eq!(two(3, 1, i64::MAX, 0).unwrap(), [1024, 1024]);
    }

    #[test]
    fn entries_must_not_run_into_each_other() {
        assert_eq!(
            message(two(512, 16, 0, 4)),
            "head_stride 512 is less than 1024, the bytes of a row (strides are bytes)"
        );
        assert_eq!(
            message(two(-2, 16, 16384, 4)),
            "head_stride -2 is less than 1024, the bytes of a row (strides are bytes)"
        );
        let text =
            "token_stride 8192 is less than 16384, the span of 16 rows at head_stride 1024 (strides are bytes)";
        assert_eq!(message(two(0, 16, 8192, 4)), text);
        assert!(message(two(2048, 2, 2048, 2)).contains("is less than 3072"));
    }

    #[test]
    fn a_bounded_dimension_may_be_shorter_than_its_bound() {
        let head = |stride| Dim::new("head_stride", stride, 2);
        let token = |stride| Dim::bounded("token_stride", stride, 100);
        assert!(resolve(ROW, [head(3 * 1024), token(1024)]).is_ok());
        assert!(message(resolve(ROW, [head(1024), token(1026)])).contains("token_stride 1026 is less than 2048"));
    }

    #[test]
    fn whole_elements_only() {
        assert_eq!(message(two(1025, 16, 0, 4)), "head_stride 1025 is not a multiple of 2");
    }

    #[test]
    fn sixty_four_bits_are_enough_or_it_is_said() {
        for result in [two(i64::MAX - 1, 16, 0, 4), two(0, 16, i64::MAX / 2 + 1, 4), two(i64::MIN, 16, 0, 4)] {
            assert!(result.is_err());
        }
        assert!(message(two(0, 16, i64::MAX / 3 - 1, 4)).contains("overflows 64 bits"));
        assert!(message(two(0, 16, 0, i64::MAX / 2)).contains("token_stride 16384 * 4611686018427387903 entries"));
    }
}
