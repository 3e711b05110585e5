use super::Suite;
use crate::bits::Float;
use crate::case::{Case, Pages};
use crate::data;
use crate::tolerance::Gate;

/// "Error must not grow with context length."
pub fn run(suite: &mut Suite) {
    let heads: &[usize] = suite.pick(&[2], &[16, 128]);
    for &heads in heads {
        for length in [64, 256, 1_024, 4_096, 16_384, 65_536, 131_072, 1 << 20] {
            let case = Case {
                heads,
                out: Float::F32,
                pages: if length <= 16_384 { Pages::Private } else { Pages::Drawn(1024) },
                tokens: data::with_mean(),
                queries: data::flat_queries(),
                gate: if length < 1_024 { Gate::Mixed } else { Gate::FlatMean },
                ..Case::new(&[length])
            };
            suite.decode(format!("{length}-h{heads}"), &case);
        }
    }
    // Many sequences leave one worker a whole one each: nothing is split, the longest accumulation there is.
    let (batch, length) = suite.pick((3, 8_192), (160, 16_384));
    let case = Case {
        heads: suite.pick(2, 64),
        out: Float::F32,
        pages: Pages::Drawn(1024),
        tokens: data::with_mean(),
        queries: data::flat_queries(),
        gate: Gate::FlatMean,
        ..Case::new(&vec![length; batch])
    };
    suite.decode(format!("{batch}x{length}"), &case);
}
