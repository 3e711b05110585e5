use super::Suite;
use crate::case::{Case, QLens};

pub fn run(suite: &mut Suite) {
    for (heads, causal, q_len) in [(16, false, 1), (20, true, 2), (128, false, 1)] {
        let base = |lengths: &[usize]| Case { heads, causal, q_lens: QLens::Uniform(q_len), ..Case::new(lengths) };
        let how = format!("h{heads}-q{q_len}");
        let lengths = [50, 64, 100, 128, 129, 1000, 0];
        for max_seq_len in [1, 63, 64, 100, 128, 999, 1000, 5000] {
            let case = Case { max_seq_len, max_pages: Some(16), ..base(&lengths) };
            suite.decode(format!("max_seq_len-{max_seq_len}-{how}"), &case);
        }
        for max_pages in [1, 2, 15] {
            let case = Case { max_pages: Some(max_pages), ..base(&lengths) };
            suite.decode(format!("max_pages-{max_pages}-{how}"), &case);
        }
        let most = i32::MAX as usize;
        suite.decode(
            format!("lengths-past-everything-{how}"),
            &Case { max_pages: Some(3), ..base(&[most, 10, most - 1]) },
        );
        let case = Case { max_seq_len: 100, max_pages: Some(2000), ..base(&[most, 10, 100]) };
        suite.decode(format!("lengths-past-max_seq_len-{how}"), &case);
        let case = Case { max_seq_len: u32::MAX, ..base(&[70, 10, 100]) };
        suite.decode(format!("max_seq_len-of-no-meaning-{how}"), &case);
        suite.decode(format!("no-pages-{how}"), &Case { max_pages: Some(0), ..base(&[70, 0, most]) });
    }
}
