//! Compiles every `cuda/*.cu` to a cubin for Hopper when nvcc is there, and embeds cubins and sources.
//!
//! The sources are embedded in any case: they are what NVRTC compiles at run time when there are no cubins, or when
//! the driver is older than the toolkit that made them. Includes are written relative to `cuda/`, because NVRTC looks
//! an include up by the text between its quotes.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The first nvcc whose ptxas knows every instruction the kernels use.
const OLDEST_NVCC: (u32, u32) = (12, 4);

pub fn build() {
    // A directory counts with everything below it. PATH is left out: it differs between a terminal and an editor,
    // and would rebuild the library whenever they take turns.
    println!("cargo::rerun-if-changed=cuda");
    for name in ["NVCC", "CUDA_HOME", "CUDA_PATH"] {
        println!("cargo::rerun-if-env-changed={name}");
    }

    let out_dir = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let mut sources = Vec::new();
    collect_sources(Path::new("cuda"), &mut sources);
    sources.sort();
    let units: Vec<&PathBuf> = sources.iter().filter(|p| p.extension().is_some_and(|e| e == "cu")).collect();

    let cubins = match find_nvcc() {
        Ok(nvcc) => compile_all(&nvcc, &units, &out_dir),
        Err(why) => {
            println!("cargo::warning={why}: the CUDA kernels will be compiled at run time, where NVRTC is installed");
            Vec::new()
        }
    };
    fs::write(out_dir.join("embedded_kernels.rs"), embedding(&sources, &cubins)).expect("OUT_DIR is writable");
}

fn collect_sources(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("cuda/ is readable") {
        let path = entry.expect("cuda/ is readable").path();
        if path.is_dir() {
            collect_sources(&path, into);
        } else if path.extension().is_some_and(|e| e == "cu" || e == "cuh") {
            into.push(path);
        }
    }
}

/// The compiler to use, or why there is none.
fn find_nvcc() -> Result<PathBuf, String> {
    let named = env::var_os("NVCC").map(PathBuf::from);
    let in_toolkit = |name| env::var_os(name).map(|home| Path::new(&home).join("bin").join("nvcc"));
    let candidates = [named, in_toolkit("CUDA_HOME"), in_toolkit("CUDA_PATH"), Some(PathBuf::from("nvcc"))];

    let mut reason = String::from("nvcc not found (NVCC, CUDA_HOME, CUDA_PATH, PATH)");
    for nvcc in candidates.into_iter().flatten() {
        let Ok(output) = Command::new(&nvcc).arg("--version").output() else { continue };
        match release(&String::from_utf8_lossy(&output.stdout)) {
            Some(version) if version >= OLDEST_NVCC => return Ok(nvcc),
            Some((major, minor)) => {
                reason = format!(
                    "{} is version {major}.{minor}, older than {}.{}",
                    nvcc.display(),
                    OLDEST_NVCC.0,
                    OLDEST_NVCC.1
                );
            }
            None => reason = format!("{} --version names no release", nvcc.display()),
        }
    }
    Err(reason)
}

/// The version in nvcc's "Cuda compilation tools, release 13.0, V13.0.88".
fn release(text: &str) -> Option<(u32, u32)> {
    let (_, rest) = text.split_once("release ")?;
    let (version, _) = rest.split_once(',')?;
    let (major, minor) = version.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Compiles the units, as many at a time as cargo allows jobs. Fails the build on the first error.
fn compile_all(nvcc: &Path, units: &[&PathBuf], out_dir: &Path) -> Vec<(String, PathBuf)> {
    let jobs = env::var("NUM_JOBS").ok().and_then(|n| n.parse().ok()).unwrap_or(1usize).clamp(1, units.len().max(1));
    let next = AtomicUsize::new(0);
    let mut cubins: Vec<(String, PathBuf)> = thread::scope(|scope| {
        let worker = || {
            let mut done = Vec::new();
            while let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
                done.push(compile(nvcc, unit, out_dir));
            }
            done
        };
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|w| w.join().expect("a kernel failed to compile, see above")).collect()
    });
    cubins.sort();
    cubins
}

fn compile(nvcc: &Path, unit: &Path, out_dir: &Path) -> (String, PathBuf) {
    let name = unit.file_stem().expect("a .cu file has a name").to_str().expect("kernel names are ASCII").to_string();
    let cubin = out_dir.join(&name).with_extension("cubin");
    let output = Command::new(nvcc)
        .args(["-std=c++17", "-O3", "-gencode=arch=compute_90a,code=sm_90a", "-cubin", "-I", "cuda"])
        .args(["-Xptxas", "-warn-spills", "-Xptxas", "-warn-lmem-usage"])
        .arg("-o")
        .arg(&cubin)
        .arg(unit)
        .output()
        .unwrap_or_else(|e| panic!("cannot run {}: {e}", nvcc.display()));
    report(unit, &output);
    (name, cubin)
}

fn report(unit: &Path, output: &Output) {
    let text = [String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)].concat();
    assert!(output.status.success(), "{}:\n{text}", unit.display());
    for line in text.lines().filter(|line| line.contains("warning")) {
        println!("cargo::warning={}: {line}", unit.display());
    }
}

/// The Rust text that `src/cuda/images.rs` includes.
fn embedding(sources: &[PathBuf], cubins: &[(String, PathBuf)]) -> String {
    let mut text = String::from("pub static CUBINS: &[(&str, &Aligned<[u8]>)] = &[\n");
    for (name, path) in cubins {
        writeln!(text, "    ({name:?}, &Aligned(*include_bytes!({path:?}))),").unwrap();
    }
    text.push_str("];\npub static SOURCES: &[(&str, &str)] = &[\n");
    for path in sources {
        let name = path.strip_prefix("cuda").expect("every source is below cuda/");
        writeln!(text, "    ({name:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/\", {path:?}))),")
            .unwrap();
    }
    text.push_str("];\n");
    text
}
