//! What this build is and what it finds on this machine.

use serde::Serialize;
use snapmla::abi::types::*;

use crate::api;
use crate::engine::{self, Device, Engine};
use crate::failure::Result;
use crate::report::Report;
use crate::table::Facts;

#[derive(Serialize)]
struct Numbers {
    version: String,
    abi: u32,
    backends: Vec<Backend>,
    device: Device,
}

#[derive(Serialize)]
struct Backend {
    name: &'static str,
    available: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not: Option<String>,
}

pub fn info(options: &engine::Options) -> Result<Report> {
    let backends = [("cpu", SNAPMLA_BACKEND_CPU), ("cuda", SNAPMLA_BACKEND_CUDA)]
        .map(|(name, backend)| {
            let why_not = api::backend_missing(backend, options.device);
            Backend { name, available: why_not.is_none(), why_not }
        })
        .into();
    let numbers = Numbers {
        version: api::version(),
        abi: api::abi_version(),
        backends,
        device: Engine::open(options)?.device(),
    };
    let mut facts = Facts::default();
    facts.add("version", numbers.version.clone());
    facts.add("ABI", numbers.abi.to_string());
    for backend in &numbers.backends {
        facts.add(backend.name, backend.why_not.clone().map_or("available".into(), |why| format!("missing: {why}")));
    }
    facts.add("device", numbers.device.to_string());
    if let Some(driver) = &numbers.device.driver_cuda {
        facts.add("driver", format!("CUDA {driver}"));
    }
    Report::new(facts, &numbers)
}
