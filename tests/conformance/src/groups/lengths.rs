use super::Suite;
use crate::bits::Float;
use crate::case::{Case, Image, Loaded, QLens, Questions, Room};
use crate::prng::Rng;

/// The lengths that tiles of 64 tokens get wrong.
pub const LENGTHS: [usize; 8] = [0, 1, 63, 64, 65, 127, 129, 4096];

pub fn run(suite: &mut Suite) {
    for (name, q_len, causal, heads) in [
        ("one-query", 1, false, 16),
        ("causal-one-query", 1, true, 64),
        ("two-queries", 2, false, 8),
        ("causal-two-queries", 2, true, 128),
        ("causal-four-queries", 4, true, 16),
    ] {
        let mut lengths = LENGTHS;
        Rng::new(heads as u64).shuffle(&mut lengths);
        let case = Case { heads, causal, q_lens: QLens::Uniform(q_len), ..Case::new(&lengths) };
        suite.decode(name, &case);
    }
    for length in LENGTHS {
        suite.decode(format!("alone-{length}"), &Case { heads: 16, out: Float::F32, ..Case::new(&[length]) });
    }
    let every: Vec<usize> = (0..=suite.pick(66, 260)).collect();
    suite.decode("every-length-from-0", &Case { heads: 3, out: Float::F32, ..Case::new(&every) });
    let causal = Case { causal: true, q_lens: QLens::Uniform(3), heads: 3, ..Case::new(&every) };
    suite.decode("every-length-from-0-causal", &causal);
    suite.decode("padded-rows", &Case::new(&[700, 0, 0, 33, 0]));
    suite.decode("no-sequences", &Case::new(&[]));
    suite.decode("nothing-to-attend", &Case::new(&[0, 0, 0]));
    suite.decode("no-lse", &Case { want_lse: false, ..Case::new(&LENGTHS) });
    let case = Case::new(&LENGTHS);
    suite.case("workspace-for-more", |backend| {
        let room = Room { batch: 300, q_len: 8, heads: 128, seq_len: 1 << 20 };
        let (image, questions) = (Image::build(&case)?, Questions::build(&case));
        let loaded = Loaded::with_room(backend, &case, &image, &questions, room)?;
        super::check(backend, &case, &image, &questions, &loaded)
    });
}
