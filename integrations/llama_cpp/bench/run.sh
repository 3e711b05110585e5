#!/usr/bin/env bash
# Times attention beside llama.cpp's own, in turns in one process: run.sh [OPTION...], of which --help tells
#
# Needs what tests/run.sh needs. Figures are ratios: other work on the machine slows all kinds alike.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
root=$(cd "$here/../.." && pwd)
work=${LLAMA_CPP_WORK:-$root/target/llama_cpp}
"$here/fetch.sh" "$work"
work=$(cd "$work" && pwd)
"$here/build.sh" "$work/api2" "$work/module" "$work/prebuilt"
"$here/build_host.sh" "$work" "$work/attention" "$here"/bench/*.cpp \
    -I"$root/include" "$work/module/libsnapmla.so.0" -Wl,-rpath,"$work/module"
"$work/attention" "$work/prebuilt" "$work/module/libggml-snapmla.so" "$@"
