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

engine() { # OUT SOURCES...
    local out=$1
    shift
    cxx -O1 -g -I"$here/tests" -isystem "$work/api2/include" -isystem "$work/api2/ggml/include" \
        "$@" "$here/tests/session.cpp" -L"$work/prebuilt" \
        -l:libllama.v0.5.0.so -l:libggml.v0.5.0.so -l:libggml-base.so -Wl,-rpath,"$work/prebuilt" -o "$out"
}
engine "$work/engine" "$here/tests/engine.cpp" "$here/tests/compare.cpp"
"$work/engine" "$work/prebuilt" "$work/module/libggml-snapmla.so" "$work/tiny.gguf" "$work/tiny--moe.gguf" "$@"

# An engine of another interface refuses the module and goes on without it.
engine "$work/refusal" "$here/tests/refusal.cpp"
"$work/refusal" "$work/prebuilt" "$work/module-api3/libggml-snapmla.so" "$work/tiny.gguf"
