//! `snapmla plot`: charts of measured decodes, as SVG files.
//!
//! Each chart takes from the rows what it shows, and is not drawn where they have nothing for it.

mod chart;
mod figures;
mod rows;

use std::path::{Path, PathBuf};

use clap::Args;

use crate::failure::{Context, Failure, Result};
use crate::report::Report;

#[derive(Args)]
pub struct Plot {
    /// bench.json of `snapmla bench --out`, compare.json of `snapmla bench --peer --out`; of equal shapes the last counts
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Where figure6.svg, figure7.svg, roofline.svg and speedup.svg go
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Write nothing; fail where a chart differs from its file
    #[arg(long)]
    check: bool,
}

pub fn plot(args: &Plot) -> Result<Report> {
    let mut rows = Vec::new();
    for file in &args.files {
        rows::read(file, &mut rows)?;
    }
    let mut drawn = Vec::new();
    for (name, figure) in figures::ALL {
        if let Some(svg) = figure(&rows)? {
            drawn.push((args.out.join(name), svg));
        }
    }
    if drawn.is_empty() {
        return Err(Failure::new("no row of these files is in any chart"));
    }
    if args.check {
        for (path, svg) in &drawn {
            if std::fs::read(path).context(|| named(path))? != svg.as_bytes() {
                return Err(Failure::new(format!("{} is not what these files give", named(path))));
            }
        }
    } else {
        std::fs::create_dir_all(&args.out).context(|| named(&args.out))?;
        for (path, svg) in &drawn {
            std::fs::write(path, svg).context(|| named(path))?;
        }
    }
    let paths: Vec<String> = drawn.iter().map(|(path, _)| named(path)).collect();
    Report::new(paths.join("\n") + "\n", &paths)
}

fn named(path: &Path) -> String {
    path.display().to_string()
}
