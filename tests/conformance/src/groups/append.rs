use std::ffi::c_void;

use snapmla::abi::types::snapmla_k_append_params;

use super::{Suite, samples};
use crate::backend::{Backend, Cache, init};
use crate::bits::Float;
use crate::case::{Geometry, Placement};
use crate::check::first_difference;
use crate::memory::{Buffer, Result, bytes_of};
use crate::prng::Rng;
use crate::record::{self, CONTENT, ROPE, Record};
use crate::report::Metrics;

/// What the cache holds before: neither zero nor a number that a quantiser would write everywhere.
const BEFORE: u8 = 0xA5;

/// How a caller's rows stand.
#[derive(Debug, Clone, Copy)]
enum Rows {
    Packed,
    /// Three elements between rows, the base one element in.
    Padded,
    /// Content and rope in one row of 576.
    Fused,
    /// Rope before content in one row of 576, as some engines have it.
    RopeFirst,
}

pub fn run(suite: &mut Suite) {
    let placements = [Placement::Single, Placement::LayersOutside(3), Placement::LayersInside(3)];
    let rows = [Rows::Packed, Rows::Padded, Rows::Fused, Rows::RopeFirst];
    let mut turn = 0;
    for page_size in [8, 16, 24, 32, 64, 128, 256] {
        for placement in placements {
            for element in Float::ALL {
                let rows = rows[turn % rows.len()];
                turn += 1;
                let name = format!("{}-{page_size}-{placement:?}-{rows:?}", element.name());
                suite
                    .case(name, |backend| append(backend, element, Geometry::new(placement, page_size, 5), 70, rows));
            }
        }
    }
    for (element, rows) in Float::ALL.into_iter().flat_map(|element| rows.map(|rows| (element, rows))) {
        suite.case(format!("{}-{rows:?}", element.name()), |backend| {
            append(backend, element, Geometry::new(Placement::Single, 64, 3), 150, rows)
        });
    }
    let tokens = suite.pick(4_000, 30_000);
    suite.case(format!("bf16-{tokens}-tokens"), |backend| {
        let geometry = Geometry::new(Placement::Single, 64, tokens / 64 + 40);
        append(backend, Float::Bf16, geometry, tokens, Rows::Packed)
    });
    suite.case("nothing", nothing);
    for placement in placements {
        suite.case(format!("init-{placement:?}"), |backend| init_clears(backend, placement));
    }
}

fn append(backend: &Backend, element: Float, geometry: Geometry, tokens: usize, rows: Rows) -> Result<Metrics> {
    let e = element.bytes();
    let (content_row, rope_row) = (CONTENT * e, ROPE * e);
    let both = content_row + rope_row;
    // Base and stride of content and of rope; the second buffer is the first one when rows are shared.
    let (content_at, rope_at, shared) = match rows {
        Rows::Packed => ((0, content_row), (0, rope_row), false),
        Rows::Padded => ((e, content_row + 3 * e), (e, rope_row + 3 * e), false),
        Rows::Fused => ((0, both), (content_row, both), true),
        Rows::RopeFirst => ((rope_row, both), (0, both), true),
    };
    let slots = slots(&geometry, tokens);
    let layer = geometry.num_layers - 1;
    let extent = |(base, stride): (usize, usize), row: usize| base + (tokens - 1) * stride + row;
    let mut content = vec![0xFF; if shared { tokens * both } else { extent(content_at, content_row) }];
    let mut rope = vec![0xFF; if shared { 0 } else { extent(rope_at, rope_row) }];
    let mut want = vec![BEFORE; geometry.span()];
    for (token, &slot) in slots.iter().enumerate() {
        let (c, r) = samples::row(element, token);
        let at = content_at.0 + token * content_at.1;
        content[at..at + content_row].copy_from_slice(&samples::encode(element, &c));
        let at = rope_at.0 + token * rope_at.1;
        let to = if shared { &mut content } else { &mut rope };
        to[at..at + rope_row].copy_from_slice(&samples::encode(element, &r));
        if slot >= 0 {
            let at = geometry.page(layer, slot as usize / geometry.page_size);
            let page = &mut want[at..at + geometry.page_bytes()];
            let row = slot as usize % geometry.page_size;
            record::write(page, geometry.page_size, row, &Record::quantise(&c, &r));
        }
    }
    let memory = Buffer::filled(&backend.memory, geometry.span(), BEFORE)?;
    let cache = Cache::over(backend, geometry, memory, true)?;
    let (content, rope) = (backend.buffer(&content)?, backend.buffer(&rope)?);
    let slots = backend.buffer(bytes_of(&slots))?;
    let mut p = init!(snapmla_k_append_params);
    (p.layer, p.dtype, p.num_tokens) = (layer as i32, element.code(), tokens as i64);
    p.content = content.at::<c_void>(content_at.0);
    p.rope = if shared { &content } else { &rope }.at::<c_void>(rope_at.0);
    if !matches!(rows, Rows::Packed) {
        (p.content_stride, p.rope_stride) = (content_at.1 as i64, rope_at.1 as i64);
    }
    p.slots = slots.at(0);
    // SAFETY: the buffers are as large as the strides say.
    unsafe { backend.k_append(&cache, &p, &backend.stream)? };
    backend.stream.wait()?;
    let got = cache.memory.download()?;
    first_difference("the cache", &got, &want, |byte| name_of_byte(&geometry, byte))?;
    Ok(Metrics::none())
}

/// A slot for each token, all different, over all pages; every seventh skipped.
fn slots(geometry: &Geometry, tokens: usize) -> Vec<i64> {
    let mut rng = Rng::new(tokens as u64);
    let mut free: Vec<i64> = (0..(geometry.num_pages * geometry.page_size) as i64).collect();
    rng.shuffle(&mut free);
    (0..tokens).map(|token| if token % 7 == 3 { -1 - token as i64 } else { free.pop().unwrap_or(-1) }).collect()
}

/// Layer, page and place of a byte of a cache.
pub fn name_of_byte(geometry: &Geometry, byte: usize) -> String {
    for layer in 0..geometry.num_layers {
        for page in 0..geometry.num_pages {
            let at = geometry.page(layer, page);
            if (at..at + geometry.page_bytes()).contains(&byte) {
                return format!(
                    "layer {layer}, page {page}, {}",
                    record::name_of_byte(geometry.page_size, byte - at)
                );
            }
        }
    }
    "between pages".into()
}

fn nothing(backend: &Backend) -> Result<Metrics> {
    let geometry = Geometry::new(Placement::Single, 64, 1);
    let memory = Buffer::filled(&backend.memory, geometry.span(), BEFORE)?;
    let cache = Cache::over(backend, geometry, memory, true)?;
    let mut p = init!(snapmla_k_append_params);
    p.dtype = Float::F32.code();
    // SAFETY: no tokens: no pointer is followed.
    unsafe { backend.k_append(&cache, &p, &backend.stream)? };
    backend.stream.wait()?;
    let got = cache.memory.download()?;
    first_difference("the cache", &got, &vec![BEFORE; got.len()], |byte| name_of_byte(&geometry, byte))?;
    Ok(Metrics::none())
}

/// A cache whose contents are not kept starts as zeros, in its pages and nowhere else.
fn init_clears(backend: &Backend, placement: Placement) -> Result<Metrics> {
    let geometry = Geometry::new(placement, 16, 4);
    let memory = Buffer::filled(&backend.memory, geometry.span() + 64, BEFORE)?;
    let cache = Cache::over(backend, geometry, memory, false)?;
    let mut want = vec![BEFORE; geometry.span() + 64];
    for layer in 0..geometry.num_layers {
        for page in 0..geometry.num_pages {
            let at = geometry.page(layer, page);
            want[at..at + geometry.page_bytes()].fill(0);
        }
    }
    first_difference("the cache", &cache.memory.download()?, &want, |byte| name_of_byte(&geometry, byte))?;
    Ok(Metrics::none())
}
