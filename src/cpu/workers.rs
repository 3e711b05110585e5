//! The threads of a context, and how work is dealt out to them.

use std::ops::Range;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::float_env::FloatEnv;
use crate::abi::types::{SNAPMLA_STATUS_INVALID_HANDLE, SNAPMLA_STATUS_OUT_OF_MEMORY};
use crate::error::{Error, Result};

pub struct Workers {
    /// None with one thread: the caller's does the work.
    pool: Option<ThreadPool>,
    threads: usize,
    /// The process that the threads are in.
    process: u32,
}

impl Workers {
    /// `threads` 0 means one for each core the process may use.
    pub fn new(threads: u32) -> Result<Self> {
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n as usize,
        };
        let process = std::process::id();
        if threads == 1 {
            return Ok(Self { pool: None, threads, process });
        }
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("snapmla-{i}"))
            .start_handler(|_| FloatEnv::enter_for_good())
            .build()
            .map_err(|e| Error::new(SNAPMLA_STATUS_OUT_OF_MEMORY, format!("cannot start {threads} threads: {e}")))?;
        Ok(Self { threads: pool.current_num_threads(), pool: Some(pool), process })
    }

    pub fn threads(&self) -> usize {
        self.threads
    }

    /// In a forked child the threads are missing, and waiting for them would never end. One thread is told the same, so
    /// that what works does not hang on the number of cores.
    pub fn check_process(&self) -> Result<()> {
        let here = std::process::id();
        if here != self.process {
            let text = format!("context is of process {}, and this is process {here}: create one here", self.process);
            return Err(Error::new(SNAPMLA_STATUS_INVALID_HANDLE, text));
        }
        Ok(())
    }

    /// Calls `work` with ranges that together cover `0..n`, each at most `grain` long. Anything that fits in one
    /// range is done on the caller's thread, which costs no wake-up.
    pub fn for_ranges(&self, n: usize, grain: usize, work: impl Fn(Range<usize>) + Sync) {
        let ranges = n.div_ceil(grain);
        let range = |i: usize| i * grain..n.min((i + 1) * grain);
        match &self.pool {
            Some(pool) if ranges > 1 => {
                pool.install(|| (0..ranges).into_par_iter().with_max_len(1).for_each(|i| work(range(i))));
            }
            _ => {
                let _env = FloatEnv::enter();
                (0..ranges).for_each(|i| work(range(i)));
            }
        }
    }
}

/// Raw pointers of a request, sent to the workers.
#[derive(Clone, Copy)]
pub struct Shared<T>(T);

impl<T> Shared<T> {
    /// # Safety
    /// Whatever the threads do through the pointers in `value` must not race: each writes its own elements, and
    /// none writes what another reads.
    pub unsafe fn new(value: T) -> Self {
        Self(value)
    }

    pub fn get(&self) -> &T {
        &self.0
    }
}

// SAFETY: whoever made the value vouched that the threads' accesses through it do not race.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn ranges_cover_everything_once() {
        for threads in [1, 3] {
            let workers = Workers::new(threads).unwrap();
            for n in [0, 1, 7, 8, 9, 100] {
                let counts: Vec<AtomicUsize> = (0..n).map(|_| AtomicUsize::new(0)).collect();
                workers.for_ranges(n, 8, |range| {
                    assert!(range.len() <= 8 && !range.is_empty());
                    range.for_each(|i| _ = counts[i].fetch_add(1, Ordering::Relaxed));
                });
                assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn zero_threads_means_the_cores_of_the_process() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        assert_eq!(Workers::new(0).unwrap().threads(), cores);
    }
}
