use super::Suite;
use crate::backend::Backend;
use crate::bits::Float;
use crate::case::{Case, Image, Loaded, QLens, Questions};
use crate::memory::Result;
use crate::report::Metrics;

pub fn run(suite: &mut Suite) {
    let length = suite.pick(700, 16_384);
    let cases = [
        ("two-large", Case { heads: 16, ..Case::new(&[length; 4]) }, Case { heads: 128, ..Case::new(&[length; 2]) }),
        ("one-and-many", Case { heads: 64, ..Case::new(&[8 * length]) }, Case { heads: 16, ..Case::new(&[64; 100]) }),
        (
            "two-alike",
            Case { heads: 128, seed: 5, ..Case::new(&[length, 3, length]) },
            Case { heads: 128, q_lens: QLens::Uniform(2), ..Case::new(&[length, 0, length / 2]) },
        ),
    ];
    let rounds = if suite.cpu() { 4 } else { 200 };
    for (name, one, two) in cases {
        let cases = [one, two].map(|case| Case { out: Float::F32, ..case });
        suite.case(format!("{name}-{rounds}-rounds"), |backend| at_once(backend, &cases, rounds));
    }
}

/// Two calls at once over and over, each on a stream, a thread and a workspace of its own: neither may wait for the
/// other, and each must give what it gives alone.
fn at_once(backend: &Backend, cases: &[Case; 2], rounds: usize) -> Result<Metrics> {
    let load = |case: &Case| Loaded::new(backend, case, &Image::build(case)?, &Questions::build(case));
    let loaded = [load(&cases[0])?, load(&cases[1])?];
    let alone = [loaded[0].run(backend)?, loaded[1].run(backend)?];
    loaded.iter().try_for_each(|loaded| loaded.soil(0xFF))?;
    let results: Vec<Result<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = loaded.iter().map(|loaded| scope.spawn(|| repeat(backend, loaded, rounds))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("panic".into()))).collect()
    });
    results.into_iter().collect::<Result<()>>()?;
    for (number, (loaded, alone)) in loaded.iter().zip(&alone).enumerate() {
        if loaded.answers()? != *alone {
            return Err(format!("call {number} gives other bits beside another call than alone"));
        }
    }
    Ok(Metrics::none())
}

fn repeat(backend: &Backend, loaded: &Loaded, rounds: usize) -> Result<()> {
    let stream = backend.new_stream()?;
    for _ in 0..rounds {
        loaded.launch(backend, &stream)?;
    }
    stream.wait()
}
