//! The program as its user sees it: exit status, standard output, one line on standard error.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn snapmla(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_snapmla")).args(arguments).output().expect("the program starts")
}

fn json(arguments: &[&str]) -> Value {
    let output = snapmla(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON value")
}

/// The one line that a failing call prints.
fn complaint(arguments: &[&str]) -> String {
    let output = snapmla(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn scratch_text(name: &str) -> String {
    scratch(name).to_str().expect("UTF-8").to_string()
}

#[test]
fn info_says_what_is_there() {
    let info = json(&["info", "--json", "--backend", "cpu"]);
    assert_eq!(info["abi"], 1);
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(info["device"]["backend"], "cpu");
    let backends = info["backends"].as_array().expect("a list");
    for backend in backends {
        assert_eq!(backend["available"] == true, backend.get("why_not").is_none());
    }
    assert_eq!(backends[0]["available"], true);
}

#[test]
fn main_job_holds_its_bounds() {
    let arguments = [
        "run",
        "--backend",
        "cpu",
        "--threads",
        "2",
        "--tokens",
        "300",
        "--sequences",
        "3",
        "--heads",
        "5",
        "--steps",
        "2",
    ];
    let run = json(&[&arguments[..], &["--json"]].concat());
    assert_eq!(run["passed"], true);
    assert_eq!(run["bytes_per_token"], 644);
    assert_eq!(run["bytes_per_token_bf16"], 1152);
    assert!(run["decode_error"]["relative_l2"].as_f64().expect("a number") > 0.0);
    assert!(run["rows_checked"].as_u64().expect("a number") > 0);

    let output = snapmla(&arguments);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success() && output.stderr.is_empty());
    assert!(text.contains("644 B a token against 1152 in BF16"), "{text}");
    assert!(!text.contains('\u{1b}') && !text.contains('\r'), "no terminal control when piped: {text:?}");
}

#[test]
fn check_measures_what_synth_wrote() {
    for dtype in ["bf16", "f16", "f32"] {
        let file = scratch_text(&format!("{dtype}.safetensors"));
        let shape = ["--tokens", "500", "--heads", "3", "--queries", "9", "--dtype", dtype];
        let written = json(&[&["--json", "synth", &file][..], &shape].concat());
        assert_eq!(written["tokens"], 500);
        for causal in [&[][..], &["--causal"]] {
            let check = json(&[&["check", &file, "--json", "--backend", "cpu"][..], causal].concat());
            let error = |which: &str| check["all"][which]["relative_l2"].as_f64().expect("a number");
            assert!(error("bf16") > 0.0 && error("bf16") < 1e-2, "{dtype}: {check}");
            assert!(error("snapmla") > error("bf16") && error("snapmla") < 1e-1, "{dtype}: {check}");
            assert_eq!(check["per_head"].as_array().expect("a list").len(), 3);
            assert_eq!(check["cache_bytes"], 500 * 644);
        }
    }
}

#[test]
fn help_says_what_a_dump_holds() {
    let output = snapmla(&["check", "--help"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    for tensor in ["q_content  [queries, heads, 512]", "q_rope", "latent", "k_rope     [tokens, 64]", "softmax_scale"]
    {
        assert!(text.contains(tensor), "{tensor}: {text}");
    }
}

#[test]
fn bench_writes_its_tables() {
    let folder = scratch_text("bench");
    let cheap = ["--pool", "1", "--read", "0.01"];
    let shape = ["--batch", "1,2", "--length", "100", "--heads", "4", "--q-len", "2"];
    let arguments = [&["bench", "--json", "--backend", "cpu", "--out", &folder][..], &cheap, &shape].concat();
    let bench = json(&arguments);
    assert_eq!(bench["decode"].as_array().expect("a list").len(), 2);
    assert!(bench["decode"][1]["median"].as_f64().expect("a number") > 0.0);
    let csv = std::fs::read_to_string(scratch("bench").join("decode.csv")).expect("the table");
    assert_eq!(csv.lines().count(), 3);
    assert!(csv.lines().nth(2).expect("a line").starts_with("2,100,4,2,"), "{csv}");
    assert!(scratch("bench").join("bench.json").exists());
}

#[test]
fn bench_measures_uneven_batches_beside_even_ones() {
    let folder = scratch_text("uneven");
    let cheap = ["--heads", "1", "--read", "0.01"];
    let bench = json(
        &[&["bench", "--json", "--backend", "cpu", "--preset", "uneven", "--out", &folder][..], &cheap].concat(),
    );
    let rows = bench["uneven"].as_array().expect("a list");
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!(row["heads"], 1);
        assert!(row["longest"].as_u64().expect("a number") >= 100 * 2048);
        assert!(row["ratio"].as_f64().expect("a number") > 0.0);
    }
    let csv = std::fs::read_to_string(scratch("uneven").join("uneven.csv")).expect("the table");
    assert_eq!(csv.lines().count(), 3, "{csv}");
}

#[test]
fn bench_checks_the_steps_of_61_layers() {
    let folder = scratch_text("layers");
    let arguments =
        ["bench", "--json", "--backend", "cpu", "--preset", "layers", "--heads", "16", "--page-size", "16"];
    let bench = json(&[&arguments[..], &["--out", &folder]].concat());
    let row = &bench["layers"][0];
    assert_eq!((row["layers"].as_u64(), row["heads"].as_u64()), (Some(61), Some(16)), "{row}");
    assert_eq!(bench["page_size"], 16);
    assert!(
        complaint(&["bench", "--backend", "cpu", "--preset", "layers", "--page-size", "0"]).contains("page_size")
    );
    assert!(row["error"]["relative_l2"].as_f64().expect("a number") > 0.0, "{row}");
    let csv = std::fs::read_to_string(scratch("layers").join("layers.csv")).expect("the table");
    assert_eq!(csv.lines().count(), 2, "{csv}");
}

#[test]
fn peers_need_what_runs_them() {
    let no_python = Command::new(env!("CARGO_BIN_EXE_snapmla"))
        .args(["bench", "--peer"])
        .env("PYTHON", "/nowhere/python")
        .output()
        .expect("the program starts");
    let said = String::from_utf8_lossy(&no_python.stderr);
    assert!(!no_python.status.success());
    assert!(
        said.contains("--peer needs Python with PyTorch and the wheel sgl-flash-mla 1.0.0: /nowhere/python"),
        "{said}"
    );
    assert!(complaint(&["bench", "--peer", "--preset", "ops"]).contains("--peer goes with presets of decode shapes"));
    let tokens = snapmla(&["bench", "--peer", "--tokens", "5"]);
    assert_eq!(tokens.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&tokens.stderr).contains("cannot be used with '--tokens"));
}

#[test]
fn plots_show_what_the_files_hold() {
    let path = scratch("plots.json");
    let row = |length: u64, heads: u64, bf16: &str| {
        let shape = format!(r#""batch": 32, "length": {length}, "heads": {heads}, "q_len": 1"#);
        format!(r#"{{{shape}, "snapmla_us": {}{bf16}}}"#, length / 100)
    };
    let rows = [row(16_384, 16, r#", "bf16_us": 500"#), row(65_536, 16, r#", "bf16_us": 900"#), row(16_384, 64, "")];
    std::fs::write(&path, format!(r#"{{"rows": [{}]}}"#, rows.join(", "))).expect("written");
    let (file, out) = (scratch_text("plots.json"), scratch_text("plots"));
    let names = json(&["plot", "--json", "--out", &out, &file]);
    assert_eq!(names.as_array().expect("a list").len(), 4);
    let text = |name: &str| std::fs::read_to_string(scratch("plots").join(name)).expect("a chart");
    for line in ["16 heads, libsnapmla", "16 heads, FlashMLA BF16", "16k", "64k"] {
        assert!(text("figure6.svg").contains(line), "{line}");
    }
    assert!(text("figure7.svg").contains("1 query token, libsnapmla"));
    assert!(text("speedup.svg").contains("32 x 64k"));
    assert!(text("roofline.svg").contains("4.53 TB/s"));

    json(&["plot", "--json", "--check", "--out", &out, &file]);
    std::fs::write(scratch("plots").join("speedup.svg"), "another").expect("written");
    assert!(
        complaint(&["plot", "--check", "--out", &out, &file]).contains("speedup.svg is not what these files give")
    );
    assert_eq!(text("speedup.svg"), "another");

    for (what, wrong) in [
        (r#"{"about": {}}"#, "neither compare.json nor bench.json"),
        (r#"{"rows": []}"#, "no row of these files is in any chart"),
        (r#"{"rows": [{"batch": 1, "snapmla_us": 5}]}"#, "missing field `length`"),
        (r#"{"decode": [{"batch": 0, "length": 1, "heads": 1, "q_len": 1, "median": 1}]}"#, "batch 0 is less than 1"),
        (r#"{"decode": [{"batch": 1, "length": 1, "heads": 1, "q_len": 1, "median": -1}]}"#, "-1 seconds"),
    ] {
        std::fs::write(&path, what).expect("written");
        let said = complaint(&["plot", "--out", &out, &file]);
        assert!(said.contains("plots.json") || said.contains("no row"), "{said}");
        assert!(said.contains(wrong), "{said}");
    }
}

#[test]
fn files_that_cannot_be_used_are_named_with_what_is_wrong() {
    let missing = scratch_text("no such file");
    assert!(complaint(&["check", &missing]).contains("no such file: No such file"));

    let text = scratch_text("text.safetensors");
    std::fs::write(&text, "this is no tensor file").expect("written");
    assert!(complaint(&["check", &text]).contains("is not a safetensors file"));

    // A tensor short, with the wrong shape, of the wrong type, with a NaN, with a bad scale.
    let mut dump = Dump::default();
    dump.remove("k_rope");
    assert!(dump.complaint().contains("tensor 'k_rope' is missing; there are: latent, q_content, q_rope"));
    let mut dump = Dump::default();
    dump.set("k_rope", &[3, 64], "F32");
    assert!(dump.complaint().contains("tensor 'k_rope' has shape [3, 64], [2, 64] is wanted"));
    let mut dump = Dump::default();
    dump.set("latent", &[2, 576], "F32");
    assert!(dump.complaint().contains("tensor 'latent' has shape [2, 576], [any, 512] is wanted"));
    let mut dump = Dump::default();
    dump.set("q_rope", &[1, 2, 64], "I32");
    assert!(dump.complaint().contains("tensor 'q_rope' has type I32; BF16, F16 or F32 is wanted"));
    let dump = Dump { fill: f32::NAN, ..Dump::default() };
    assert!(dump.complaint().contains("holds NaN at element 0"));
    let dump = Dump { softmax_scale: Some("wide"), ..Dump::default() };
    assert!(dump.complaint().contains("softmax_scale 'wide' is not a finite number"));

    let mut dump = Dump::default();
    dump.set("q_content", &[3, 2, 512], "F32");
    dump.set("q_rope", &[3, 2, 64], "F32");
    let file = dump.write();
    let text = complaint(&["check", &file, "--causal"]);
    assert!(text.contains("3 queries cannot be the last of 2 tokens"), "{text}");
}

#[test]
fn folders_that_cannot_be_written_are_named() {
    assert!(complaint(&["synth", "/no/such/folder/x.safetensors", "--tokens", "1"]).contains("/no/such/folder"));
}

/// A safetensors file put together by hand, so that it can be wrong.
struct Dump {
    tensors: Vec<(&'static str, Vec<usize>, &'static str)>,
    fill: f32,
    softmax_scale: Option<&'static str>,
}

impl Default for Dump {
    fn default() -> Self {
        let tensors = vec![
            ("q_content", vec![1, 2, 512], "F32"),
            ("q_rope", vec![1, 2, 64], "F32"),
            ("latent", vec![2, 512], "F32"),
            ("k_rope", vec![2, 64], "F32"),
        ];
        Self { tensors, fill: 1.0, softmax_scale: None }
    }
}

impl Dump {
    fn remove(&mut self, name: &str) {
        self.tensors.retain(|tensor| tensor.0 != name);
    }

    fn set(&mut self, name: &'static str, shape: &[usize], dtype: &'static str) {
        self.remove(name);
        self.tensors.push((name, shape.to_vec(), dtype));
    }

    fn write(&self) -> String {
        let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
        for (name, shape, dtype) in &self.tensors {
            let begin = data.len();
            data.extend(std::iter::repeat_n(self.fill.to_le_bytes(), shape.iter().product()).flatten());
            let entry = serde_json::json!({"dtype": dtype, "shape": shape, "data_offsets": [begin, data.len()]});
            header.insert(name.to_string(), entry);
        }
        if let Some(scale) = self.softmax_scale {
            header.insert("__metadata__".into(), serde_json::json!({"softmax_scale": scale}));
        }
        let header = Value::from(header).to_string();
        let file = scratch_text("made by hand.safetensors");
        let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat();
        std::fs::write(&file, bytes).expect("written");
        file
    }

    fn complaint(&self) -> String {
        complaint(&["check", &self.write()])
    }
}

/// The Python mirror of the header must have the sizes of the structs that Rust has.
#[test]
fn python_structs_have_the_abis_sizes() {
    use snapmla::abi::types::*;
    let sizes = [
        ("ContextParams", size_of::<snapmla_context_params>()),
        ("ContextInfo", size_of::<snapmla_context_info>()),
        ("CacheParams", size_of::<snapmla_cache_params>()),
        ("KAppendParams", size_of::<snapmla_k_append_params>()),
        ("DecodeLimits", size_of::<snapmla_decode_limits>()),
        ("DecodeParams", size_of::<snapmla_decode_params>()),
    ];
    let names: Vec<&str> = sizes.iter().map(|(name, _)| *name).collect();
    let script = format!("import snapmla_ctypes as s\nfor n in {names:?}: print(n, s.c.sizeof(getattr(s, n)))");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches");
    let Ok(output) = Command::new("python3").args(["-B", "-c", &script]).current_dir(folder).output() else {
        eprintln!("skipped: python3 is not there");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected: String = sizes.iter().map(|(name, size)| format!("{name} {size}\n")).collect();
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}
