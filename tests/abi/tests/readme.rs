//! The C program in README.md builds and runs by the commands printed there, and by every C compiler's strict word.

use std::path::{Path, PathBuf};
use std::process::Command;

use abi_check::consumer::Consumer;
use abi_check::library;

/// The `nth` block of a language.
fn block(language: &str, nth: usize) -> String {
    let readme = std::fs::read_to_string(library::root().join("README.md")).expect("README.md");
    let blocks = readme.split(&format!("```{language}\n")).nth(nth + 1);
    blocks.and_then(|rest| rest.split("```").next()).expect("a block").to_owned()
}

fn quick_start(folder: &Path) -> PathBuf {
    let path = folder.join("quick_start.c");
    std::fs::write(&path, block("c", 0)).expect("the program is written");
    path
}

#[test]
fn the_quick_start_runs() {
    let path = quick_start(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let source: &'static str = Box::leak(path.to_string_lossy().into_owned().into_boxed_str());
    Consumer { source, standard: "c11", include: "include", options: &[] }.runs();
}

/// The folder that the commands run in holds what `cargo build --release` leaves in a checkout.
#[test]
#[cfg(target_os = "linux")]
fn the_printed_commands_run() {
    use std::os::unix::fs::symlink;

    let commands = block("sh", 1);
    let (build, rest) = commands.split_once('\n').expect("several commands");
    assert_eq!(build, "cargo build --release");

    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("checkout");
    let _ = std::fs::remove_dir_all(&folder);
    let release = folder.join("target/release");
    std::fs::create_dir_all(&release).expect("a folder");
    quick_start(&folder);
    symlink(library::root().canonicalize().expect("the root").join("include"), folder.join("include"))
        .expect("a link");
    std::fs::copy(library::built(), release.join("libsnapmla.so")).expect("the library is copied");
    let link = std::fs::read_link(library::soname_link()).expect("the build leaves a link");
    symlink(link, release.join("libsnapmla.so.0")).expect("a link");

    let output = Command::new("sh").args(["-ec", rest]).current_dir(&folder).env_remove("LD_LIBRARY_PATH").output();
    let output = output.expect("sh runs");
    assert!(output.status.success(), "{rest}{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("out[0][0] = "));
}
