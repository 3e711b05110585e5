use super::Suite;
use crate::case::{Case, Placement, QLens};

pub fn run(suite: &mut Suite) {
    let lengths = [0, 1, 63, 64, 65, 127, 129, 700, 7, 8, 9, 256, 257];
    let placements = [Placement::Single, Placement::LayersOutside(3), Placement::LayersInside(3)];
    for page_size in [8, 16, 24, 32, 64, 128, 256] {
        for (placement, layer) in placements.into_iter().zip([0, 1, 2]) {
            for (q_len, heads, causal) in [(1, 16, false), (2, 20, true)] {
                let case = Case {
                    page_size,
                    placement,
                    layer,
                    heads,
                    causal,
                    q_lens: QLens::Uniform(q_len),
                    budget: 1 << 17,
                    ..Case::new(&lengths)
                };
                suite.decode(format!("{page_size}-{placement:?}-q{q_len}"), &case);
            }
        }
    }
    for page_size in [64, 40, 1024] {
        let case =
            Case { page_size, placement: Placement::Spread(644 * page_size as i64 + 4096), ..Case::new(&lengths) };
        suite.decode(format!("{page_size}-gaps"), &case);
    }
}
