//! What is tried, one file an idea.

mod accumulation;
mod append;
mod batch;
mod concurrency;
mod cut;
mod determinism;
mod far;
mod fetch;
mod graph;
mod invariant;
mod lengths;
mod logits;
mod long;
mod merge;
mod pages;
mod paper;
mod quant;
mod queries;
mod ragged;
mod records_copy;
mod samples;
mod shapes;
mod spoil;
mod strides;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use crate::backend::Backend;
use crate::case::{Case, Image, Loaded, Questions};
use crate::check::{Expected, compare, first_difference};
use crate::memory::Result;
use crate::report::{CaseReport, GroupReport, Metrics};

pub struct Group {
    pub name: &'static str,
    pub about: &'static str,
    run: fn(&mut Suite),
}

/// Every group, cheap ones first.
pub const GROUPS: &[Group] = &[
    Group { name: "quant", about: "Q-quant against the scalar quantiser, bit for bit", run: quant::run },
    Group { name: "append", about: "K-append against the scalar quantiser, bit for bit", run: append::run },
    Group { name: "fetch", about: "fetch-dequant, bit for bit", run: fetch::run },
    Group { name: "records_copy", about: "records copied slot to slot", run: records_copy::run },
    Group { name: "merge", about: "partial results combined", run: merge::run },
    Group { name: "lengths", about: "lengths 0 to 4096 mixed in a batch", run: lengths::run },
    Group { name: "shapes", about: "batch, heads, query tokens", run: shapes::run },
    Group { name: "pages", about: "page sizes, interleaved layers", run: pages::run },
    Group {
        name: "queries",
        about: "query and output types; raw and quantised give the same bits",
        run: queries::run,
    },
    Group { name: "strides", about: "every arrangement of rows", run: strides::run },
    Group { name: "ragged", about: "ragged query lengths, causal", run: ragged::run },
    Group { name: "cut", about: "max_seq_len and max_pages cut sequences", run: cut::run },
    Group { name: "logits", about: "sinks, jumps, slopes, extremes", run: logits::run },
    Group { name: "spoil", about: "NaN and infinity reach only the rows that attend to them", run: spoil::run },
    Group { name: "determinism", about: "the same call gives the same bits", run: determinism::run },
    Group { name: "invariant", about: "rows have the same bits alone and in any batch", run: invariant::run },
    Group { name: "concurrency", about: "two calls at once", run: concurrency::run },
    Group { name: "graph", about: "captured once, replayed with other lengths and tables", run: graph::run },
    Group { name: "far", about: "pages and layers past 2^31 bytes", run: far::run },
    Group { name: "batch", about: "batches of 20,000 short sequences", run: batch::run },
    Group {
        name: "accumulation",
        about: "flat attention over values with a mean, 64 to 1M tokens",
        run: accumulation::run,
    },
    Group { name: "long", about: "131,072 tokens", run: long::run },
    Group { name: "paper", about: "against un-quantised attention; told, not gated", run: paper::run },
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// A part that two cores get through in a minute or two.
    Quick,
    Full,
}

/// A run over one backend.
pub struct Suite<'a> {
    pub backend: &'a Backend,
    pub effort: Effort,
    filter: Option<&'a str>,
    group: &'static str,
    cases: Vec<CaseReport>,
}

impl Group {
    /// Runs the cases whose "group/case" contains `filter`; `None` where there are none.
    pub fn run(&self, backend: &Backend, effort: Effort, filter: Option<&str>) -> Option<GroupReport> {
        let start = Instant::now();
        let mut suite = Suite { backend, effort, filter, group: self.name, cases: Vec::new() };
        (self.run)(&mut suite);
        let seconds = start.elapsed().as_secs_f64();
        (!suite.cases.is_empty()).then(|| GroupReport::new(self.name, self.about, seconds, suite.cases))
    }
}

impl Suite<'_> {
    pub fn quick(&self) -> bool {
        self.effort == Effort::Quick
    }

    /// `quick` or `full`, as the effort is.
    pub fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick() { quick } else { full }
    }

    pub fn cpu(&self) -> bool {
        self.backend.is_cpu()
    }

    /// One case: what it measured, or what is wrong. A panic is wrong too.
    pub fn case(&mut self, name: impl Into<String>, body: impl FnOnce(&Backend) -> Result<Metrics>) {
        let name = name.into();
        if self.filter.is_some_and(|filter| !format!("{}/{name}", self.group).contains(filter)) {
            return;
        }
        let start = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| body(self.backend)));
        let outcome = outcome.unwrap_or_else(|panic| Err(format!("panic: {}", text_of(&*panic))));
        let seconds = start.elapsed().as_secs_f64();
        let (measured, violation) = match outcome {
            Ok(measured) => (measured, None),
            Err(text) => (Metrics::none(), Some(text)),
        };
        self.cases.push(CaseReport { name, seconds, measured, violation });
    }

    /// A decode call, held to its gate.
    pub fn decode(&mut self, name: impl Into<String>, case: &Case) {
        let budget = self.pick(case.budget / 4, 8 * case.budget);
        let case = Case { budget, ..case.clone() };
        self.case(name, |backend| decode(backend, &case));
    }
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("of an unknown kind")
}

fn decode(backend: &Backend, case: &Case) -> Result<Metrics> {
    let image = Image::build(case)?;
    let questions = Questions::build(case);
    let loaded = Loaded::new(backend, case, &image, &questions)?;
    check(backend, case, &image, &questions, &loaded)
}

/// Runs a loaded case and compares; the cache must come out as it went in.
fn check(backend: &Backend, case: &Case, image: &Image, questions: &Questions, loaded: &Loaded) -> Result<Metrics> {
    let answers = loaded.run(backend)?;
    let expected = Expected::of(case, image, questions);
    let measured = compare(case, backend.is_cpu(), &answers, &expected)?;
    if image.poisoned && image.bytes.len() < 64 << 20 {
        let cache = loaded.cache.memory.download()?;
        first_difference("the cache, which decode only reads", &cache, &image.bytes, |_| String::new())?;
    }
    Ok(measured.into())
}
