//! C and C++ programs that use the library as its users do: header, linker, loader.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::library;

/// A source file, the standard it is read by, and where its `snapmla.h` is.
pub struct Consumer {
    pub source: &'static str,
    pub standard: &'static str,
    pub include: &'static str,
    /// Further options of the compiler.
    pub options: &'static [&'static str],
}

impl Consumer {
    /// Compiles with warnings as errors, links, runs; panics with what was said if any of it fails.
    pub fn runs(&self) {
        let root = library::root();
        let folder = self.folder();
        let program = folder.join("program");
        let soname = folder.join("libsnapmla.so.0");
        std::fs::copy(library::built(), &soname).expect("the library is copied under its soname");
        let cpp = self.standard.starts_with("c++");
        let mut compile = compiler(cpp, &folder).to_command();
        compile
            .arg(format!("-std={}", self.standard))
            .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-x", if cpp { "c++" } else { "c" }])
            .arg(root.join(self.source))
            .args(["-x", "none"])
            .arg(include(&root.join(self.include)))
            .args(
                ["include", "tests/consumers", "integrations/tensorrt_llm"].map(|folder| include(&root.join(folder))),
            )
            .args(self.options)
            .arg(&soname)
            .args(["-lm", "-lpthread", "-ldl", "-o"])
            .arg(&program);
        self.succeeds(&mut compile);
        self.succeeds(Command::new(&program).env("LD_LIBRARY_PATH", &folder));
    }

    fn succeeds(&self, command: &mut Command) {
        let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        assert!(
            output.status.success(),
            "{} as {}: {}\n{}{}",
            self.source,
            self.standard,
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// An empty folder of its own.
    fn folder(&self) -> PathBuf {
        let name = [&[self.source, self.standard, self.include], self.options].concat().join("-");
        let name = name.replace(['/', '.', ','], "-");
        let folder = Path::new(env!("OUT_DIR")).join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder for the program");
        folder
    }
}

fn include(folder: &Path) -> String {
    format!("-I{}", folder.display())
}

fn compiler(cpp: bool, folder: &Path) -> cc::Tool {
    let target = env!("TARGET_TRIPLE");
    cc::Build::new()
        .cpp(cpp)
        .target(target)
        .host(target)
        .opt_level(1)
        .out_dir(folder)
        .cargo_metadata(false)
        .get_compiler()
}
