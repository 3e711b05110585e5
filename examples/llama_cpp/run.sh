#!/usr/bin/env bash
# Fetches an unmodified llama.cpp, makes a small model, and generates without the module and with it:
#
#     cargo build --release --lib && examples/llama_cpp/run.sh [MODEL.gguf [CONTEXT [TOKENS [THREADS]]]]
#
# Needs Linux on x86-64, a C++17 compiler, Python and curl. The text is token numbers: the small model has random weights.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
adapter=$(cd "$here/../../integrations/llama_cpp" && pwd)
work=${LLAMA_CPP_WORK:-$here/../../target/llama_cpp}
"$adapter/fetch.sh" "$work"
work=$(cd "$work" && pwd)
model=${1:-$work/tiny.gguf}
[ -e "$model" ] || "$work/venv/bin/python" "$adapter/tiny_model.py" "$model"
"$adapter/build.sh" "$work/api2" "$work/module" "$work/prebuilt"
"$adapter/build_host.sh" "$work" "$work/generate" "$here/generate.cpp" "$adapter/tests/compare.cpp"
"$work/generate" "$work/prebuilt" "$work/module/libggml-snapmla.so" "$model" "${@:2}"
