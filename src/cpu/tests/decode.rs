//! Decode against attention in double precision, and what must not change its bits.

use proptest::prelude::*;

use super::attention::*;
use super::fixture::*;
use crate::cpu::isa::Isa;
use crate::layout::{CONTENT_DIM, ROPE_DIM};
use crate::request::{DecodeRequest, Dtype};

/// Tolerances of the contract.
const RELATIVE_L2: f64 = 3e-2;
const LSE: f64 = 1e-5;

fn check(case: &Case, threads: u32) {
    let reference = case.reference();
    Isa::all().into_iter().for_each(|isa| check_against(&reference, case, threads, isa));
}

fn check_against(reference: &Attention, case: &Case, threads: u32, isa: Isa) {
    let got = case.decode(&cpu(threads, isa)).unwrap();
    let (l2, lse) = (got.relative_l2(reference), got.lse_error(reference));
    assert!(l2 <= RELATIVE_L2, "{isa:?}: relative L2 {l2}");
    let largest = reference.lse.iter().filter(|v| v.is_finite()).fold(1f64, |m, v| m.max(v.abs()));
    assert!(lse <= LSE * largest, "{isa:?}: lse {lse}");
    for (row, lse) in got.lse.iter().enumerate() {
        if *lse == f64::NEG_INFINITY {
            assert!(got.out[row].iter().all(|&v| v == 0.0));
        }
    }
}

fn shapes() -> impl Strategy<Value = Shape> {
    let heads = prop::sample::select(vec![1usize, 2, 3, 5, 8, 16, 20, 63, 64, 65, 126, 128]);
    let page_size = prop::sample::select(vec![8usize, 16, 24, 64, 256, 1024]);
    let len = prop_oneof![
        prop::sample::select(vec![-5, 0, 1, 7, 8, 63, 64, 65, 127, 129, 511, 512, 513, 1024, 1500]),
        0..700i32
    ];
    let sequences = prop::collection::vec((len, 0usize..6), 1..5);
    let q_dtype = prop::option::of(prop::sample::select(DTYPES.to_vec()));
    let out_dtype = prop::sample::select(DTYPES.to_vec());
    (page_size, heads, sequences, any::<bool>(), any::<bool>(), q_dtype, out_dtype).prop_map(
        |(page_size, heads, sequences, causal, ragged, q_dtype, out_dtype)| {
            let q_len = if heads > 20 { 1 + sequences[0].1 % 2 } else { 1 + sequences[0].1 };
            Shape {
                page_size,
                heads,
                q_lens: sequences.iter().map(|&(_, n)| if ragged { n.min(q_len) } else { q_len }).collect(),
                seq_lens: sequences.iter().map(|&(len, _)| len).collect(),
                causal,
                ragged,
                q_dtype,
                out_dtype,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn agrees_with_double_precision(shape in shapes(), seed: u64, threads in 1u32..4) {
        let case = Case::random(&shape, seed);
        check(&case, threads);
    }
}

#[test]
fn bits_do_not_depend_on_the_threads() {
    for isa in Isa::all() {
        let mut shape = Shape::uniform(64, 20, 4, &[3000, 1, 0, 700, 513]);
        shape.causal = true;
        let case = Case::random(&shape, 1);
        let one = case.decode(&cpu(1, isa)).unwrap().bits();
        for threads in [2, 3, 7, 40] {
            assert!(case.decode(&cpu(threads, isa)).unwrap().bits() == one, "{isa:?} {threads}");
        }
    }
}

/// A row's result is the same whether its sequence is alone, in company, or has other heads and queries beside it.
#[test]
fn bits_do_not_depend_on_the_company() {
    for isa in Isa::all() {
        let mut shape = Shape::uniform(24, 7, 3, &[1100, 40, 600]);
        shape.causal = true;
        let case = Case::random(&shape, 2);
        let together = case.decode(&cpu(2, isa)).unwrap();
        for sequence in 0..3 {
            for head in 0..7 {
                let rows: Vec<usize> = (0..3).map(|query| (sequence * 3 + query) * 7 + head).collect();
                let mut alone = Case::random(&shape, 2);
                alone.queries = rows.iter().map(|&row| case.queries[row].clone()).collect();
                (alone.heads, alone.q_lens) = (1, vec![3]);
                alone.seq_lens = vec![case.seq_lens[sequence]];
                alone.table.drain(..sequence * case.max_pages);
                let alone = alone.decode(&cpu(1, isa)).unwrap();
                for (i, &row) in rows.iter().enumerate() {
                    assert!(alone.out[i] == together.out[row], "{isa:?} {sequence} {head}");
                    assert!(alone.lse[i] == together.lse[row]);
                }
            }
        }
    }
}

/// More splits than slots for them: rows are carried from wave to wave, and sequences begin and end in mid-wave.
#[test]
fn many_waves_give_the_same_bits_as_one() {
    let mut random = Random(3);
    let kinds: Vec<_> = (0..40).map(|_| Record::random(&mut random)).collect();
    let lens = [70_000, 600, 90_000, 30];
    let case = Case::new(&Shape::uniform(64, 2, 1, &lens), 3, |b, t| kinds[(t * 7 + t / 64 + b) % 40].clone());
    let together = case.decode(&cpu(2, Isa::detect())).unwrap();
    let reference = case.reference();
    assert!(together.relative_l2(&reference) <= RELATIVE_L2);
    assert!(together.lse_error(&reference) <= LSE);
    for (sequence, len) in lens.into_iter().enumerate() {
        let mut alone = Case::new(&Shape::uniform(64, 2, 1, &[8]), 3, |_, _| kinds[0].clone());
        alone.cache.view = case.cache.view;
        alone.queries = case.queries[sequence * 2..][..2].to_vec();
        alone.seq_lens = vec![len];
        (alone.max_pages, alone.max_seq_len) = (case.max_pages, case.max_seq_len);
        alone.table = case.table[sequence * case.max_pages..][..case.max_pages].to_vec();
        let alone = alone.decode(&cpu(2, Isa::detect())).unwrap();
        assert!(alone.out == together.out[sequence * 2..][..2] && alone.lse == together.lse[sequence * 2..][..2]);
    }
}

#[test]
fn a_nan_token_spoils_only_the_rows_that_attend_to_it() {
    for isa in Isa::all() {
        for what in 0..3 {
            let mut shape = Shape::uniform(16, 3, 4, &[75]);
            shape.causal = true;
            let clean = Case::random(&shape, 4);
            let mut spoiled = Case::random(&shape, 4);
            // Queries 2 and 3 attend to token 73, queries 0 and 1 do not.
            let slot = spoiled.slot(0, 73);
            let mut record = spoiled.cache.record(1, slot);
            match what {
                0 => record.content[300] = 0xFF,
                1 => record.rope[5] = 0xFFC1,
                _ => record.scale = f32::NAN.to_bits(),
            }
            spoiled.cache.put(1, slot, &record);
            let (clean, spoiled) = (clean.decode(&cpu(1, isa)).unwrap(), spoiled.decode(&cpu(1, isa)).unwrap());
            assert!(clean.out[..6] == spoiled.out[..6] && clean.lse[..6] == spoiled.lse[..6], "{isa:?} {what}");
            assert!(spoiled.lse[6..].iter().all(|v| v.is_nan()), "{isa:?} {what}");
            assert!(spoiled.out[6..].iter().flatten().all(|v| v.is_nan()), "{isa:?} {what}");
        }
    }
}

#[test]
fn a_nan_query_spoils_only_its_row() {
    for isa in Isa::all() {
        let shape = Shape::uniform(16, 5, 1, &[100]);
        let clean = Case::random(&shape, 5).decode(&cpu(1, isa)).unwrap();
        let mut case = Case::random(&shape, 5);
        case.queries[2].0[17] = f32::NAN;
        let got = case.decode(&cpu(1, isa)).unwrap();
        for row in [0, 1, 3, 4] {
            assert!(got.out[row] == clean.out[row] && got.lse[row] == clean.lse[row]);
        }
        assert!(got.out[2].iter().all(|v| v.is_nan()) && got.lse[2].is_nan());
    }
}

#[test]
fn sequences_are_cut_at_the_bound() {
    let cut = {
        let mut case = Case::random(&Shape::uniform(16, 4, 1, &[300]), 6);
        case.max_seq_len = 130;
        // Pages past the cut are not needed.
        case.table[9..].fill(-1);
        case.decode(&cpu(2, Isa::detect())).unwrap()
    };
    let mut case = Case::random(&Shape::uniform(16, 4, 1, &[300]), 6);
    case.seq_lens = vec![130];
    assert!(cut.bits() == case.decode(&cpu(2, Isa::detect())).unwrap().bits());
}

#[test]
fn a_bad_page_is_named_before_anything_is_written() {
    let mut case = Case::random(&Shape::uniform(16, 4, 1, &[300, 200]), 7);
    let end = case.cache.view.num_pages as i32;
    for bad in [end, -1, i32::MAX] {
        case.table[case.max_pages + 12] = bad;
        let error = case.decode(&cpu(2, Isa::detect())).unwrap_err();
        assert_eq!(error.message, format!("block_table[1][12] is page {bad}, not in 0..num_pages {end}"));
    }
}

#[test]
fn bad_ragged_lengths_are_named() {
    let mut shape = Shape::uniform(16, 2, 3, &[30, 20]);
    shape.ragged = true;
    let case = Case::random(&shape, 8);
    let cpu = cpu(1, Isa::detect());
    let message = |cu_q_lens: [i32; 3], q_len: u32| {
        let request =
            |request: &DecodeRequest| cpu.decode(&DecodeRequest { cu_q_lens: cu_q_lens.as_ptr(), q_len, ..*request });
        case.call(&cpu, request).unwrap_err().message
    };
    assert_eq!(message([0, 3, 6], 2), "sequence 0 has 3 query tokens by cu_q_lens, more than q_len 2");
    let order = "they must start at 0 or more and never decrease";
    assert_eq!(message([0, 3, 2], 3), format!("cu_q_lens[1] is 3 and the next 2: {order}"));
    assert_eq!(message([-1, 2, 4], 3), format!("cu_q_lens[0] is -1 and the next 2: {order}"));
}

/// Attention over tokens of `kinds` different kinds, cheaply: token t is of kind `kind(t)`.
fn of_kinds(len: usize, heads: usize, kinds: &[Record], kind: impl Fn(usize) -> usize) -> Case {
    Case::new(&Shape::uniform(64, heads, 1, &[len as i32]), 9, |_, t| kinds[kind(t)].clone())
}

#[test]
fn flat_attention_does_not_drift_with_length() {
    let mut random = Random(10);
    // Values with a mean of half their deviation.
    let kinds: Vec<_> = (0..1024)
        .map(|_| {
            let content: Vec<f32> = random.normals(CONTENT_DIM).iter().map(|v| v + 0.5).collect();
            Record::quantised(&content, &random.normals(ROPE_DIM))
        })
        .collect();
    for len in [1 << 10, 1 << 13, 1 << 17, 1 << 20] {
        let mut case = of_kinds(len, 1, &kinds, |t| (t ^ t >> 10) % 1024);
        case.softmax_scale = 1e-6;
        // Every kind comes equally often: one of each is the whole's mean.
        let mut once = of_kinds(1024, 1, &kinds, |t| t);
        (once.softmax_scale, once.queries) = (1e-6, case.queries.clone());
        let mut reference = once.reference();
        reference.lse[0] += (len as f64 / 1024.0).ln();
        for isa in Isa::all() {
            let got = case.decode(&cpu(2, isa)).unwrap();
            let (l2, lse) = (got.relative_l2(&reference), got.lse_error(&reference));
            assert!(l2 <= 3.5e-3, "{isa:?} {len}: relative L2 {l2}");
            assert!(lse <= LSE, "{isa:?} {len}: lse {lse}");
        }
    }
}

/// One token with nearly all the weight and 128k others at about a millionth each, which together still count.
#[test]
fn a_sink_does_not_wipe_out_the_rest() {
    let len = 1 << 17;
    let mut random = Random(11);
    let direction = random.normals(CONTENT_DIM);
    let sink: Vec<f32> = direction.iter().map(|v| v * 0.1).collect();
    let mut kinds: Vec<_> = (0..32).map(|_| random.normals(CONTENT_DIM)).collect();
    kinds.iter_mut().flatten().for_each(|v| *v = *v * 0.1 + 0.05);
    kinds.push(sink);
    let kinds: Vec<_> = kinds.iter().map(|content| Record::quantised(content, &[0.0; ROPE_DIM])).collect();
    for place in [0, 70_000, len - 1] {
        let mut case = of_kinds(len, 2, &kinds, |t| if t == place { 32 } else { t % 32 });
        for (content, rope) in &mut case.queries {
            (*content, *rope) = (direction.clone(), vec![0.0; ROPE_DIM]);
        }
        case.softmax_scale = 14.0 / 51.2;
        check(&case, 2);
    }
}

#[test]
fn huge_logits_overflow_nothing() {
    for isa in Isa::all() {
        for scale in [1e4, -1e4, 1e-30, 0.0] {
            let mut case = Case::random(&Shape::uniform(64, 3, 1, &[1300]), 12);
            case.softmax_scale = scale;
            let got = case.decode(&cpu(2, isa)).unwrap();
            assert!(got.out.iter().flatten().all(|v| v.is_finite()), "{isa:?} {scale}");
            let reference = case.reference();
            let largest = reference.lse.iter().fold(1f64, |m, v| m.max(v.abs()));
            assert!(got.lse_error(&reference) <= 1e-6 * largest, "{isa:?} {scale}");
            assert!(got.relative_l2(&reference) <= RELATIVE_L2, "{isa:?} {scale}");
        }
    }
}

/// Tokens of every size in one sequence: scales from denormal to huge beside each other.
#[test]
fn scales_of_any_size_stand_together() {
    let mut random = Random(13);
    let case = Case::new(&Shape::uniform(64, 4, 1, &[900]), 13, |_, t| {
        let size = [1e-43, 1e-30, 1e-6, 1.0, 30.0, 0.0][t % 6];
        let scaled = |row: Vec<f32>| row.iter().map(|v| v * size).collect::<Vec<f32>>();
        Record::quantised(&scaled(random.normals(CONTENT_DIM)), &scaled(random.normals(ROPE_DIM)))
    });
    check(&case, 2);
}

#[test]
fn a_huge_batch_and_an_empty_one() {
    let lens: Vec<i32> = (0..5000).map(|i| i % 9).collect();
    let case = Case::random(&Shape::uniform(8, 1, 1, &lens), 14);
    check(&case, 2);
    for (q_len, lens) in [(1, &[][..]), (0, &[30, 600])] {
        let none = Case::random(&Shape::uniform(8, 1, q_len, lens), 15);
        assert!(none.decode(&cpu(2, Isa::detect())).unwrap().out.is_empty());
    }
}

#[test]
fn output_may_be_of_any_type_and_rounds_once() {
    let wide = Case::random(&Shape::uniform(64, 8, 1, &[100]), 16).decode(&cpu(1, Isa::detect())).unwrap();
    for dtype in [Dtype::Bf16, Dtype::F16] {
        let mut case = Case::random(&Shape::uniform(64, 8, 1, &[100]), 16);
        case.out_dtype = dtype;
        let got = case.decode(&cpu(1, Isa::detect())).unwrap();
        for (got, wide) in got.out.iter().zip(&wide.out) {
            let wide: Vec<f32> = wide.iter().map(|&v| v as f32).collect();
            let rounded: Vec<f64> = from_bytes(dtype, &to_bytes(dtype, &wide)).into_iter().map(f64::from).collect();
            assert_eq!(*got, rounded);
        }
    }
}
