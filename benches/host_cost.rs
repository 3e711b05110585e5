//! What a launch costs the host: calls of the C ABI on the CUDA backend, with the tests' stand-in driver under it.
//!
//! The stand-in returns at once, so this is the library's own part: handles, validation, launch shape, arguments.
//! The program fails when a decode call costs more than [`MOST_OF_A_DECODE`].

use std::ffi::CStr;
use std::hint::black_box;
use std::os::raw::c_void;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use criterion::Criterion;
use snapmla::abi::cache::{snapmla_cache, snapmla_cache_init};
use snapmla::abi::context::{snapmla_context, snapmla_context_create};
use snapmla::abi::decode::{snapmla_decode, snapmla_decode_workspace_size};
use snapmla::abi::k_append::snapmla_k_append;
use snapmla::abi::types::*;
use snapmla::abi::version::snapmla_last_error_message;

/// Tells this program's second run that the stand-ins are on its loader's path.
const MARK: &str = "SNAPMLA_BENCH_FAKE_DRIVER";

/// An address in device 0's memory, as the stand-in sees it.
const DEVICE_MEMORY: usize = 0x1000_0000_0000;

/// A model of 61 layers launches as many decodes a step: 1.5 µs each keep the host's part below 100 µs.
const MOST_OF_A_DECODE: Duration = Duration::from_nanos(1500);

macro_rules! params {
    ($name:ident { $($field:ident: $value:expr),* $(,)? }) => {{
        // SAFETY: integers, floats and pointers, for which zero bytes are a value.
        let mut params: $name = unsafe { std::mem::zeroed() };
        params.struct_size = size_of::<$name>() as u32;
        $(params.$field = $value;)*
        params
    }};
}

fn main() -> ExitCode {
    if std::env::var_os(MARK).is_some() {
        return measure();
    }
    let folder = stand_ins();
    let status = std::env::current_exe().and_then(|program| {
        Command::new(program).args(std::env::args_os().skip(1)).env(MARK, "1").env("LD_LIBRARY_PATH", folder).status()
    });
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// The folder with the tests' stand-ins for the driver and NVRTC.
fn stand_ins() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("host_cost");
    std::fs::create_dir_all(&folder).expect("a folder for the stand-ins");
    for (source, library) in [("driver.c", "libcuda.so"), ("nvrtc.c", "libnvrtc.so")] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_driver").join(source);
        let status = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
            .args(["-std=c11", "-O2", "-shared", "-fPIC"])
            .arg(format!("-Wl,-soname,{library}"))
            .arg("-o")
            .args([&folder.join(library), &source])
            .status();
        assert!(status.expect("a C compiler").success());
    }
    folder
}

fn check(status: snapmla_status) {
    assert_eq!(status, SNAPMLA_STATUS_OK, "{}", last_error());
}

fn last_error() -> String {
    // SAFETY: this thread's message.
    unsafe { CStr::from_ptr(snapmla_last_error_message()) }.to_string_lossy().into_owned()
}

fn bench(criterion: &mut Criterion, name: &str, call: impl Fn() -> snapmla_status) {
    check(call());
    criterion.bench_function(name, |bencher| bencher.iter(&call));
}

/// What one call takes in the least disturbed of 50 rounds: other work on the machine only ever adds to it.
fn least(call: impl Fn() -> snapmla_status) -> Duration {
    const CALLS: u32 = 2000;
    let round = || {
        let start = Instant::now();
        for _ in 0..CALLS {
            check(black_box(call()));
        }
        start.elapsed() / CALLS
    };
    (0..50).map(|_| round()).min().unwrap_or_default()
}

fn device(offset: usize) -> *mut c_void {
    (DEVICE_MEMORY + offset) as *mut c_void
}

fn open() -> (*mut snapmla_context, *mut snapmla_cache) {
    let params = params!(snapmla_context_params { backend: SNAPMLA_BACKEND_CUDA });
    let mut context = null_mut();
    // SAFETY: a complete struct and a place for the handle.
    check(unsafe { snapmla_context_create(&params, &mut context) });
    let params = params!(snapmla_cache_params {
        page_size: 64,
        num_layers: 1,
        num_pages: 1024,
        memory: device(0),
        memory_size: 1 << 30,
        flags: SNAPMLA_CACHE_KEEP_CONTENTS,
    });
    let mut cache = null_mut();
    // SAFETY: as above; nobody reads the memory.
    check(unsafe { snapmla_cache_init(context, &params, null_mut(), &mut cache) });
    (context, cache)
}

fn measure() -> ExitCode {
    let (context, cache) = open();
    let mut criterion = Criterion::default().configure_from_args();

    let append = params!(snapmla_k_append_params {
        dtype: SNAPMLA_DTYPE_BF16,
        num_tokens: 32,
        content: device(0x100_0000),
        rope: device(0x200_0000),
        slots: device(0x300_0000).cast(),
    });
    // SAFETY: live handles; nobody reads the memory.
    let call = || unsafe { snapmla_k_append(context, cache, black_box(&append), null_mut()) };
    bench(&mut criterion, "k_append, 32 tokens", call);

    let limits = params!(snapmla_decode_limits { max_batch: 32, max_q_len: 1, max_heads: 128, max_seq_len: 65_536 });
    let mut workspace_size = 0;
    // SAFETY: a live handle, a complete struct and a place for the size.
    check(unsafe { snapmla_decode_workspace_size(context, &limits, &mut workspace_size) });
    let mut decode = params!(snapmla_decode_params {
        batch: 32,
        q_len: 1,
        num_heads: 128,
        softmax_scale: 0.07,
        q_dtype: SNAPMLA_DTYPE_BF16,
        q_content: device(0x1000_0000),
        q_rope: device(0x1100_0000),
        seq_lens: device(0x1200_0000).cast(),
        block_table: device(0x1300_0000).cast(),
        max_pages: 1024,
        out_dtype: SNAPMLA_DTYPE_BF16,
        out: device(0x1400_0000),
        lse: device(0x1500_0000).cast(),
        workspace: device(0x2000_0000),
        workspace_size: workspace_size,
    });
    let mut code = ExitCode::SUCCESS;
    for (name, dtype) in [("BF16", SNAPMLA_DTYPE_BF16), ("quantised", SNAPMLA_DTYPE_QUANTISED)] {
        decode.q_dtype = dtype;
        if dtype == SNAPMLA_DTYPE_QUANTISED {
            decode.q_scale = device(0x1600_0000).cast();
        }
        // SAFETY: live handles; nobody reads the memory.
        let call = || unsafe { snapmla_decode(context, cache, black_box(&decode), null_mut()) };
        bench(&mut criterion, &format!("decode, 32 x 65,536, 128 heads, {name} queries"), call);
        let cost = least(call);
        println!(
            "decode, {name} queries: {cost:?} in the least disturbed round, at most {MOST_OF_A_DECODE:?} allowed"
        );
        if cost > MOST_OF_A_DECODE {
            code = ExitCode::FAILURE;
        }
    }
    criterion.final_summary();
    code
}
