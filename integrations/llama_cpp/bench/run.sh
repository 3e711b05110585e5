#!/usr/bin/env bash
# Times attention beside llama.cpp's own, in turns in one process: run.sh [THREADS [QUERIES [TURNS]]]
#
# Needs what tests/run.sh needs. Figures are ratios: other work on the machine slows all kinds alike.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
work=${LLAMA_CPP_WORK:-$here/../../target/llama_cpp}
"$here/fetch.sh" "$work"
work=$(cd "$work" && pwd)
"$here/build.sh" "$work/api2" "$work/module" "$work/prebuilt"
"$here/build_host.sh" "$work" "$work/attention" "$here/bench/attention.cpp"
"$work/attention" "$work/prebuilt" "$work/module/libggml-snapmla.so" "$@"
