//! What tokens and queries hold.

use std::sync::Arc;

use crate::prng::Rng;

/// Fills content and rope of item (a, b): (sequence, position) for a cached token, (query token, head) for a query.
pub type Fill = Arc<dyn Fn(&mut Rng, usize, usize, &mut [f32], &mut [f32]) + Send + Sync>;

/// 1/sqrt(576).
pub const SCALE: f32 = 1.0 / 24.0;

pub fn fill(f: impl Fn(&mut Rng, usize, usize, &mut [f32], &mut [f32]) + Send + Sync + 'static) -> Fill {
    Arc::new(f)
}

/// Values with no common sign, whose size differs from token to token by octaves.
pub fn mixed() -> Fill {
    fill(|rng, _, _, content, rope| {
        let size = (4.0 * rng.unit() - 2.0).exp2();
        rng.fill_bell(content, size);
        rng.fill_bell(rope, 3.0);
    })
}

/// Queries that give logits of about ±1, so that many tokens share the weight, on [`mixed`] tokens with [`SCALE`].
pub fn queries() -> Fill {
    fill(|rng, _, _, content, rope| {
        rng.fill_bell(content, 0.25);
        rng.fill_bell(rope, 0.7);
    })
}

/// Queries that see every token alike: all logits within about ±0.003 on tokens of size 1.
pub fn flat_queries() -> Fill {
    fill(|rng, _, _, content, rope| {
        rng.fill_bell(content, 1e-3);
        rng.fill_bell(rope, 1e-3);
    })
}

/// Values that share a mean of half their deviation.
pub fn with_mean() -> Fill {
    fill(|rng, _, _, content, rope| {
        rng.fill_bell(content, 1.0);
        content.iter_mut().for_each(|x| *x += 0.5);
        rng.fill_bell(rope, 1.0);
    })
}

/// Tokens whose scale is exactly 1/64 and whose logit on [`steered_queries`] with [`SCALE`] is `logit(sequence,
/// position)`, beside content logits of about ±0.05. Content is drawn for `share(position)`: tokens with one share
/// have one content.
pub fn steered(
    logit: impl Fn(usize, usize) -> f32 + Send + Sync + 'static,
    share: impl Fn(usize) -> usize + Send + Sync + 'static,
) -> Fill {
    fill(move |_, sequence, position, content, rope| {
        let mut rng = Rng::of(77, sequence as u64, share(position) as u64);
        rng.fill_bell(content, 1.0);
        content[511] = 7.0;
        rope.fill(0.0);
        rope[0] = logit(sequence, position) / (SCALE * STEER);
    })
}

const STEER: f32 = 24.0;

pub fn steered_queries() -> Fill {
    fill(|rng, _, _, content, rope| {
        rng.fill_bell(content, 0.05);
        content[511] = 0.0;
        rope.fill(0.0);
        rope[0] = STEER;
    })
}

/// The paper's picture of a trained model: content within ±10 with channel means that are not zero, rope to ±1000
/// with a few outlier channels.
pub fn paper() -> Fill {
    fill(|rng, _, _, content, rope| {
        let mut channels = Rng::new(9);
        for x in content.iter_mut() {
            let (mean, spread) = (channels.bell() * 1.5, 0.3 + channels.unit());
            *x = (mean + spread * rng.bell()).clamp(-10.0, 10.0);
        }
        for x in rope.iter_mut() {
            let outlier = channels.below(16) == 0;
            let spread = if outlier { 300.0 } else { 5.0 };
            *x = (spread * rng.bell()).clamp(-1000.0, 1000.0);
        }
    })
}

/// Queries for [`paper`] tokens: small where the keys are large, as trained models have them.
pub fn paper_queries() -> Fill {
    fill(|rng, _, _, content, rope| {
        rng.fill_bell(content, 1.0);
        let mut channels = Rng::new(9);
        // Past the draws of the content's channels.
        (0..2 * content.len()).for_each(|_| _ = channels.bits());
        for x in rope.iter_mut() {
            let outlier = channels.below(16) == 0;
            *x = rng.bell() * if outlier { 0.05 } else { 1.0 };
        }
    })
}
