use super::Suite;
use crate::backend::Backend;
use crate::bits::Float;
use crate::case::{Answers, Case, Image, Loaded, QLens, Questions};
use crate::check::first_difference;
use crate::memory::Result;
use crate::report::Metrics;

pub fn run(suite: &mut Suite) {
    let long = suite.pick(6_000, 131_072);
    let cases = [
        ("one-long", Case { heads: 16, ..Case::new(&[long]) }),
        ("one-long-128-heads", Case { heads: 128, ..Case::new(&[long / 2]) }),
        (
            "mixed",
            Case { heads: 20, q_lens: QLens::Uniform(2), causal: true, ..Case::new(&[4096, 1, 0, 129, 3000, 64]) },
        ),
    ];
    for (name, case) in cases {
        let case = Case { out: Float::F32, ..case };
        suite.case(format!("{name}-again"), |backend| again(backend, &case));
        if suite.cpu() {
            suite.case(format!("{name}-any-threads"), |_| any_threads(&case));
        }
    }
}

fn same(what: &str, got: &Answers, first: &Answers) -> Result<()> {
    first_difference(&format!("out {what}"), &got.out, &first.out, |byte| format!("row {}", byte / 2048))?;
    first_difference(&format!("lse {what}"), &got.lse, &first.lse, |byte| format!("row {}", byte / 4))
}

/// Whatever the workspace holds.
fn again(backend: &Backend, case: &Case) -> Result<Metrics> {
    let loaded = Loaded::new(backend, case, &Image::build(case)?, &Questions::build(case))?;
    let first = loaded.run_over(backend, 0xFF)?;
    for garbage in [0x00, 0x7F, 0x01, 0xFF, 0x80] {
        same(&format!("over {garbage:#04x}"), &loaded.run_over(backend, garbage)?, &first)?;
    }
    // Over what the call itself left there.
    loaded.launch(backend, &backend.stream)?;
    loaded.launch(backend, &backend.stream)?;
    backend.stream.wait()?;
    same("over its own workspace", &loaded.answers()?, &first)?;
    Ok(Metrics::none())
}

fn any_threads(case: &Case) -> Result<Metrics> {
    let (image, questions) = (Image::build(case)?, Questions::build(case));
    let mut first: Option<Answers> = None;
    for threads in [1, 2, 3, 7] {
        let backend = Backend::cpu_with_threads(threads)?;
        let answers = Loaded::new(&backend, case, &image, &questions)?.run(&backend)?;
        same(&format!("with {threads} threads"), &answers, first.get_or_insert_with(|| answers.clone()))?;
    }
    Ok(Metrics::none())
}
