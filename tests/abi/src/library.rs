//! The shared library that Cargo built beside the tests.

use std::path::{Path, PathBuf};

/// `libsnapmla.so` of this build, with its profile.
pub fn built() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let path = test.with_file_name("libsnapmla.so");
    assert!(path.exists(), "{} is built with the tests", path.display());
    path
}

/// The link of the run-time name that the build leaves in the profile's folder.
pub fn soname_link() -> PathBuf {
    let library = built();
    let profile = library.parent().and_then(Path::parent).expect("target/PROFILE/deps");
    profile.join("libsnapmla.so.0")
}

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
