//! Writes and compiles the comparison of `src/bindings.rs` with `snapmla.h`.

fn main() {
    for file in ["src/bindings.rs", "../../src/abi/types.rs", "../../include/snapmla.h"] {
        println!("cargo:rerun-if-changed={file}");
    }
    let mut checks = ctest2::TestGenerator::new();
    checks.header("snapmla.h").include("../../include");
    checks.type_name(|name, is_struct, _| match name {
        "f32" => "float".to_owned(),
        _ if is_struct => format!("struct {name}"),
        _ => name.to_owned(),
    });
    checks.generate("src/bindings.rs", "checks.rs");
    // For the programs that the tests compile.
    println!("cargo:rustc-env=TARGET_TRIPLE={}", std::env::var("TARGET").expect("set by cargo"));
}
