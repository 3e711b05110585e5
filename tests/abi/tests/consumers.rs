//! Programs in every standard of C and C++ that the header promises.

use abi_check::consumer::Consumer;

const C: [&str; 4] = ["c99", "c11", "c17", "c2x"];
const CPP: [&str; 4] = ["c++11", "c++14", "c++17", "c++20"];

fn run(source: &'static str, standards: &[&'static str]) {
    for standard in standards {
        Consumer { source, standard, include: "include" }.runs();
    }
}

#[test]
fn macros_in_c() {
    run("tests/consumers/macros.c", &C);
}

#[test]
fn macros_in_cpp() {
    run("tests/consumers/macros.c", &CPP);
}

#[test]
fn a_session_in_c() {
    run("tests/consumers/session.c", &C);
}

#[test]
fn a_session_in_cpp() {
    run("tests/consumers/session.cpp", &CPP);
}
