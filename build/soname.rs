//! The name that programs linked to the library look for at run time.

/// Changes only with a break of the ABI, which the `.0` stands for; `version_suffix_components` in Cargo.toml says
/// the same to cargo-c.
const SONAME: &str = "libsnapmla.so.0";

pub fn set() {
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{SONAME}");
    }
}
