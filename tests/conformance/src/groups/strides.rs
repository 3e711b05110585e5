use super::Suite;
use crate::bits::Float;
use crate::case::{Case, QLens, QueryForm};
use crate::strides::Style;

pub fn run(suite: &mut Suite) {
    let lengths = [65, 0, 300, 64];
    for ragged in [false, true] {
        let q_lens = if ragged { QLens::Ragged(vec![2, 3, 0, 3]) } else { QLens::Uniform(3) };
        let kind = if ragged { "ragged" } else { "uniform" };
        let base = Case { heads: 20, q_lens, causal: true, budget: 1 << 18, ..Case::new(&lengths) };
        for (turn, style) in Style::ALL.into_iter().enumerate() {
            let element = Float::ALL[turn % 3];
            for query_form in [QueryForm::Raw, QueryForm::Quantised] {
                let case = Case { query_style: style, query_form, query_element: element, ..base.clone() };
                suite.decode(format!("{kind}-query-{style:?}-{query_form:?}"), &case);
            }
            let case = Case { query_style: style, fused_rows: true, query_element: element, ..base.clone() };
            suite.decode(format!("{kind}-query-{style:?}-fused"), &case);
            for out in Float::ALL {
                let case = Case { out_style: style, out, ..base.clone() };
                suite.decode(format!("{kind}-out-{style:?}-{}", out.name()), &case);
            }
            suite.decode(format!("{kind}-lse-{style:?}"), &Case { lse_style: style, ..base.clone() });
            let all = Case { query_style: style, out_style: style, lse_style: style, heads: 128, ..base.clone() };
            suite.decode(format!("{kind}-all-{style:?}"), &all);
        }
    }
}
