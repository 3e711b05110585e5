//! Row for row, within the contract's tolerances.

use rayon::prelude::*;

use super::untouched;
use crate::bits::Float;
use crate::case::{Answers, Case, Image, Questions};
use crate::memory::Result;
use crate::reference::{self, Attended};
use crate::strides::Row;
use crate::tolerance::{self, Gate};

/// How far off a call was.
#[derive(Debug, Clone, Copy, Default)]
pub struct Measured {
    /// Relative L2 over all checked rows, and of the worst row.
    pub call: f64,
    pub row: f64,
    /// Largest |dLSE|, and as a fraction of what is allowed.
    pub lse: f64,
    pub lse_of_limit: f64,
    /// Rows checked.
    pub rows: usize,
}

/// The reference's answers to a case's drawn rows.
pub struct Expected {
    rows: Vec<(Row, Attended)>,
}

impl Expected {
    pub fn of(case: &Case, image: &Image, questions: &Questions) -> Self {
        let mut rows = case.rows_to_check();
        rows.sort_by_key(|row| row.sequence);
        // Rows of one sequence share the work of reading it, as far as every core has some.
        let cost = |row: &Row| case.keys(row.sequence, row.query) + 16;
        let fair = rows.iter().map(cost).sum::<usize>() / (4 * rayon::current_num_threads()) + 1;
        let mut spent = 0;
        let share = |row: &Row| {
            spent += cost(row);
            spent / fair
        };
        let shares: Vec<usize> = rows.iter().map(share).collect();
        let indices: Vec<usize> = (0..rows.len()).collect();
        let together = |a: &usize, b: &usize| rows[*a].sequence == rows[*b].sequence && shares[*a] == shares[*b];
        let parts: Vec<&[usize]> = indices.chunk_by(together).collect();
        let attended = parts.par_iter().with_max_len(1).flat_map_iter(|part| {
            let rows = &rows[part[0]..=part[part.len() - 1]];
            let query = |row: &Row| {
                let keys = case.keys(row.sequence, row.query);
                reference::Query { record: questions.record(*row), keys }
            };
            let queries: Vec<_> = rows.iter().map(query).collect();
            let attended = reference::attend(image, rows[0].sequence, &queries, case.softmax_scale);
            rows.iter().copied().zip(attended).collect::<Vec<_>>()
        });
        Self { rows: attended.collect() }
    }

    /// Rows that attend to something and whose true answer is not finite.
    pub fn spoiled(&self) -> usize {
        self.rows.iter().filter(|(_, attended)| attended.lse != f64::NEG_INFINITY && !finite(attended)).count()
    }
}

fn finite(attended: &Attended) -> bool {
    attended.lse.is_finite() && attended.out.iter().all(|x| x.is_finite())
}

/// What a call wrote in one row.
struct Got {
    out: Vec<f64>,
    lse: Option<f64>,
}

fn got(case: &Case, answers: &Answers, row: Row) -> Got {
    let bytes = &answers.out[answers.out_strides.range(row)];
    let out = bytes.chunks_exact(case.out.bytes()).map(|x| f64::from(case.out.get(x))).collect();
    let lse = case.want_lse.then(|| f64::from(Float::F32.get(&answers.lse[answers.lse_strides.range(row)])));
    Got { out, lse }
}

/// Holds a call's answers to the reference and to the case's gate.
pub fn compare(case: &Case, cpu: bool, answers: &Answers, expected: &Expected) -> Result<Measured> {
    let rows = case.rows();
    untouched("out", &answers.out, 0xFF, rows.iter().map(|&row| answers.out_strides.range(row)))?;
    let lse_rows = if case.want_lse { &rows[..] } else { &[] };
    untouched("lse", &answers.lse, 0xFF, lse_rows.iter().map(|&row| answers.lse_strides.range(row)))?;
    rows.par_iter().try_for_each(|&row| empty_row(case, row, || got(case, answers, row)))?;
    if expected.spoiled() == 0 {
        rows.par_iter().try_for_each(|&row| no_nan(case, row, &got(case, answers, row)))?;
    }
    let rows = expected.rows.par_iter().map(|(row, want)| {
        let got = got(case, answers, *row);
        one_row(case, *row, &got, want)
    });
    let rows: Vec<Errors> = rows.collect::<Result<_>>()?;
    gate(case, cpu, &rows, expected)
}

/// "Zeros for a row that attends to nothing", "-inf".
fn empty_row(case: &Case, row: Row, got: impl FnOnce() -> Got) -> Result<()> {
    if case.keys(row.sequence, row.query) > 0 {
        return Ok(());
    }
    let got = got();
    if let Some(at) = got.out.iter().position(|&x| x != 0.0) {
        return Err(format!("{row} attends to nothing, but out[{at}] is {}", got.out[at]));
    }
    match got.lse {
        Some(lse) if lse != f64::NEG_INFINITY => Err(format!("{row} attends to nothing, but its lse is {lse}")),
        _ => Ok(()),
    }
}

/// NaN and infinity where no token and no query has one.
fn no_nan(case: &Case, row: Row, got: &Got) -> Result<()> {
    let keys = case.keys(row.sequence, row.query);
    if let Some(first) = got.out.iter().position(|x| !x.is_finite()) {
        let count = got.out.iter().filter(|x| !x.is_finite()).count();
        return Err(format!(
            "{row} ({keys} keys): {count} of 512 are not finite, the first out[{first}] = {}",
            got.out[first]
        ));
    }
    match got.lse {
        Some(lse) if keys > 0 && !lse.is_finite() => Err(format!("{row} ({keys} keys): lse is {lse}")),
        _ => Ok(()),
    }
}

/// Squares of one row's error and size.
#[derive(Clone, Copy)]
struct Errors {
    row: Row,
    error: f64,
    size: f64,
    lse: f64,
}

impl Errors {
    fn l2(&self) -> f64 {
        if self.error == 0.0 { 0.0 } else { (self.error / self.size).sqrt() }
    }
}

fn one_row(case: &Case, row: Row, got: &Got, want: &Attended) -> Result<Errors> {
    let nothing = Errors { row, error: 0.0, size: 0.0, lse: 0.0 };
    if case.keys(row.sequence, row.query) == 0 {
        return Ok(nothing);
    }
    if !finite(want) {
        let spoiled = got.out.iter().chain(&got.lse).any(|x| !x.is_finite());
        return if spoiled {
            Ok(nothing)
        } else {
            Err(format!("{row} attends to a NaN or infinity, but shows none"))
        };
    }
    no_nan(case, row, got)?;
    let error = got.out.iter().zip(&want.out).map(|(got, want)| (got - want).powi(2)).sum();
    let size = want.out.iter().map(|want| want * want).sum();
    Ok(Errors { row, error, size, lse: got.lse.map_or(0.0, |lse| (lse - want.lse).abs()) })
}

fn gate(case: &Case, cpu: bool, rows: &[Errors], expected: &Expected) -> Result<Measured> {
    let logits = expected.rows.iter().map(|(_, want)| want.largest_logit).filter(|x| x.is_finite());
    let limits = tolerance::limits(case.gate, cpu, logits.fold(0.0, f64::max));
    let whole = rows.iter().fold((0.0, 0.0), |(error, size), row| (error + row.error, size + row.size));
    let call = if whole.0 == 0.0 { 0.0 } else { (whole.0 / whole.1).sqrt() };
    let worst = rows.iter().max_by(|a, b| a.l2().total_cmp(&b.l2()));
    let worst_lse = rows.iter().max_by(|a, b| a.lse.total_cmp(&b.lse));
    let (Some(worst), Some(worst_lse)) = (worst, worst_lse) else { return Ok(Measured::default()) };
    let keys = |row: Row| case.keys(row.sequence, row.query);
    if call > limits.call {
        return Err(format!(
            "relative L2 of the call {call:.3e} > {:.1e} ({} rows checked)",
            limits.call,
            rows.len()
        ));
    }
    if case.gate == Gate::Mixed && worst.l2() > limits.row {
        let (row, l2) = (worst.row, worst.l2());
        return Err(format!("{row} ({} keys): relative L2 {l2:.3e} > {:.1e}", keys(row), limits.row));
    }
    if worst_lse.lse > limits.lse {
        let (row, lse) = (worst_lse.row, worst_lse.lse);
        return Err(format!("{row} ({} keys): |dLSE| {lse:.3e} > {:.3e}", keys(row), limits.lse));
    }
    let lse_of_limit = worst_lse.lse / limits.lse;
    Ok(Measured { call, row: worst.l2(), lse: worst_lse.lse, lse_of_limit, rows: rows.len() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strides::Strides;

    /// A case with one padded sequence, its reference, and the answers that the reference would give.
    fn perfect() -> (Case, Answers, Expected) {
        let case = Case { out: Float::F32, heads: 2, ..Case::new(&[70, 0]) };
        let image = Image::build(&case).unwrap();
        let expected = Expected::of(&case, &image, &Questions::build(&case));
        let dims = case.dims();
        let out_strides = Strides::new(case.out_style, &dims, 2048, 4);
        let lse_strides = Strides::new(case.lse_style, &dims, 4, 4);
        let mut answers = Answers {
            out: vec![0xFF; out_strides.extent(&dims)],
            out_strides,
            lse: vec![0xFF; lse_strides.extent(&dims)],
            lse_strides,
        };
        for (row, want) in &expected.rows {
            for (to, x) in answers.out[out_strides.range(*row)].chunks_exact_mut(4).zip(&want.out) {
                Float::F32.put(*x as f32, to);
            }
            Float::F32.put(want.lse as f32, &mut answers.lse[lse_strides.range(*row)]);
        }
        (case, answers, expected)
    }

    fn refused(change: impl FnOnce(&mut Answers), with: &str) {
        let (case, mut answers, expected) = perfect();
        change(&mut answers);
        let message = compare(&case, true, &answers, &expected).expect_err("a fault");
        assert!(message.contains(with), "{message}");
    }

    #[test]
    fn the_reference_passes_its_own_gate() {
        let (case, answers, expected) = perfect();
        let measured = compare(&case, true, &answers, &expected).unwrap();
        assert!(measured.call < 1e-6 && measured.lse < 1e-5 && measured.rows == 4);
    }

    #[test]
    fn faults_are_found_and_named() {
        let put = |answers: &mut Answers, at: usize, x: f32| Float::F32.put(x, &mut answers.out[4 * at..]);
        refused(|answers| put(answers, 512 + 7, f32::NAN), "sequence 0, query 0, head 1 (70 keys): 1 of 512");
        refused(|answers| put(answers, 3, 1e6), "relative L2 of the call");
        refused(
            |answers| put(answers, 2 * 512 + 9, 1e-3),
            "sequence 1, query 0, head 0 attends to nothing, but out[9]",
        );
        refused(|answers| Float::F32.put(3.0, &mut answers.lse[12..]), "its lse is 3");
        refused(|answers| Float::F32.put(1e3, &mut answers.lse), "|dLSE|");
        refused(|answers| Float::F32.put(f32::INFINITY, &mut answers.lse[4..]), "lse is inf");
    }

    #[test]
    fn one_bad_row_is_found_among_good_ones() {
        let (case, mut answers, expected) = perfect();
        // A tenth off in the smaller of the two rows.
        for bytes in answers.out[..2048].chunks_exact_mut(4) {
            let x = Float::F32.get(bytes);
            Float::F32.put(x * 1.08, bytes);
        }
        assert!(compare(&case, true, &answers, &expected).is_err());
    }
}
