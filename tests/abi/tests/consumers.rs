//! Programs in every standard of C and C++ that the header promises; examples and integrations, as their users build them.

use abi_check::consumer::Consumer;

const C: [&str; 4] = ["c99", "c11", "c17", "c2x"];
const CPP: [&str; 4] = ["c++11", "c++14", "c++17", "c++20"];

fn run(source: &'static str, standards: &[&'static str]) {
    for standard in standards {
        Consumer { source, standard, include: "include", options: &[] }.runs();
    }
}

/// As `run`, with the compiler's checks of the program, its memory and its leaks.
fn run_sanitised(source: &'static str, standard: &'static str) {
    let options = &["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    Consumer { source, standard, include: "include", options }.runs();
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

#[test]
fn a_stranger_to_the_library() {
    run("tests/consumers/stranger.c", &["c99"]);
}

#[test]
fn a_stranger_sanitised() {
    run_sanitised("tests/consumers/stranger.c", "c11");
}

#[test]
fn a_process_around_the_library() {
    let options = &["-D_POSIX_C_SOURCE=200809L"];
    Consumer { source: "tests/consumers/process.c", standard: "c11", include: "include", options }.runs();
}

#[test]
fn the_library_loaded_twice() {
    let options = &["-D_GNU_SOURCE", "-Wl,--as-needed"];
    Consumer { source: "tests/consumers/reload.c", standard: "c99", include: "include", options }.runs();
}

#[test]
fn the_serving_loop() {
    run("examples/serving_loop.c", &["c11"]);
    run_sanitised("examples/serving_loop.c", "c17");
}

#[test]
fn an_engine_in_cpp() {
    run("integrations/cpp/main.cpp", &["c++17"]);
    run_sanitised("integrations/cpp/main.cpp", "c++20");
}

#[test]
fn tensorrt_llm_fields() {
    run("tests/consumers/trtllm.cpp", &["c++17"]);
    run_sanitised("tests/consumers/trtllm.cpp", "c++20");
}
