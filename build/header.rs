//! Writes include/snapmla.h: cbindgen's rendering of src/abi, with version and initialiser macros made here.

use std::fmt::Write;
use std::fs;

const HEADER: &str = "include/snapmla.h";

/// In the order in which a reader wants them.
const SOURCES: [&str; 11] = [
    "src/abi/types.rs",
    "src/abi/version.rs",
    "src/abi/context.rs",
    "src/abi/support.rs",
    "src/abi/cache.rs",
    "src/abi/k_append.rs",
    "src/abi/q_quant.rs",
    "src/abi/records_copy.rs",
    "src/abi/decode.rs",
    "src/abi/fetch.rs",
    "src/abi/merge.rs",
];

/// Initial values that are not zero.
const DEFAULTS: &[(&str, &str, &str)] = &[
    ("snapmla_cache_params", "page_size", "64"),
    ("snapmla_cache_params", "num_layers", "1"),
    ("snapmla_k_append_params", "dtype", "SNAPMLA_DTYPE_BF16"),
    ("snapmla_q_quant_params", "dtype", "SNAPMLA_DTYPE_BF16"),
    ("snapmla_decode_limits", "max_q_len", "1"),
    ("snapmla_decode_limits", "max_heads", "SNAPMLA_MAX_HEADS"),
    ("snapmla_decode_params", "q_len", "1"),
    ("snapmla_decode_params", "q_dtype", "SNAPMLA_DTYPE_BF16"),
    ("snapmla_decode_params", "out_dtype", "SNAPMLA_DTYPE_BF16"),
    ("snapmla_fetch_params", "dtype", "SNAPMLA_DTYPE_BF16"),
    ("snapmla_merge_params", "parts_dtype", "SNAPMLA_DTYPE_BF16"),
    ("snapmla_merge_params", "out_dtype", "SNAPMLA_DTYPE_BF16"),
    ("snapmla_support_query", "page_size", "64"),
    ("snapmla_support_query", "num_heads", "SNAPMLA_MAX_HEADS"),
    ("snapmla_support_query", "q_len", "1"),
    ("snapmla_support_query", "content_dim", "SNAPMLA_CONTENT_DIM"),
    ("snapmla_support_query", "rope_dim", "SNAPMLA_ROPE_DIM"),
    ("snapmla_support_query", "in_dtype", "SNAPMLA_DTYPE_BF16"),
    ("snapmla_support_query", "out_dtype", "SNAPMLA_DTYPE_BF16"),
];

pub fn generate() {
    println!("cargo::rerun-if-changed=src/abi");
    println!("cargo::rerun-if-changed=cbindgen.toml");
    println!("cargo::rerun-if-changed={HEADER}");
    let mut config = cbindgen::Config::from_file("cbindgen.toml").expect("cbindgen.toml reads");
    config.trailer = Some(format!("{}{}", initialisers(), config.trailer.unwrap_or_default()));
    config.after_includes = Some(format!("{}{}", versions(), config.after_includes.unwrap_or_default()));
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(source);
    }
    let mut rendered = Vec::new();
    builder.generate().expect("cbindgen reads src/abi").write(&mut rendered);
    let header = tidied(&String::from_utf8(rendered).expect("cbindgen writes UTF-8"));
    // A build from a package must not write to its sources, and finds nothing changed.
    if fs::read_to_string(HEADER).is_ok_and(|committed| committed == header) {
        return;
    }
    fs::create_dir_all("include").and_then(|()| fs::write(HEADER, header)).expect("include/snapmla.h is written");
}

fn versions() -> String {
    let mut text = "\n".to_owned();
    for part in ["MAJOR", "MINOR", "PATCH"] {
        let value = std::env::var(format!("CARGO_PKG_VERSION_{part}")).expect("set by cargo");
        writeln!(text, "/** {} of the version that this header is from. */", capitalised(part)).unwrap();
        writeln!(text, "#define SNAPMLA_VERSION_{part} {value}").unwrap();
    }
    let version = std::env::var("CARGO_PKG_VERSION").expect("set by cargo");
    writeln!(text, "/** The version that this header is from; snapmla_version() gives the library's. */").unwrap();
    writeln!(text, "#define SNAPMLA_VERSION_STRING \"{version}\"\n").unwrap();
    text
}

/// One macro a struct, with every field in order: nothing is left for -Wmissing-field-initializers to find.
fn initialisers() -> String {
    let types = fs::read_to_string(SOURCES[0]).expect("types.rs reads");
    let mut text = String::new();
    for body in types.split("\npub struct ").skip(1) {
        let (name, rest) = body.split_once(" {\n").expect("a struct has a body");
        let (fields, _) = rest.split_once("\n}").expect("a body ends");
        let fields =
            fields.lines().filter_map(|line| line.trim().strip_prefix("pub ")?.strip_suffix(',')?.split_once(": "));
        let values: Vec<String> = fields.map(|(field, kind)| initial_value(name, field, kind)).collect();
        let macro_name = format!("{}_INIT", name.to_uppercase());
        writeln!(text, "/** Initial value of a struct {name}. */").unwrap();
        writeln!(text, "#define {macro_name} \\\n{}\n", wrapped(&values)).unwrap();
    }
    text
}

fn initial_value(name: &str, field: &str, kind: &str) -> String {
    if let Some((_, _, value)) = DEFAULTS.iter().find(|default| (default.0, default.1) == (name, field)) {
        return (*value).to_owned();
    }
    match kind {
        _ if field == "struct_size" => format!("sizeof(struct {name})"),
        _ if kind.starts_with('*') => "NULL".to_owned(),
        _ if kind.starts_with('[') => "{0}".to_owned(),
        "f32" => "0.0f".to_owned(),
        _ => "0".to_owned(),
    }
}

/// `{a, b, c}` over lines that each end in a continuation.
fn wrapped(values: &[String]) -> String {
    let mut lines = vec!["  {".to_owned()];
    for (at, value) in values.iter().enumerate() {
        let end = if at + 1 == values.len() { "}" } else { "," };
        let line = lines.last_mut().expect("never empty");
        if line.len() + value.len() > 96 {
            lines.push(format!("   {value}{end}"));
        } else {
            let gap = if at == 0 { "" } else { " " };
            write!(line, "{gap}{value}{end}").unwrap();
        }
    }
    lines.join(" \\\n")
}

/// One-line comments on one line, blank lines single, and negative constants safe in any expression.
fn tidied(header: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in header.lines() {
        if line.is_empty() && lines.last().is_some_and(|last| last.is_empty()) {
            continue;
        }
        let one_line = line.trim_start() == "*/" && lines.len() >= 2 && lines[lines.len() - 2].trim_start() == "/**";
        if one_line {
            let text = lines.pop().expect("two lines");
            let open = lines.last_mut().expect("two lines");
            open.push_str(text.trim_start().trim_start_matches('*'));
            open.push_str(" */");
            continue;
        }
        match line.split_once(" -") {
            Some((define, value)) if define.starts_with("#define ") => lines.push(format!("{define} (-{value})")),
            _ => lines.push(line.to_owned()),
        }
    }
    lines.join("\n") + "\n"
}

fn capitalised(word: &str) -> String {
    word[..1].to_owned() + &word[1..].to_lowercase()
}
