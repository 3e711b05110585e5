use super::Suite;
use crate::bits::Float;
use crate::case::{Case, Pages, QLens};

pub fn run(suite: &mut Suite) {
    let shapes: &[(&[usize], usize, usize)] = suite.pick(
        &[(&[131_072], 1, 2), (&[131_071, 5], 2, 1)],
        &[
            (&[131_072], 1, 16),
            (&[131_072], 1, 64),
            (&[131_072], 1, 128),
            (&[131_071, 0, 5, 131_009], 2, 128),
            (&[131_072, 64, 70_000], 3, 20),
            (&[1_000_000], 1, 128),
            (&[131_072; 33], 1, 16),
            (&[131_072; 9], 2, 128),
        ],
    );
    for &(lengths, q_len, heads) in shapes {
        for page_size in if suite.cpu() { &[64][..] } else { &[64, 16, 256] } {
            let case = Case {
                heads,
                page_size: *page_size,
                q_lens: QLens::Uniform(q_len),
                causal: q_len > 1,
                out: Float::F32,
                pages: Pages::Drawn(131_072 / page_size),
                ..Case::new(lengths)
            };
            let batch = lengths.len();
            suite.decode(format!("{batch}x{}-q{q_len}-h{heads}-page{page_size}", lengths[0]), &case);
        }
    }
}
