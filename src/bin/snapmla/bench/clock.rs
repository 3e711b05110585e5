//! The time of one call, hot.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::cuda::Gpu;
use crate::failure::Result;
use crate::memory::Place;
use std::rc::Rc;

/// Replays, or CPU calls, whose median is taken, and how long more of them may go on.
const FEWEST: usize = 7;
const MOST: usize = 101;
const LONG_ENOUGH: f64 = 0.5;
/// A CPU call may take seconds.
const FEWEST_SLOW: usize = 3;
const SLOW: f64 = 5.0;

pub struct Method {
    /// Seconds of load before the clock.
    pub warm: f64,
    /// Calls of one graph.
    pub calls: usize,
}

/// Seconds a call.
#[derive(Serialize, Clone, Copy)]
pub struct Timing {
    pub median: f64,
    pub least: f64,
    pub most: f64,
    pub samples: usize,
}

impl Method {
    pub fn text(&self, on_gpu: bool) -> String {
        if on_gpu {
            format!(
                "GPU time a call: median of at least {FEWEST} replays of a CUDA graph of {} calls over different pages, \
                 after {} s of the same load",
                self.calls, self.warm
            )
        } else {
            format!("wall time a call: median of at least {FEWEST_SLOW} calls over different pages")
        }
    }

    /// Times `call`, which is given 0 to `calls` - 1 in turn, to work on other data each time.
    pub fn measure(&self, place: &Place, call: impl Fn(usize) -> Result<()>) -> Result<Timing> {
        match place {
            Place::Gpu(gpu) => self.on_gpu(gpu, call),
            Place::Host => self.on_host(call),
        }
    }

    fn on_gpu(&self, gpu: &Rc<Gpu>, call: impl Fn(usize) -> Result<()>) -> Result<Timing> {
        // Once outside the capture: what is done on first use must not be in it.
        call(0)?;
        gpu.synchronize()?;
        let graph = gpu.capture(|| (0..self.calls).try_for_each(&call))?;
        let (start, end) = (gpu.event()?, gpu.event()?);
        start.record()?;
        graph.launch()?;
        end.record()?;
        let replay = end.seconds_since(&start)?;

        // Queued in bunches, so that the GPU never waits for the host.
        let bunch = (0.05 / replay).clamp(1.0, 1000.0) as usize;
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs_f64(self.warm) {
            (0..bunch).try_for_each(|_| graph.launch())?;
            gpu.synchronize()?;
        }
        let replays = ((LONG_ENOUGH / replay) as usize).clamp(FEWEST, MOST);
        let marks = (0..=replays).map(|_| gpu.event()).collect::<Result<Vec<_>>>()?;
        (0..bunch.min(replays)).try_for_each(|_| graph.launch())?;
        marks[0].record()?;
        for mark in &marks[1..] {
            graph.launch()?;
            mark.record()?;
        }
        let pairs = marks.windows(2).map(|pair| Ok(pair[1].seconds_since(&pair[0])? / self.calls as f64));
        Ok(Timing::of(pairs.collect::<Result<_>>()?))
    }

    fn on_host(&self, call: impl Fn(usize) -> Result<()>) -> Result<Timing> {
        call(0)?;
        let begin = Instant::now();
        let mut samples = Vec::new();
        loop {
            let start = Instant::now();
            call((samples.len() + 1) % self.calls)?;
            samples.push(start.elapsed().as_secs_f64());
            let (count, spent) = (samples.len(), begin.elapsed().as_secs_f64());
            let enough = count >= FEWEST && (spent > LONG_ENOUGH || count >= MOST);
            if enough || (count >= FEWEST_SLOW && spent > SLOW) {
                return Ok(Timing::of(samples));
            }
        }
    }
}

impl Timing {
    fn of(mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        let last = samples.len() - 1;
        Self { median: samples[last / 2], least: samples[0], most: samples[last], samples: samples.len() }
    }
}
