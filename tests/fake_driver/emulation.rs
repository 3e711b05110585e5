//! Compiles for the host the kernels that give a warp a row, which the stand-in driver then runs, and decode's planner.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{self, Command};
use std::sync::OnceLock;

use crate::harness::{self, link};

/// As `with_fake_driver`, with kernels that run.
macro_rules! with_emulated_kernels {
    ($($tests:tt)*) => { $crate::harness::tests_in_children! { $crate::emulation::build; $($tests)* } };
}
pub(crate) use with_emulated_kernels;

/// The folder with the stand-ins, and the kernels beside them.
pub fn build() -> &'static Path {
    static FOLDER: OnceLock<&Path> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = harness::build();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        // Includes look beside the including file first, so the host's `ptx/` must lie where the kernels' does.
        let sources = folder.join(format!("kernels.{}", process::id()));
        copy(&root.join("cuda"), &sources);
        copy(&root.join("tests/fake_driver/emulation"), &sources);
        let mut compiler = Command::new(env::var_os("CXX").unwrap_or_else(|| "c++".into()));
        compiler
            .args(["-std=c++17", "-w", "-ffp-contract=off", "-I"])
            .arg(&sources)
            .args([sources.join("launch.cpp"), sources.join("plan.cpp")]);
        link(&mut compiler, folder, "libkernels.so");
        fs::remove_dir_all(&sources).expect("the sources are no longer needed");
        folder
    })
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder for the sources");
    for entry in fs::read_dir(from).expect("sources") {
        let path = entry.expect("sources").path();
        let to = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).expect("a copy");
        }
    }
}
