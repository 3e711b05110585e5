//! `conformance`: the suite as one program, for machines without a Rust toolchain.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use conformance::backend::Backend;
use conformance::groups::{Effort, GROUPS};
use conformance::report::{BackendReport, Report};

/// Violations of a group that are printed.
const SHOWN: usize = 12;

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Which {
    Cpu,
    Cuda,
    /// Whatever the machine has.
    All,
}

/// Holds libsnapmla's backends to their contract. Exits with 1 on any violation, with 2 where a backend is missing.
#[derive(Parser)]
struct Arguments {
    #[arg(long, value_enum, default_value = "all")]
    backend: Which,
    /// Only cases whose "group/case" contains this.
    #[arg(long)]
    filter: Option<String>,
    /// The part that `cargo test` runs, on every backend. Without it or `--full`: that part on the CPU, all on CUDA.
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// All of it on every backend: minutes on the CPU.
    #[arg(long)]
    full: bool,
    /// Where to write the report.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Lists the groups.
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.list {
        GROUPS.iter().for_each(|group| println!("{:<14} {}", group.name, group.about));
        return ExitCode::SUCCESS;
    }
    let backends = match backends(arguments.backend) {
        Ok(backends) => backends,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    let report = Report::new(backends.iter().map(|backend| run(backend, &arguments)).collect());
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&report).expect("plain data");
        if let Err(error) = std::fs::write(path, text) {
            eprintln!("{}: {error}", path.display());
            return ExitCode::from(2);
        }
    }
    let violations: usize = report.backends.iter().map(|backend| backend.violations).sum();
    let cases = report.backends.iter().flat_map(|backend| &backend.groups).map(|group| group.cases.len());
    println!("{} cases, {violations} violations", cases.sum::<usize>());
    ExitCode::from(u8::from(violations > 0))
}

fn backends(which: Which) -> Result<Vec<Backend>, String> {
    let mut backends = Vec::new();
    if which != Which::Cuda {
        backends.push(Backend::cpu()?);
    }
    if which != Which::Cpu {
        match Backend::cuda() {
            Ok(backend) => backends.push(backend),
            Err(message) if which == Which::All => println!("no CUDA backend: {message}"),
            Err(message) => return Err(message),
        }
    }
    Ok(backends)
}

fn run(backend: &Backend, arguments: &Arguments) -> BackendReport {
    println!("{}: {}", backend.kind.name(), backend.name);
    if let Some(cuda) = &backend.cuda {
        println!("      {}, driver {}", cuda.card, cuda.driver);
    }
    let full = arguments.full || !(arguments.quick || backend.is_cpu());
    let effort = if full { Effort::Full } else { Effort::Quick };
    let start = Instant::now();
    let mut groups = Vec::new();
    for group in GROUPS {
        let Some(report) = group.run(backend, effort, arguments.filter.as_deref()) else { continue };
        println!("{}", report.line(backend.kind.name()));
        let violations = report.violations();
        violations.iter().take(SHOWN).for_each(|text| println!("     {text}"));
        if violations.len() > SHOWN {
            println!("     and {} more, which the JSON report tells", violations.len() - SHOWN);
        }
        groups.push(report);
    }
    BackendReport::new(backend, start.elapsed().as_secs_f64(), groups)
}
