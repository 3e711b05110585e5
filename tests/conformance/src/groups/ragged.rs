use super::Suite;
use super::lengths::LENGTHS;
use crate::case::{Case, QLens, QueryForm};
use crate::prng::Rng;

pub fn run(suite: &mut Suite) {
    let cases: [(&str, &[usize], &[usize]); 6] = [
        ("one-has-none", &[100, 64, 200], &[2, 0, 3]),
        ("first-and-last-have-none", &[100, 64, 200, 5], &[0, 4, 1, 0]),
        ("more-queries-than-tokens", &[2, 0, 64, 1], &[4, 3, 8, 2]),
        ("none-at-all", &[65, 3], &[0, 0]),
        ("drafts-of-many-lengths", &LENGTHS, &[1, 4, 2, 8, 1, 3, 5, 2]),
        ("one-prefill-among-decodes", &[300, 64, 65, 1], &[33, 1, 1, 1]),
    ];
    for (name, lengths, q_lens) in cases {
        for (heads, causal) in [(20, true), (16, false), (128, true)] {
            let case = Case { heads, causal, q_lens: QLens::Ragged(q_lens.to_vec()), ..Case::new(lengths) };
            let kind = if causal { "causal" } else { "full" };
            suite.decode(format!("{name}-h{heads}-{kind}"), &case);
        }
        let q_lens = QLens::Ragged(q_lens.to_vec());
        let case = Case { query_form: QueryForm::Quantised, causal: true, q_lens, ..Case::new(lengths) };
        suite.decode(format!("{name}-quantised"), &case);
    }
    for (batch, heads) in [(64, 16), (200, 8)] {
        let mut rng = Rng::new(batch as u64);
        let q_lens: Vec<usize> = (0..batch).map(|_| rng.below(5)).collect();
        let lengths: Vec<usize> = (0..batch).map(|_| LENGTHS[rng.below(7)]).collect();
        let case =
            Case { heads, causal: true, q_lens: QLens::Ragged(q_lens), budget: 1 << 18, ..Case::new(&lengths) };
        suite.decode(format!("drawn-b{batch}-h{heads}"), &case);
    }
    for q_len in [2, 4, 8] {
        let lengths = [0, 1, 2, 3, 5, 8, 63, 64, 65, 66, 67, 70, 128, 500];
        let case =
            Case { heads: 16, causal: true, q_lens: QLens::Uniform(q_len), budget: 1 << 19, ..Case::new(&lengths) };
        suite.decode(format!("uniform-q{q_len}"), &case);
    }
}
