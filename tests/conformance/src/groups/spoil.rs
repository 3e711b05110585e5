use super::Suite;
use crate::backend::Backend;
use crate::case::{Case, Image, Loaded, QLens, Questions};
use crate::check::{Expected, compare};
use crate::data;
use crate::memory::Result;
use crate::record::Record;
use crate::report::Metrics;

/// What goes wrong in a token.
const FAULTS: [&str; 6] = ["nan-content", "nan-rope", "nan-scale", "infinite-scale", "infinite-rope", "all-nan"];

fn spoil(record: &mut Record, fault: &str) {
    match fault {
        "nan-content" => record.content[300] = 0x7F,
        "nan-rope" => record.rope[5] = 0x7FC0,
        "nan-scale" => record.scale = f32::NAN,
        "infinite-scale" => record.scale = f32::INFINITY,
        "infinite-rope" => record.rope[63] = 0xFF80,
        _ => *record = Record::POISON,
    }
}

pub fn run(suite: &mut Suite) {
    for fault in FAULTS {
        for heads in [3, 16, 20, 128] {
            // The last token of each: only the last query attends to it.
            let lengths = [100, 64, 65, 4, 200];
            let case = Case { heads, causal: true, q_lens: QLens::Uniform(4), ..Case::new(&lengths) };
            let last: Vec<_> = lengths.iter().enumerate().map(|(b, len)| (b, len - 1)).collect();
            suite.case(format!("{fault}-last-token-h{heads}"), |backend| {
                check(backend, &case, &last, fault, 5 * heads)
            });
            let last_but_one = [(0, 98), (4, 198)];
            suite.case(format!("{fault}-last-but-one-h{heads}"), |backend| {
                check(backend, &case, &last_but_one, fault, 4 * heads)
            });
            // One token of one sequence: the others are whole.
            let case = Case { heads, ..Case::new(&[100, 64, 300, 0, 129]) };
            suite.case(format!("{fault}-one-sequence-h{heads}"), |backend| {
                check(backend, &case, &[(2, 150)], fault, heads)
            });
        }
    }
    let queries = data::fill(|rng, token, head, content, rope| {
        data::queries()(rng, token, head, content, rope);
        match (token, head) {
            (1, 3) => content[9] = f32::NAN,
            (2, 15) => rope[9] = f32::NAN,
            (0, 0) => content[0] = f32::INFINITY,
            _ => {}
        }
    });
    let case = Case { queries, ..Case::new(&[100, 64, 300]) };
    suite.case("queries", |backend| check(backend, &case, &[], "", 3));
}

/// Spoils tokens (sequence, position); the reference says which rows that reaches, and there must be `rows` of them.
fn check(backend: &Backend, case: &Case, tokens: &[(usize, usize)], fault: &str, rows: usize) -> Result<Metrics> {
    let mut image = Image::build(case)?;
    for &(sequence, token) in tokens {
        let mut record = image.record(sequence, token);
        spoil(&mut record, fault);
        image.put_record(sequence, token, &record);
    }
    let questions = Questions::build(case);
    let expected = Expected::of(case, &image, &questions);
    // An infinite logit of the other sign only takes a token's weight away.
    let fewer = fault == "infinite-rope" && (1..rows).contains(&expected.spoiled());
    if expected.spoiled() != rows && !fewer {
        return Err(format!("the case itself: {} rows are spoiled, not {rows}", expected.spoiled()));
    }
    let loaded = Loaded::new(backend, case, &image, &questions)?;
    let answers = loaded.run(backend)?;
    Ok(compare(case, backend.is_cpu(), &answers, &expected)?.into())
}
