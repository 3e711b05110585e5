//! What the shared library shows to the linker and the loader.

use std::collections::BTreeSet;
use std::process::Command;

use abi_check::library;

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).arg(library::built()).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Names of the functions that the header declares.
fn declared() -> BTreeSet<String> {
    let header = std::fs::read_to_string(library::root().join("include/snapmla.h")).expect("the header reads");
    let code = header.lines().filter(|line| !line.trim_start().starts_with(['*', '/']));
    let called = code.filter_map(|line| line.split_once('(')).map(|(before, _)| before.to_owned());
    let names = called.filter_map(|before| before.split([' ', '*']).next_back().map(str::to_owned));
    names.filter(|name| name.starts_with("snapmla_")).collect()
}

#[test]
fn exactly_the_declared_functions_are_exported() {
    let listing = output("nm", &["-D", "--defined-only", "--format=posix"]);
    let exported: BTreeSet<String> =
        listing.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    assert_eq!(exported, declared());
}

#[test]
fn the_soname_is_that_of_abi_0() {
    assert!(output("readelf", &["-d"]).contains("soname: [libsnapmla.so.0]"));
}

/// Worker threads that are still returning would run code that dlclose has unmapped.
#[test]
fn dlclose_keeps_the_code() {
    assert!(output("readelf", &["-d"]).contains("NODELETE"));
}

#[test]
fn only_the_system_is_needed() {
    for line in output("readelf", &["-d"]).lines().filter(|line| line.contains("(NEEDED)")) {
        let system = ["libc.so", "libm.so", "libgcc_s.so", "ld-linux", "libpthread.so", "libdl.so", "librt.so"];
        assert!(system.iter().any(|name| line.contains(name)), "{line}");
    }
}
