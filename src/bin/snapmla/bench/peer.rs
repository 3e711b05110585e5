//! FlashMLA's decode kernels beside ours: the Python program that the README's table comes from, which this one carries.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::ValueEnum;
use snapmla::abi::types::SNAPMLA_BACKEND_CUDA;

use super::Bench;
use super::shapes::Preset;
use crate::api;
use crate::engine;
use crate::failure::{Context, Failure, Result};
use crate::report::Report;

const FILES: [(&str, &str); 2] = [
    ("compare.py", include_str!("../../../../benches/compare.py")),
    ("snapmla_ctypes.py", include_str!("../../../../benches/snapmla_ctypes.py")),
];
const NEEDS: &str = "--peer needs Python with PyTorch and the wheel sgl-flash-mla 1.0.0";

pub fn compare(options: &engine::Options, args: &Bench) -> Result<Report> {
    let preset = args.preset.unwrap_or(Preset::Headline);
    if matches!(preset, Preset::Ops | Preset::Uneven | Preset::Layers) {
        return Err(Failure::new("--peer goes with presets of decode shapes"));
    }
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let imports = Command::new(&python)
        .args(["-c", "import torch, flash_mla"])
        .output()
        .context(|| format!("{NEEDS}: {}", python.display()))?;
    if !imports.status.success() {
        let text = String::from_utf8_lossy(&imports.stderr);
        let why = text.trim_end().lines().last().unwrap_or("it ends without a word");
        return Err(Failure::new(format!("{NEEDS}: {}: {why}", python.display())));
    }
    if let Some(why) = api::backend_missing(SNAPMLA_BACKEND_CUDA, options.device) {
        return Err(Failure::new(format!("--peer needs a Hopper GPU: {why}")));
    }
    let scratch = Scratch::new()?;
    let out = args.out.clone().unwrap_or_else(|| scratch.0.join("out"));
    let mut command = Command::new(&python);
    command.arg(scratch.0.join(FILES[0].0)).arg("--lib").arg(library()?).arg("--out").arg(&out);
    command.args(arguments(args, preset)).args(["--device", &options.device.to_string()]);
    // Its lines are progress here; the report follows whole.
    let run = command.stderr(Stdio::inherit()).output().context(|| python.display().to_string())?;
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    if !run.status.success() {
        return Err(Failure::new(format!("benches/compare.py: {}; {}", run.status, text.trim_end())));
    }
    let file = out.join("compare.json");
    let numbers = std::fs::read_to_string(&file).context(|| file.display().to_string())?;
    let numbers: serde_json::Value = serde_json::from_str(&numbers).context(|| file.display().to_string())?;
    Report::new(text, &numbers)
}

fn arguments(args: &Bench, preset: Preset) -> Vec<String> {
    let list = |numbers: &[usize]| numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let mut arguments = vec!["--warm".to_string(), args.warm.to_string()];
    let mut add = |name: &str, value: String| arguments.extend([name.to_string(), value]);
    if args.batch.is_empty() {
        let name = preset.to_possible_value().map_or_else(String::new, |value| value.get_name().to_string());
        add("--preset", name);
    } else {
        let pairs = args.batch.iter().flat_map(|b| args.length.iter().map(move |length| format!("{b}x{length}")));
        add("--shapes", pairs.collect::<Vec<_>>().join(" "));
    }
    for (name, numbers) in [("--heads", &args.heads), ("--q-len", &args.q_len)] {
        if !numbers.is_empty() {
            add(name, list(numbers));
        }
    }
    arguments
}

/// The one that was built with this program, or else the one that is installed.
fn library() -> Result<PathBuf> {
    let program = std::env::current_exe().context(|| "this program's own path".into())?;
    let beside = program.with_file_name("libsnapmla.so");
    Ok(if beside.exists() { beside } else { "libsnapmla.so.0".into() })
}

/// A folder with the Python files, gone at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("snapmla-peer-{}", std::process::id()));
        let named = |path: &Path| path.display().to_string();
        std::fs::create_dir_all(&folder).context(|| named(&folder))?;
        let scratch = Self(folder);
        for (name, text) in FILES {
            let path = scratch.0.join(name);
            std::fs::write(&path, text).context(|| named(&path))?;
        }
        Ok(scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
