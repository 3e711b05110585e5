use std::ffi::c_void;

use snapmla::abi::types::snapmla_q_quant_params;

use super::{Suite, samples};
use crate::backend::{Backend, init};
use crate::bits::Float;
use crate::check::first_difference;
use crate::memory::{Buffer, Result};
use crate::record::{CONTENT, ROPE, Record};
use crate::report::Metrics;
use crate::strides::{Dims, Row, Strides, Style};

/// Bytes behind each output that must stay as they were.
const GUARD: usize = 64;

pub fn run(suite: &mut Suite) {
    let styles = [Style::Packed, Style::Padded, Style::Transposed];
    for element in Float::ALL {
        for (tokens, heads) in [(1, 1), (3, 16), (7, 20), (2, 128), (5, 63)] {
            for style in styles {
                suite.case(format!("{}-{tokens}x{heads}-{style:?}", element.name()), |backend| {
                    quantise(backend, element, tokens, heads, style, false)
                });
            }
        }
        suite.case(format!("{}-9x8-fused", element.name()), |backend| {
            quantise(backend, element, 9, 8, Style::Packed, true)
        });
    }
    let tokens = suite.pick(256, 4096);
    suite.case(format!("bf16-{tokens}x16"), |backend| {
        quantise(backend, Float::Bf16, tokens, 16, Style::Packed, false)
    });
    suite.case("nothing", |backend| {
        // SAFETY: no tokens: no pointer is followed.
        unsafe { backend.q_quant(&params(Float::F32, 0, 1), &backend.stream)? };
        backend.stream.wait()?;
        Ok(Metrics::none())
    });
}

fn params(element: Float, tokens: usize, heads: usize) -> snapmla_q_quant_params {
    let mut p = init!(snapmla_q_quant_params);
    (p.dtype, p.num_tokens, p.num_heads) = (element.code(), tokens as i64, heads as u32);
    p
}

fn quantise(
    backend: &Backend,
    element: Float,
    tokens: usize,
    heads: usize,
    style: Style,
    fused: bool,
) -> Result<Metrics> {
    let dims = Dims { batch: 1, q_len: Some(tokens), tokens, heads };
    let e = element.bytes();
    let content_row = if fused { CONTENT + ROPE } else { CONTENT };
    let mut content_at = Strides::new(style, &dims, content_row * e, e);
    let mut rope_at = Strides::new(style, &dims, ROPE * e, e);
    if fused {
        content_at = content_at.explicit();
        rope_at = content_at.shifted(CONTENT * e, ROPE * e);
    }
    let mut content = vec![0xFF; content_at.extent(&dims)];
    let mut rope = vec![0xFF; rope_at.extent(&dims)];
    let (mut want_content, mut want_rope, mut want_scale) = (Vec::new(), Vec::new(), Vec::new());
    for token in 0..tokens {
        for head in 0..heads {
            let (c, r) = samples::row(element, token * heads + head);
            let row = Row { sequence: 0, query: token, token, head };
            let (at, bytes) = (content_at.offset(row), samples::encode(element, &c));
            content[at..at + bytes.len()].copy_from_slice(&bytes);
            let (at, bytes) = (rope_at.offset(row), samples::encode(element, &r));
            let to = if fused { &mut content } else { &mut rope };
            to[at..at + bytes.len()].copy_from_slice(&bytes);
            let record = Record::quantise(&c, &r);
            want_content.extend(record.content);
            want_rope.extend(record.rope.iter().flat_map(|x| x.to_le_bytes()));
            want_scale.extend(record.scale.to_le_bytes());
        }
    }
    let (content, rope) = (backend.buffer(&content)?, backend.buffer(&rope)?);
    let out = |want: &[u8]| Buffer::filled(&backend.memory, want.len() + GUARD, 0xFF);
    let outs = [out(&want_content)?, out(&want_rope)?, out(&want_scale)?];
    let mut p = params(element, tokens, heads);
    p.content = content.at::<c_void>(content_at.base);
    (_, p.content_token_stride, p.content_head_stride) = content_at.passed();
    p.rope = if fused { &content } else { &rope }.at::<c_void>(rope_at.base);
    (_, p.rope_token_stride, p.rope_head_stride) = rope_at.passed();
    (p.q_content, p.q_rope, p.q_scale) = (outs[0].at(0), outs[1].at(0), outs[2].at(0));
    // SAFETY: the buffers are as large as the strides say.
    unsafe { backend.q_quant(&p, &backend.stream)? };
    backend.stream.wait()?;
    let wants = [("q_content", want_content, CONTENT), ("q_rope", want_rope, 2 * ROPE), ("q_scale", want_scale, 4)];
    for ((what, mut want, row_bytes), got) in wants.into_iter().zip(outs) {
        want.extend([0xFF; GUARD]);
        first_difference(what, &got.download()?, &want, |byte| {
            let row = byte / row_bytes;
            let kind = row % samples::KINDS;
            format!("token {}, head {}, byte {} (sample kind {kind})", row / heads, row % heads, byte % row_bytes)
        })?;
    }
    Ok(Metrics::none())
}
