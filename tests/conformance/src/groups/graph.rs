use std::ffi::c_void;

use snapmla::abi::types::snapmla_k_append_params;

use super::Suite;
use crate::backend::{Backend, init};
use crate::bits::Float;
use crate::case::{self, Case, Image, Loaded, QLens, Questions};
use crate::check::{Expected, compare};
use crate::device::Graph;
use crate::memory::{Buffer, Result, bytes_of};
use crate::record::Record;
use crate::report::Metrics;

/// Captured work on CUDA; the work itself where there are no graphs.
enum Replay<'a, F> {
    Graph(Graph<'a>),
    Calls(F),
}

impl<'a, F: Fn() -> Result<()>> Replay<'a, F> {
    fn new(backend: &'a Backend, work: F) -> Result<Self> {
        if backend.is_cpu() { Ok(Replay::Calls(work)) } else { Ok(Replay::Graph(backend.stream.capture(work)?)) }
    }

    fn run(&self) -> Result<()> {
        match self {
            Replay::Graph(graph) => graph.replay(),
            Replay::Calls(work) => work(),
        }
    }
}

pub fn run(suite: &mut Suite) {
    let long = suite.pick(1_500, 30_000);
    for (heads, q_len) in [(16, 1), (128, 2), (20, 4)] {
        let case = |lengths: &[usize], seed| Case {
            seed,
            heads,
            q_lens: QLens::Uniform(q_len),
            causal: true,
            max_pages: Some(long / 64 + 2),
            ..Case::new(lengths)
        };
        // Captured over the first, replayed over all: longer, shorter, empty, padded with rows of no tokens.
        let cases = [
            case(&[100, 64, 1, 65], 1),
            case(&[long, 3, 700, 0], 2),
            case(&[0, 0, 0, 0], 3),
            case(&[1, 1, 1, long], 4),
            case(&[100, 64, 1, 65], 5),
            case(&[700, 0, 0, 0], 6),
        ];
        suite.case(format!("other-lengths-h{heads}-q{q_len}"), |backend| other_lengths(backend, &cases));
    }
    let ragged = |q_lens: &[usize], lengths: &[usize], seed| Case {
        seed,
        heads: 16,
        causal: true,
        q_lens: QLens::Ragged(q_lens.to_vec()),
        max_pages: Some(20),
        ..Case::new(lengths)
    };
    let cases = [
        ragged(&[4, 1, 1, 1], &[100, 64, 1, 65], 1),
        ragged(&[1, 4, 0, 2], &[1000, 3, 700, 9], 2),
        ragged(&[0, 3, 0, 4], &[0, 900, 0, 4], 3),
    ];
    suite.case("other-query-lengths", |backend| other_lengths(backend, &cases));
    for heads in [16, 128] {
        suite.case(format!("decoding-steps-h{heads}"), |backend| decoding_steps(backend, heads));
    }
}

/// One capture, replayed with other lengths, tables, queries and cache contents in the same memory.
fn other_lengths(backend: &Backend, cases: &[Case]) -> Result<Metrics> {
    let built = cases.iter().map(|case| Ok((case, Image::build(case)?, Questions::build(case))));
    let built = built.collect::<Result<Vec<_>>>()?;
    let largest = built.iter().max_by_key(|(_, image, _)| image.geometry.span()).expect("some cases");
    // Over the largest cache, then changed into the first case before anything runs.
    let loaded = Loaded::new(backend, largest.0, &largest.1, &largest.2)?;
    let replace = |case: &Case, image: &Image, questions: &Questions| -> Result<()> {
        loaded.cache.memory.fill(0xFF)?;
        loaded.cache.memory.upload(0, &image.bytes)?;
        loaded.seq_lens.upload(0, bytes_of(&case.seq_lens))?;
        loaded.table.upload(0, bytes_of(&image.table))?;
        loaded.q_content.upload(0, &questions.content)?;
        loaded.q_rope.upload(0, &questions.rope)?;
        if let Some(cu_q_lens) = &loaded.cu_q_lens {
            cu_q_lens.upload(0, bytes_of(&case.cu_q_lens()))?;
        }
        loaded.soil(0xFF)
    };
    replace(built[0].0, &built[0].1, &built[0].2)?;
    let replay = Replay::new(backend, || loaded.launch(backend, &backend.stream))?;
    let mut worst = Metrics::none();
    for (number, (case, image, questions)) in built.iter().enumerate() {
        replace(case, image, questions)?;
        replay.run()?;
        backend.stream.wait()?;
        let answers = loaded.answers()?;
        let expected = Expected::of(case, image, questions);
        let measured = compare(case, backend.is_cpu(), &answers, &expected)
            .map_err(|text| format!("replay {number}: {text}"))?;
        worst = worst.worst(&measured.into());
    }
    Ok(worst)
}

/// What an engine captures: append the new token of each sequence, then decode over it. Five steps, across a page's
/// end.
fn decoding_steps(backend: &Backend, heads: usize) -> Result<Metrics> {
    const STEPS: usize = 5;
    let starts = [62, 0, 1000, 127];
    let after = |step: usize| starts.map(|start| start + step);
    let last = Case { heads, max_pages: Some(20), ..Case::new(&after(STEPS)) };
    let whole = Image::build(&last)?;
    let mut before = Image::build(&last)?;
    for (sequence, start) in starts.iter().enumerate() {
        (0..STEPS).for_each(|step| before.put_record(sequence, start + step, &Record::POISON));
    }
    let questions = Questions::build(&last);
    let loaded = Loaded::new(backend, &last, &before, &questions)?;
    let content = Buffer::new(&backend.memory, starts.len() * 2048)?;
    let rope = Buffer::new(&backend.memory, starts.len() * 256)?;
    let slots = Buffer::new(&backend.memory, starts.len() * 8)?;
    let mut append = init!(snapmla_k_append_params);
    (append.dtype, append.num_tokens) = (Float::F32.code(), starts.len() as i64);
    (append.content, append.rope, append.slots) = (content.at::<c_void>(0), rope.at::<c_void>(0), slots.at(0));
    let replay = Replay::new(backend, || {
        // SAFETY: four packed rows each.
        unsafe { backend.k_append(&loaded.cache, &append, &backend.stream)? };
        loaded.launch(backend, &backend.stream)
    })?;
    let mut worst = Metrics::none();
    for step in 0..STEPS {
        let case = Case { seq_lens: after(step + 1).map(|len| len as i32).to_vec(), ..last.clone() };
        let (mut contents, mut ropes, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        for (sequence, token) in after(step).into_iter().enumerate() {
            let (c, r) = case::numbers_of_token(&last, sequence, token);
            contents.extend(c);
            ropes.extend(r);
            let (page, record) = whole.find(sequence, token);
            targets.push((page * last.page_size + record) as i64);
        }
        content.upload(0, bytes_of(&contents))?;
        rope.upload(0, bytes_of(&ropes))?;
        slots.upload(0, bytes_of(&targets))?;
        loaded.seq_lens.upload(0, bytes_of(&case.seq_lens))?;
        loaded.soil(0xFF)?;
        replay.run()?;
        backend.stream.wait()?;
        let expected = Expected::of(&case, &whole, &questions);
        let measured = compare(&case, backend.is_cpu(), &loaded.answers()?, &expected)
            .map_err(|text| format!("step {step}: {text}"))?;
        worst = worst.worst(&measured.into());
    }
    Ok(worst)
}
