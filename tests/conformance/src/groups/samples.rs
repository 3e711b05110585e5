//! Rows that quantisers get wrong.

use crate::bits::Float;
use crate::prng::Rng;
use crate::record::{CONTENT, Numbers, ROPE};

pub const KINDS: usize = 24;

/// Row number `index` of a set in which every kind recurs, as `element` holds it.
pub fn row(element: Float, index: usize) -> Numbers {
    let mut rng = Rng::of(4, index as u64, 0);
    let (mut content, mut rope) = ([0.0; CONTENT], [0.0; ROPE]);
    rng.fill_bell(&mut content, 1.0);
    rng.fill_bell(&mut rope, 3.0);
    let (at, rope_at) = (rng.below(CONTENT), rng.below(ROPE));
    let sign = if rng.bits() & 1 == 0 { 1.0 } else { -1.0 };
    match index % KINDS {
        0..=3 => {}
        4 => content.fill(0.0),
        5 => (content, rope) = ([0.0; CONTENT], [0.0; ROPE]),
        6 => content = content.map(|x| x * 1e-3),
        7 => content = content.map(|x| x * 1e4),
        // Denormal numbers, whose scale is denormal too or nothing.
        8 => content = content.map(|x| x * 1e-39),
        9 => content = std::array::from_fn(|i| f32::from_bits((i == at) as u32)),
        // The rope would overflow if the content's scale divided it.
        10 => content = content.map(|x| x * 1e-30),
        11 => (content, rope) = (content.map(|x| x * 9e37), rope.map(|x| x * 3e37)),
        12 => rope = rope.map(|x| x * 1e-40),
        13 => content = std::array::from_fn(|i| if i == at { 300.0 * sign } else { 0.0 }),
        14 => content[at] = 30_000.0 * sign,
        15 => content[at] = f32::NAN.copysign(sign),
        16 => content.fill(f32::NAN),
        17 => content[at] = f32::INFINITY * sign,
        18 => rope[rope_at] = f32::NAN.copysign(sign),
        19 => rope[rope_at] = f32::INFINITY * sign,
        20 => content = content.map(|x| -0.0 * x),
        // Every tie between two neighbours of E4M3, at scale 1 and at scale 3.
        21 | 22 => {
            let scale = if index % KINDS == 21 { 1.0 } else { 3.0 };
            let tie = |i: usize| (i % 32) as f32 * 0.5 * 2f32.powi(i as i32 / 32 - 9);
            content = std::array::from_fn(|i| tie(i).min(448.0) * scale);
            content[at] = 448.0 * scale * sign;
        }
        _ => rope = rope.map(|x| x * 1000.0),
    }
    let round = |x: f32| if x.is_nan() { x } else { element.round(x) };
    (content.map(round), rope.map(round))
}

/// `row` as bytes.
pub fn encode(element: Float, numbers: &[f32]) -> Vec<u8> {
    let mut bytes = vec![0; numbers.len() * element.bytes()];
    for (x, to) in numbers.iter().zip(bytes.chunks_mut(element.bytes())) {
        // A NaN keeps its sign and payload here: what a caller's tensor holds is its own affair.
        if element == Float::Bf16 && x.is_nan() {
            to.copy_from_slice(&((x.to_bits() >> 16) as u16).to_le_bytes());
        } else {
            element.put(*x, to);
        }
    }
    bytes
}
