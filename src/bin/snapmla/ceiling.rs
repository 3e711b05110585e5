//! How fast this machine's memory is, measured without the library.

use std::hint::black_box;
use std::time::Instant;

use rayon::prelude::*;
use serde::Serialize;

use crate::engine::Engine;
use crate::failure::Result;
use crate::memory::Place;
use crate::rng::Rng;

/// Far larger than any cache.
const HOST_BYTES: usize = 1 << 30;
const GPU_BYTES: usize = 4 << 30;
const PASSES: usize = 5;

#[derive(Serialize, Clone, Copy)]
pub struct Ceiling {
    pub bytes_per_s: f64,
    pub how: &'static str,
}

pub fn measure(engine: &Engine) -> Result<Ceiling> {
    match &engine.place {
        Place::Host => Ok(Ceiling {
            bytes_per_s: host_read(engine.info.parallelism.max(1) as usize),
            how: "streaming reads of 1 GiB by every thread",
        }),
        Place::Gpu(_) => Ok(Ceiling {
            bytes_per_s: copy_rate(engine, GPU_BYTES)?,
            how: "device-to-device copies of 4 GiB, bytes read and written",
        }),
    }
}

/// Bytes read and written a second when `bytes` are copied inside the engine's memory: the best of some passes.
pub fn copy_rate(engine: &Engine, bytes: usize) -> Result<f64> {
    let mut from = engine.place.buffer::<u8>(bytes)?;
    let to = engine.place.buffer::<u8>(bytes)?;
    // Zeros can travel faster than data.
    let mut rng = Rng::new(0, 7, 0);
    let pattern: Vec<u8> = (0..1 << 20).map(|_| rng.bits() as u8).collect();
    for at in (0..bytes).step_by(1 << 20) {
        from.write(at, &pattern[..(bytes - at).min(pattern.len())])?;
    }
    let mut best = f64::INFINITY;
    for _ in 0..PASSES {
        best = best.min(engine.place.time(|| from.all().copy_to(&to.all()))?);
    }
    Ok(2.0 * bytes as f64 / best)
}

fn host_read(threads: usize) -> f64 {
    let words = HOST_BYTES / 8 / threads;
    let parts: Vec<Vec<u64>> = (0..threads).into_par_iter().map(|part| vec![part as u64 + 1; words]).collect();
    let pass = || {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for part in &parts {
                scope.spawn(|| black_box(part.iter().fold(0u64, |sum, word| sum.wrapping_add(*word))));
            }
        });
        start.elapsed().as_secs_f64()
    };
    let best = (0..PASSES).map(|_| pass()).fold(f64::INFINITY, f64::min);
    (words * 8 * threads) as f64 / best
}
