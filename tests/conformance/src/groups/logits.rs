use super::Suite;
use crate::bits::Float;
use crate::case::{Case, Pages};
use crate::data::{self, Fill};
use crate::prng::Rng;
use crate::record::CONTENT;

pub fn run(suite: &mut Suite) {
    sinks(suite);
    steered(suite);
    plain(suite);
}

/// One token with nearly all the weight, and the rest a millionth each: together they still count.
fn sinks(suite: &mut Suite) {
    let long = suite.pick(16_384, 131_072);
    for (name, sink, heads) in [("first", 0, 16), ("middle", long / 2 + 7, 128), ("last", long - 1, 64)] {
        let tokens = sink_at(sink, 1e6f32.ln());
        let case = Case { heads, out: Float::F32, tokens, queries: data::steered_queries(), ..Case::new(&[long]) };
        suite.decode(format!("sink-{name}-h{heads}"), &case);
    }
    let two = sink_at(3, 30.0);
    suite.decode(
        "sink-of-all-weight",
        &Case { tokens: two, queries: data::steered_queries(), ..Case::new(&[5_000, 64]) },
    );
}

/// The sink's own value is small, as trained models' are; the others share a mean.
fn sink_at(sink: usize, logit: f32) -> Fill {
    data::fill(move |rng, _, position, content, rope| {
        data::with_mean()(rng, 0, position, content, rope);
        content[CONTENT - 1] = 7.0;
        rope.fill(0.0);
        if position == sink {
            content.iter_mut().for_each(|x| *x *= 1.0 / 64.0);
            rope[0] = logit;
        }
    })
}

/// Logits steered tile by tile. Where FP8's own error of a huge logit would choose among tokens, a tile's tokens have
/// one content, so that what comes out does not depend on that choice.
fn steered(suite: &mut Suite) {
    let tile = |position: usize| position / 64;
    let jump = move |_: usize, position: usize| 1e4 * (Rng::new(tile(position) as u64).below(5) as f32 - 2.0);
    let cases: [(&str, Fill); 9] = [
        ("jumps-of-1e4", data::steered(jump, tile)),
        ("alternating-1e4", data::steered(move |_, t| if tile(t) % 2 == 0 { -6e3 } else { 6e3 }, tile)),
        ("rising-by-tile", data::steered(move |_, t| 3.0 * tile(t) as f32 - 90.0, tile)),
        ("falling-by-tile", data::steered(move |_, t| 90.0 - 3.0 * tile(t) as f32, tile)),
        ("rising-steeply", data::steered(move |_, t| 500.0 * tile(t) as f32, tile)),
        ("falling-steeply", data::steered(move |_, t| -500.0 * tile(t) as f32, tile)),
        ("rising-by-token", data::steered(|_, t| 0.01 * t as f32, |t| t)),
        ("falling-by-token", data::steered(|_, t| -0.01 * t as f32, |t| t)),
        ("last-tile-wakes", data::steered(move |_, t| if t >= 3968 { 0.0 } else { -60.0 }, |t| t)),
    ];
    for (name, tokens) in cases {
        for heads in [16, 128] {
            let case = Case {
                heads,
                tokens: tokens.clone(),
                queries: data::steered_queries(),
                ..Case::new(&[4032, 65, 1000])
            };
            suite.decode(format!("{name}-h{heads}"), &case);
        }
    }
    for level in [-1e5f32, -3e4, -700.0, 700.0, 3e4, 1e5] {
        let case = Case {
            tokens: data::steered(move |_, _| level, |t| t),
            queries: data::steered_queries(),
            ..Case::new(&[700, 64, 1])
        };
        suite.decode(format!("all-at-{level:e}"), &case);
    }
}

fn plain(suite: &mut Suite) {
    let lengths = [0, 1, 64, 1000];
    let base = Case::new(&lengths);
    let zero = data::fill(|_, _, _, content, rope| {
        content.fill(0.0);
        rope.fill(0.0);
    });
    suite.decode("all-zero-tokens", &Case { tokens: zero.clone(), ..base.clone() });
    suite.decode("all-zero-queries", &Case { queries: zero.clone(), ..base.clone() });
    suite.decode("all-zero-both", &Case { tokens: zero.clone(), queries: zero, ..base.clone() });
    let some = data::fill(|rng, sequence, position, content, rope| {
        if position % 3 == 0 {
            data::mixed()(rng, sequence, position, content, rope);
        } else {
            content.fill(0.0);
            rope.fill(0.0);
        }
    });
    suite.decode("zero-tokens-among-others", &Case { tokens: some, ..base.clone() });
    for softmax_scale in [0.0, -data::SCALE, 1e-30] {
        suite.decode(format!("softmax_scale-{softmax_scale:e}"), &Case { softmax_scale, ..base.clone() });
    }
    let outlier = data::fill(|rng, sequence, position, content, rope| {
        data::mixed()(rng, sequence, position, content, rope);
        if position == 40 {
            content.iter_mut().for_each(|x| *x *= 1e4);
            rope.fill(0.0);
        }
    });
    let orthogonal = data::fill(|rng, _, _, content, rope| {
        rng.fill_bell(content, 1e-5);
        rng.fill_bell(rope, 1.0);
    });
    suite.decode("one-huge-value", &Case { tokens: outlier, queries: orthogonal.clone(), ..base.clone() });
    let octaves = data::fill(|rng, _, _, content, rope| {
        let size = (60.0 * rng.unit() - 30.0).exp2();
        rng.fill_bell(content, size);
        rng.fill_bell(rope, 1.0);
    });
    let tiny = data::fill(|rng, _, _, content, rope| {
        rng.fill_bell(content, 1e-12);
        rng.fill_bell(rope, 1.0);
    });
    let case = Case { tokens: octaves, queries: tiny, out: Float::F32, ..base.clone() };
    suite.decode("scales-over-60-octaves", &case);
    for (name, size) in [("huge", 1e15f32), ("minute", 1e-15)] {
        let tokens = data::fill(move |rng, _, _, content, rope| {
            rng.fill_bell(content, size);
            rng.fill_bell(rope, size);
        });
        let case = Case { tokens, softmax_scale: data::SCALE / size, out: Float::F32, ..base.clone() };
        suite.decode(format!("{name}-tokens"), &case);
    }
    let case = Case { pages: Pages::Drawn(3), ..Case::new(&[4096, 70, 4096]) };
    suite.decode("the-same-pages-again-and-again", &case);
}
