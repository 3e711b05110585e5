//! Every group on the CPU backend, which every machine has.

use conformance::backend::Backend;
use conformance::groups::{Effort, GROUPS};

fn run(name: &str) {
    let backend = Backend::cpu().expect("the CPU backend");
    let group = GROUPS.iter().find(|group| group.name == name).expect("a group of that name");
    let Some(report) = group.run(&backend, Effort::Quick, None) else { return };
    println!("{}", report.line("cpu"));
    let violations = report.violations();
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

macro_rules! groups {
    ($($name:ident),*) => {
        $(#[test]
        fn $name() {
            run(stringify!($name));
        })*

        #[test]
        fn every_group_has_a_test() {
            let tested = [$(stringify!($name)),*];
            let all: Vec<&str> = GROUPS.iter().map(|group| group.name).collect();
            assert_eq!(tested[..], all[..]);
        }
    };
}

groups!(
    quant,
    append,
    fetch,
    records_copy,
    merge,
    lengths,
    shapes,
    pages,
    queries,
    strides,
    ragged,
    cut,
    logits,
    spoil,
    determinism,
    invariant,
    concurrency,
    graph,
    far,
    batch,
    accumulation,
    long,
    paper
);
