//! How fast decode is here: `cargo test --release --lib cpu::tests::speed -- --ignored --nocapture`, with ISA=avx512
//! before it for one instruction set and HEADS=16 for one number of heads.

use std::time::{Duration, Instant};

use super::attention::*;
use super::fixture::*;
use crate::cpu::isa::Isa;
use crate::layout::{CONTENT_DIM, ROPE_DIM};
use crate::request::{DecodeRequest, Dtype, FetchRequest, FetchSource, KAppendRequest};

/// The time that the process has spent on its cores: what counts where others use them too.
fn cpu_time() -> Duration {
    // SAFETY: any bits are a timespec, and the call fills in a local one.
    unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
}

/// Whether an environment variable asks for something other than `value`.
fn unwanted(variable: &str, value: &str) -> bool {
    std::env::var(variable).is_ok_and(|only| only != value)
}

#[test]
#[ignore = "a measurement"]
fn decode() {
    let mut random = Random(1);
    let kinds: Vec<_> = (0..251).map(|_| Record::random(&mut random)).collect();
    for (batch, len, heads, q_len) in [
        (1, 1024, 16, 1),
        (1, 512, 128, 1),
        (1, 32768, 16, 1),
        (1, 32768, 128, 1),
        (1, 8192, 8, 1),
        (1, 8192, 1, 1),
        (64, 512, 16, 1),
        (4, 2048, 16, 4),
    ] {
        if unwanted("HEADS", &heads.to_string()) {
            continue;
        }
        let mut shape = Shape::uniform(64, heads, q_len, &vec![len; batch]);
        (shape.q_dtype, shape.out_dtype, shape.causal) = (Some(Dtype::Bf16), Dtype::Bf16, true);
        let case = Case::new(&shape, 1, |b, t| kinds[(b * 17 + t) % kinds.len()].clone());
        let flops = 2.0 * 1088.0 * f64::from(len) * (batch * heads * q_len) as f64;
        for (isa, threads) in Isa::all().into_iter().flat_map(|isa| [(isa, 1), (isa, 2)]) {
            if unwanted("ISA", isa.name()) {
                continue;
            }
            let cpu = cpu(threads, isa);
            let (mut wall, mut busy) = (Duration::MAX, Duration::MAX);
            let until = Instant::now() + Duration::from_millis(700);
            let decode = |request: &DecodeRequest| {
                while Instant::now() < until {
                    let (start, start_busy) = (Instant::now(), cpu_time());
                    cpu.decode(request)?;
                    wall = wall.min(start.elapsed());
                    busy = busy.min(cpu_time() - start_busy);
                }
                Ok(())
            };
            case.call(&cpu, decode).unwrap();
            println!(
                "{batch} x {len}, {heads} heads, q_len {q_len}, {} x {threads}: {:.3} ms, {:.3} ms of cores, {:.0} GFLOP/s a core",
                isa.name(),
                wall.as_secs_f64() * 1e3,
                busy.as_secs_f64() * 1e3,
                flops / busy.as_secs_f64() / 1e9
            );
        }
    }
}

#[test]
#[ignore = "a measurement"]
fn append_and_fetch() {
    const TOKENS: usize = 4096;
    let cache = Cache::poisoned(64, TOKENS / 64, 1);
    let slots: Vec<i64> = (0..TOKENS as i64).collect();
    let mut random = Random(1);
    let mut content = to_bytes(Dtype::Bf16, &random.normals(TOKENS * CONTENT_DIM));
    let mut rope = to_bytes(Dtype::Bf16, &random.normals(TOKENS * ROPE_DIM));
    let append = KAppendRequest {
        cache: cache.view,
        layer: 0,
        dtype: Dtype::Bf16,
        num_tokens: TOKENS as i64,
        content: rows(&content, CONTENT_DIM * 2),
        rope: rows(&rope, ROPE_DIM * 2),
        slots: slots.as_ptr(),
    };
    let fetch = FetchRequest {
        cache: cache.view,
        layer: 0,
        dtype: Dtype::Bf16,
        num_tokens: TOKENS as i64,
        source: FetchSource::Slots(slots.as_ptr()),
        content: rows_mut(&mut content, CONTENT_DIM * 2),
        rope: rows_mut(&mut rope, ROPE_DIM * 2),
    };
    for isa in Isa::all() {
        let cpu = cpu(1, isa);
        let (mut appending, mut fetching) = (Duration::MAX, Duration::MAX);
        for _ in 0..20 {
            let start = Instant::now();
            cpu.k_append(&append).unwrap();
            appending = appending.min(start.elapsed());
            let start = Instant::now();
            cpu.fetch_dequant(&fetch).unwrap();
            fetching = fetching.min(start.elapsed());
        }
        let each = |time: Duration| time.as_nanos() as f64 / TOKENS as f64;
        println!("{}: {:.0} ns a token to append, {:.0} to fetch", isa.name(), each(appending), each(fetching));
    }
}
