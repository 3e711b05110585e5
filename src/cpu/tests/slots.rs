//! Decode over lists of slots.

use proptest::prelude::*;

use super::attention::*;
use super::fixture::*;
use crate::cpu::isa::Isa;

/// Slot that nothing may follow.
const GARBAGE: i64 = i64::MAX;

/// The case's tokens, listed slot by slot in the order that `order` puts them in.
fn listed(case: &Case, mut order: impl FnMut(&mut [i64])) -> Vec<i64> {
    let columns = case.max_seq_len as usize;
    let mut slots = vec![GARBAGE; columns * case.seq_lens.len()];
    for sequence in 0..case.seq_lens.len() {
        let row = &mut slots[sequence * columns..][..case.len(sequence)];
        row.iter_mut().enumerate().for_each(|(token, slot)| *slot = case.slot(sequence, token) as i64);
        order(row);
    }
    slots
}

fn shuffle(random: &mut Random, row: &mut [i64]) {
    for i in (1..row.len()).rev() {
        row.swap(i, random.below(i + 1));
    }
}

#[test]
fn the_table_and_its_slots_give_the_same_bits() {
    for isa in Isa::all() {
        let mut shape = Shape::uniform(24, 5, 3, &[1100, 40, 0, 600]);
        shape.causal = true;
        let mut case = Case::random(&shape, 21);
        let by_table = case.decode(&cpu(2, isa)).unwrap().bits();
        case.slots = Some(listed(&case, |_| ()));
        (case.max_pages, case.table) = (0, Vec::new());
        assert!(case.decode(&cpu(2, isa)).unwrap().bits() == by_table, "{isa:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Tokens in any order, some of them several times.
    #[test]
    fn agrees_with_double_precision(
        seed: u64,
        page_size in prop::sample::select(vec![8usize, 64, 1024]),
        heads in 1usize..20,
        lens in prop::collection::vec(0i32..1300, 1..4),
        causal: bool,
    ) {
        let mut shape = Shape::uniform(page_size, heads, 2, &lens);
        shape.causal = causal;
        let mut case = Case::random(&shape, seed);
        let mut random = Random(seed);
        let slots = listed(&case, |row| {
            shuffle(&mut random, row);
            if let [first, .., last] = row {
                *last = *first;
            }
        });
        case.slots = Some(slots);
        let reference = case.reference();
        for isa in Isa::all() {
            let got = case.decode(&cpu(2, isa)).unwrap();
            prop_assert!(got.relative_l2(&reference) <= 3e-2);
            let largest = reference.lse.iter().filter(|v| v.is_finite()).fold(1f64, |m, v| m.max(v.abs()));
            prop_assert!(got.lse_error(&reference) <= 1e-5 * largest);
        }
    }
}

#[test]
fn a_slot_outside_the_cache_is_named() {
    let mut case = Case::random(&Shape::uniform(16, 2, 1, &[20, 30]), 22);
    let good = listed(&case, |_| ());
    let end = case.cache.view.num_slots();
    for wrong in [end, -1, i64::MIN, i64::MAX] {
        let mut slots = good.clone();
        slots[case.max_seq_len as usize + 7] = wrong;
        case.slots = Some(slots);
        let message = case.decode(&cpu(1, Isa::detect())).unwrap_err().message;
        let pages = case.cache.view.num_pages;
        assert_eq!(message, format!("slots[1][7] is {wrong}, not in 0..{end} = num_pages {pages} * page_size 16"));
    }
}
