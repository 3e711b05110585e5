use super::Suite;
use super::lengths::LENGTHS;
use crate::case::{Case, QLens};
use crate::prng::Rng;

const BATCHES: [usize; 6] = [1, 2, 3, 64, 128, 321];
const Q_LENS: [usize; 5] = [1, 2, 3, 4, 8];
const HEADS: [usize; 10] = [1, 3, 8, 16, 20, 40, 63, 64, 126, 128];

/// Most rows of one call: beyond, a case is mostly copying.
const MOST_ROWS: [usize; 2] = [3_000, 30_000];

pub fn run(suite: &mut Suite) {
    if !suite.quick() {
        let case = Case { heads: 128, q_lens: QLens::Uniform(2), causal: true, ..Case::new(&[65; 321]) };
        suite.decode("b321-q2-h128-causal", &case);
    }
    let most = suite.pick(MOST_ROWS[0], MOST_ROWS[1]);
    let mut turn = 0;
    for batch in BATCHES {
        for q_len in Q_LENS {
            for heads in HEADS {
                turn += 1;
                let rows = batch * q_len * heads;
                // A quick run takes every third; each batch, q_len and head count comes by many times.
                if rows > most || (suite.quick() && turn % 3 != 0) {
                    continue;
                }
                let mut rng = Rng::new(turn);
                // The longest of the lengths once in a small batch, else the short ones.
                let mut lengths: Vec<usize> = (0..batch).map(|_| LENGTHS[rng.below(LENGTHS.len() - 1)]).collect();
                lengths[0] = if batch <= 3 && !suite.quick() { 4096 } else { 129 };
                rng.shuffle(&mut lengths);
                let case = Case {
                    seed: turn,
                    heads,
                    q_lens: QLens::Uniform(q_len),
                    causal: turn % 2 == 0,
                    budget: 1 << 15,
                    ..Case::new(&lengths)
                };
                let causal = if case.causal { "-causal" } else { "" };
                suite.decode(format!("b{batch}-q{q_len}-h{heads}{causal}"), &case);
            }
        }
    }
}
