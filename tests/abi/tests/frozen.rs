//! The binary interface as it was first released: programs of that time compile and run, layouts and numbers stay.

use abi_check::consumer::Consumer;

#[test]
fn an_old_program_runs() {
    Consumer { source: "tests/abi/v1/consumer.c", standard: "c99", include: "tests/abi/v1", options: &[] }.runs();
}

#[test]
fn an_old_program_compiles() {
    Consumer { source: "tests/abi/v1/consumer.c", standard: "c2x", include: "include", options: &[] }.runs();
}

#[test]
fn an_old_header_has_the_old_layout() {
    Consumer { source: "tests/abi/v1/layout.c", standard: "c11", include: "tests/abi/v1", options: &[] }.runs();
}

#[test]
fn layout_and_numbers_stay() {
    Consumer { source: "tests/abi/v1/layout.c", standard: "c17", include: "include", options: &[] }.runs();
}
