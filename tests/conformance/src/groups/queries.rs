use super::Suite;
use crate::backend::Backend;
use crate::bits::Float;
use crate::case::{Case, Image, Loaded, QLens, QueryForm, Questions};
use crate::check::first_difference;
use crate::memory::Result;
use crate::report::Metrics;

pub fn run(suite: &mut Suite) {
    let base = |heads| Case { heads, budget: 1 << 18, ..Case::new(&[130, 1, 0, 64, 1000]) };
    for element in Float::ALL {
        for out in Float::ALL {
            for form in [QueryForm::Raw, QueryForm::Quantised] {
                let case = Case { query_element: element, query_form: form, out, ..base(16) };
                suite.decode(format!("{}-{form:?}-to-{}", element.name(), out.name()), &case);
            }
        }
        for (heads, q_len) in [(16, 1), (128, 2), (5, 3)] {
            let case = Case {
                query_element: element,
                q_lens: QLens::Uniform(q_len),
                causal: true,
                out: Float::F32,
                ..base(heads)
            };
            let name = format!("{}-raw-and-quantised-agree-h{heads}-q{q_len}", element.name());
            suite.case(name, |backend| raw_and_quantised_agree(backend, &case));
        }
    }
}

fn raw_and_quantised_agree(backend: &Backend, case: &Case) -> Result<Metrics> {
    let image = Image::build(case)?;
    let answers = |query_form| {
        let case = Case { query_form, ..case.clone() };
        Loaded::new(backend, &case, &image, &Questions::build(&case))?.run(backend)
    };
    let (raw, quantised) = (answers(QueryForm::Raw)?, answers(QueryForm::Quantised)?);
    first_difference("out of raw queries", &raw.out, &quantised.out, |byte| format!("row {}", byte / 2048))?;
    first_difference("lse of raw queries", &raw.lse, &quantised.lse, |byte| format!("row {}", byte / 4))?;
    Ok(Metrics::none())
}
