use super::Suite;
use crate::case::{Case, Pages, QLens};
use crate::prng::Rng;

pub fn run(suite: &mut Suite) {
    let heads = suite.pick(1, 8);
    for (name, longest, page_size, ragged) in [
        ("short", 40, 64, false),
        ("up-to-three-pages", 150, 64, false),
        ("pages-of-16", 40, 16, false),
        ("ragged", 70, 64, true),
    ] {
        let mut rng = Rng::new(longest as u64);
        let lengths: Vec<usize> = (0..20_000).map(|_| rng.below(longest + 1)).collect();
        let q_lens =
            if ragged { QLens::Ragged((0..20_000).map(|_| rng.below(3)).collect()) } else { QLens::Uniform(1) };
        let case = Case { heads, page_size, q_lens, causal: ragged, pages: Pages::Drawn(64), ..Case::new(&lengths) };
        suite.decode(format!("20000-{name}"), &case);
    }
    // One long sequence among them: its splits and theirs share a plan.
    let mut lengths = vec![3; 20_000];
    lengths[12_345] = suite.pick(5_000, 100_000);
    suite.decode("20000-and-one-long", &Case { heads, pages: Pages::Drawn(64), ..Case::new(&lengths) });
}
