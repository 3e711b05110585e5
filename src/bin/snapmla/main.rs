//! `snapmla`: shows on the machine at hand what the library does, how exact it is and how fast.
//!
//! Everything goes through the exported C functions, wrapped once in [`api`].

mod api;
mod bench;
mod ceiling;
mod check;
mod compare;
mod cuda;
mod dump;
mod engine;
mod failure;
mod fp8;
mod info;
mod layer;
mod memory;
mod plot;
mod progress;
mod queries;
mod reference;
mod report;
mod rng;
mod run;
mod session;
mod synth;
mod table;
mod verify;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Result;
use report::Report;

/// FP8 multi-head latent attention decoding: a session, a check, a benchmark.
///
/// Without a command, runs a decode session on the best backend of this machine and checks its answers.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(flatten)]
    options: engine::Options,
    /// Print one JSON object instead of a table
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Run a decode session and check its answers (the default)
    Run(run::Shape),
    /// Measure what FP8 costs on a layer's real numbers
    #[command(long_about = check::LONG_ABOUT)]
    Check(check::Check),
    /// Measure how fast decode and the cache operations are
    Bench(bench::Bench),
    /// Draw charts of bench results as SVG files
    Plot(plot::Plot),
    /// Write a dump of a synthetic layer, to try `check` on
    Synth(synth::Synth),
    /// Say what this build is and what it finds on this machine
    Info,
}

impl Cli {
    fn report(&self) -> Result<Report> {
        match &self.command {
            None => run::run(&self.options, &run::Shape::default()),
            Some(Command::Run(shape)) => run::run(&self.options, shape),
            Some(Command::Bench(args)) => bench::bench(&self.options, args),
            Some(Command::Check(args)) => check::check(&self.options, args),
            Some(Command::Plot(args)) => plot::plot(args),
            Some(Command::Synth(args)) => synth::synth(args),
            Some(Command::Info) => info::info(&self.options),
        }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let printed = cli.report().and_then(|report| {
        report.print(cli.json)?;
        Ok(report.broken)
    });
    match printed {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(broken)) => fail(&broken),
        Err(error) => fail(&error.to_string()),
    }
}

fn fail(message: &str) -> ExitCode {
    eprintln!("snapmla: {message}");
    ExitCode::FAILURE
}
