#!/usr/bin/env bash
# Fetches an engine, builds the module for it, and runs its tests: run.sh [TEST...]
#
# Needs a C++17 compiler, Python, curl, and target/release/libsnapmla.so (cargo build --release --lib).
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
work=${LLAMA_CPP_WORK:-$here/../../target/llama_cpp}
"$here/fetch.sh" "$work"
work=$(cd "$work" && pwd)
cxx() { "${CXX:-g++}" -std=c++17 -Wall -Wextra -Werror "$@"; }

for moe in "" --moe; do
    model="$work/tiny$moe.gguf"
    [ "$model" -nt "$here/tiny_model.py" ] || "$work/venv/bin/python" "$here/tiny_model.py" "$model" $moe
done

"$here/build.sh" "$work/api2" "$work/module" "$work/prebuilt" &
api2=$!
"$here/build.sh" "$work/api3" "$work/module-api3"
wait "$api2"

cxx -O1 -g "$here/tests/mask.cpp" "$here/src/mask.cpp" -o "$work/mask"
"$work/mask"

# The header for forks: with both interfaces' headers, and driven with one.
fork() { # HEADERS FLAGS...
    cxx -I"$here/../../include" -isystem "$work/$1/ggml/include" "$here/tests/cuda_fork.cpp" "${@:2}"
}
fork api3 -fsyntax-only
fork api2 -O1 -g "$work/module/libsnapmla.so.0" -L"$work/prebuilt" -l:libggml-base.so \
    -Wl,-rpath,"$work/module:$work/prebuilt" -o "$work/cuda_fork"
"$work/cuda_fork"

"$here/build_host.sh" "$work" "$work/engine" "$here/tests/engine.cpp" "$here/tests/compare.cpp"
"$work/engine" "$work/prebuilt" "$work/module/libggml-snapmla.so" "$work/tiny.gguf" "$work/tiny--moe.gguf" "$@"

"$here/build_host.sh" "$work" "$work/query_types" "$here/tests/query_types.cpp" "$here/bench/attention.cpp" -I"$here"
"$work/query_types" "$work/prebuilt" "$work/module/libggml-snapmla.so" 2>/dev/null

# An engine of another interface refuses the module and goes on without it.
"$here/build_host.sh" "$work" "$work/refusal" "$here/tests/refusal.cpp"
"$work/refusal" "$work/prebuilt" "$work/module-api3/libggml-snapmla.so" "$work/tiny.gguf"

# The bench runs, and the example builds.
"$here/bench/run.sh" --quick
"$here/build_host.sh" "$work" "$work/generate" "$here/../../examples/llama_cpp/generate.cpp" "$here/tests/compare.cpp"
