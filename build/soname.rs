//! The name that programs linked to the library look for at run time.

use std::path::{Path, PathBuf};

/// Changes only with a break of the ABI, which the `.0` stands for; `version_suffix_components` in Cargo.toml says
/// the same to cargo-c.
const SONAME: &str = "libsnapmla.so.0";

pub fn set() {
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{SONAME}");
        // Worker threads may still be returning when a plug-in's host calls dlclose: the code must stay mapped.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
        link_beside_the_library();
    }
}

/// `libsnapmla.so.0` in the folder where Cargo puts `libsnapmla.so`, so that a program linked to the latter starts from
/// there. A convenience: where the folder is not Cargo's usual one or does not take links, the build goes on without.
#[cfg(unix)]
fn link_beside_the_library() {
    let Some(out) = std::env::var_os("OUT_DIR").map(PathBuf::from) else { return };
    let Some(scripts) = out.ancestors().find(|folder| folder.ends_with("build")) else { return };
    let link = scripts.parent().unwrap_or(Path::new(".")).join(SONAME);
    if link.symlink_metadata().is_err() {
        let _ = std::os::unix::fs::symlink("libsnapmla.so", link);
    }
}

#[cfg(not(unix))]
fn link_beside_the_library() {}
