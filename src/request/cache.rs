//! A paged cache: where its pages lie in the caller's memory.

use super::{CacheView, checks};
use crate::abi::types::*;
use crate::error::{Error, Result};
use crate::layout;

const MAX_PAGE_SIZE: u32 = 1024;
/// Page ids are int32 in block tables.
const MAX_PAGES: i64 = i32::MAX as i64;

/// The pages' geometry, and the bytes from the first byte of the first page to the last byte of the last.
pub struct CacheGeometry {
    page_size: usize,
    num_pages: i64,
    num_layers: usize,
    page_stride: i64,
    layer_stride: i64,
    pub size: u64,
}

impl CacheGeometry {
    pub fn from_params(params: &snapmla_cache_params) -> Result<Self> {
        checks::flags("flags", params.flags, SNAPMLA_CACHE_KEEP_CONTENTS)?;
        page_size("page_size", params.page_size)?;
        checks::at_least_one("num_layers", params.num_layers)?;
        if params.num_layers > i32::MAX as u32 {
            return Err(Error::invalid(format!("num_layers {} is more than {}", params.num_layers, i32::MAX)));
        }
        if !(1..=MAX_PAGES).contains(&params.num_pages) {
            return Err(Error::invalid(format!("num_pages {} is not in 1..={MAX_PAGES}", params.num_pages)));
        }
        let page_bytes = layout::page_bytes(params.page_size as usize) as i64;
        let page_stride = page_stride(params, page_bytes)?;
        let page_span = span(page_bytes, ("page_stride", page_stride), ("num_pages", params.num_pages))?;
        let layer_stride = layer_stride(params, page_stride)?;
        let layers = i64::from(params.num_layers);
        if layers > 1 && layer_stride < page_span {
            // Layers do not lie outside pages, so they must lie inside.
            if layer_stride < page_bytes {
                return Err(Error::invalid(format!("layer_stride {layer_stride} is less than {page_bytes}, a page")));
            }
            let layer_span = span(page_bytes, ("layer_stride", layer_stride), ("num_layers", layers))?;
            if page_stride < layer_span {
                return Err(Error::invalid(format!(
                    "pages overlap: layer_stride {layer_stride} is less than {page_span}, the span of a layer's pages, \
                     and page_stride {page_stride} is less than {layer_span}, the span of a page's layers"
                )));
            }
        }
        Ok(Self {
            page_size: params.page_size as usize,
            num_pages: params.num_pages,
            num_layers: params.num_layers as usize,
            page_stride,
            layer_stride,
            size: span(page_span, ("layer_stride", layer_stride), ("num_layers", layers))? as u64,
        })
    }
}

impl CacheView {
    pub fn from_params(params: &snapmla_cache_params) -> Result<Self> {
        let geometry = CacheGeometry::from_params(params)?;
        checks::array("memory", params.memory, checks::CHUNK, ("num_pages", params.num_pages))?;
        if params.memory_size < geometry.size {
            return Err(Error::invalid(format!(
                "memory_size {} is less than {}, what snapmla_cache_size says",
                params.memory_size, geometry.size
            )));
        }
        Ok(Self {
            memory: params.memory.cast(),
            page_size: geometry.page_size,
            num_pages: geometry.num_pages,
            num_layers: geometry.num_layers,
            page_stride: geometry.page_stride,
            layer_stride: geometry.layer_stride,
        })
    }
}

/// Tokens a page.
pub fn page_size(name: &str, value: u32) -> Result<()> {
    if value == 0 || !value.is_multiple_of(8) || value > MAX_PAGE_SIZE {
        return Err(Error::invalid(format!("{name} {value} is not a multiple of 8 from 8 to {MAX_PAGE_SIZE}")));
    }
    Ok(())
}

fn page_stride(params: &snapmla_cache_params, page_bytes: i64) -> Result<i64> {
    if params.page_stride == 0 {
        return Ok(page_bytes);
    }
    if params.page_stride < page_bytes {
        return Err(Error::invalid(format!(
            "page_stride {} is less than {page_bytes} = {} * page_size",
            params.page_stride,
            layout::RECORD_BYTES
        )));
    }
    multiple_of_chunk("page_stride", params.page_stride)
}

fn layer_stride(params: &snapmla_cache_params, page_stride: i64) -> Result<i64> {
    match params.layer_stride {
        0 => params.num_pages.checked_mul(page_stride).ok_or_else(|| {
            Error::invalid(format!("num_pages {} * page_stride {page_stride} overflows 64 bits", params.num_pages))
        }),
        stride => multiple_of_chunk("layer_stride", stride),
    }
}

fn multiple_of_chunk(name: &str, stride: i64) -> Result<i64> {
    if stride % checks::CHUNK != 0 {
        return Err(Error::invalid(format!("{name} {stride} is not a multiple of {}", checks::CHUNK)));
    }
    Ok(stride)
}

/// Bytes of `count` blocks of `bytes`, `stride` apart.
fn span(bytes: i64, (stride_name, stride): (&str, i64), (count_name, count): (&str, i64)) -> Result<i64> {
    if count == 1 {
        return Ok(bytes);
    }
    stride
        .checked_mul(count - 1)
        .and_then(|last| last.checked_add(bytes))
        .ok_or_else(|| Error::invalid(format!("{count_name} {count} * {stride_name} {stride} overflows 64 bits")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params() -> snapmla_cache_params {
        snapmla_cache_params {
            struct_size: size_of::<snapmla_cache_params>() as u32,
            flags: 0,
            page_size: 64,
            num_layers: 3,
            num_pages: 5,
            page_stride: 0,
            layer_stride: 0,
            memory: std::ptr::null_mut(),
            memory_size: 0,
        }
    }

    #[test]
    fn packed_is_the_product() {
        assert_eq!(CacheGeometry::from_params(&params()).unwrap().size, 3 * 5 * 644 * 64);
    }

    #[test]
    fn layers_may_lie_inside_pages() {
        let page = 644 * 64;
        let inside = snapmla_cache_params { page_stride: 3 * page + 16, layer_stride: page, ..params() };
        assert_eq!(CacheGeometry::from_params(&inside).unwrap().size as i64, 4 * (3 * page + 16) + 3 * page);
        let overlap = snapmla_cache_params { page_stride: 3 * page - 16, layer_stride: page, ..params() };
        let message = CacheGeometry::from_params(&overlap).err().unwrap().message;
        assert!(message.contains("page_stride 123632 is less than 123648"), "{message}");
    }

    #[test]
    fn one_layer_needs_no_layer_stride() {
        let one = snapmla_cache_params { num_layers: 1, layer_stride: -16, ..params() };
        assert_eq!(CacheGeometry::from_params(&one).unwrap().size, 5 * 644 * 64);
    }

    #[test]
    fn sizes_past_64_bits_are_refused() {
        let most =
            snapmla_cache_params { num_pages: MAX_PAGES, page_size: 1024, num_layers: i32::MAX as u32, ..params() };
        assert!(CacheGeometry::from_params(&most).err().unwrap().message.ends_with("overflows 64 bits"));
        let far = snapmla_cache_params { page_stride: i64::MAX - 15, ..params() };
        assert!(CacheGeometry::from_params(&far).err().unwrap().message.ends_with("overflows 64 bits"));
    }
}
