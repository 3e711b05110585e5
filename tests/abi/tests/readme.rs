//! The C program in README.md compiles and runs as printed.

use std::path::Path;

use abi_check::consumer::Consumer;

#[test]
fn the_quick_start_runs() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).expect("README.md");
    let program = readme.split("```c\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a C program");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("quick_start.c");
    std::fs::write(&path, program).expect("the program is written");
    let source: &'static str = Box::leak(path.to_string_lossy().into_owned().into_boxed_str());
    Consumer { source, standard: "c11", include: "include" }.runs();
}
