//! Rules that several requests share, each with its one error text.

use super::Dtype;
use crate::abi::types::*;
use crate::error::{Error, Result};

/// Most query heads in one call.
pub const MAX_HEADS: u32 = SNAPMLA_MAX_HEADS;

/// Tokens of a sequence, and query tokens of a call, are counted in int32 by the caller's own arrays.
pub const MAX_TOKENS: u32 = i32::MAX as u32;

/// Alignment of what one 16-byte load or bulk copy reads.
pub const CHUNK: i64 = 16;

pub fn flags(name: &str, value: u32, known: u32) -> Result<()> {
    if value & !known != 0 {
        return Err(Error::invalid(format!("{name} {value:#x} has bits other than {known:#x}")));
    }
    Ok(())
}

pub fn reserved(name: &str, value: u32) -> Result<()> {
    if value != 0 {
        return Err(Error::invalid(format!("{name} is {value}, must be 0")));
    }
    Ok(())
}

pub fn dtype(name: &str, value: snapmla_dtype) -> Result<Dtype> {
    match value {
        SNAPMLA_DTYPE_BF16 => Ok(Dtype::Bf16),
        SNAPMLA_DTYPE_F16 => Ok(Dtype::F16),
        SNAPMLA_DTYPE_F32 => Ok(Dtype::F32),
        _ => Err(Error::invalid(format!(
            "{name} {value} is none of {SNAPMLA_DTYPE_BF16} (BF16), {SNAPMLA_DTYPE_F16} (F16), {SNAPMLA_DTYPE_F32} (F32)"
        ))),
    }
}

pub fn at_least_one(name: &str, value: u32) -> Result<u32> {
    if value == 0 {
        return Err(Error::invalid(format!("{name} is 0, must be at least 1")));
    }
    Ok(value)
}

pub fn heads(name: &str, value: u32) -> Result<u32> {
    if value == 0 || value > MAX_HEADS {
        return Err(Error::invalid(format!("{name} {value} is not in 1..={MAX_HEADS}")));
    }
    Ok(value)
}

pub fn layer(value: i32, num_layers: usize) -> Result<usize> {
    match usize::try_from(value) {
        Ok(layer) if layer < num_layers => Ok(layer),
        _ => Err(Error::invalid(format!("layer {value} is not in 0..{num_layers}, the cache's layers"))),
    }
}

/// A count that may be 0.
pub fn count(name: &str, value: i64) -> Result<i64> {
    if value < 0 {
        return Err(Error::invalid(format!("{name} {value} is less than 0")));
    }
    Ok(value)
}

/// `a * b` query tokens.
pub fn tokens(a: (&str, u32), b: (&str, u32)) -> Result<i64> {
    let product = u64::from(a.1) * u64::from(b.1);
    if product > u64::from(MAX_TOKENS) {
        return Err(Error::invalid(format!("{} {} * {} {} is more than {MAX_TOKENS}", a.0, a.1, b.0, b.1)));
    }
    Ok(product as i64)
}

/// An array that is needed when there is anything to count, and then must be aligned. It has `count` times `align` bytes
/// or more.
pub fn array<T>(name: &str, ptr: *const T, align: i64, (counter, count): (&str, i64)) -> Result<()> {
    if count > 0 && ptr.is_null() {
        return Err(Error::invalid(format!("{name} is NULL, but {counter} is {count}")));
    }
    if count > i64::MAX / align {
        return Err(Error::invalid(format!("{counter} {count} * {align} bytes of {name} overflows 64 bits")));
    }
    optional(name, ptr, align)
}

/// An array that may be NULL.
pub fn optional<T>(name: &str, ptr: *const T, align: i64) -> Result<()> {
    if !(ptr as u64).is_multiple_of(align as u64) {
        return Err(Error::invalid(format!("{name} {ptr:p} is not a multiple of {align}")));
    }
    Ok(())
}
