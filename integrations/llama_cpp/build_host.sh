#!/usr/bin/env bash
# Builds a program on the fetched engine: build_host.sh FETCHED OUT SOURCES...
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
fetched=$1 out=$2
shift 2
"${CXX:-g++}" -std=c++17 -O1 -g -Wall -Wextra -Werror -I"$here/tests" \
    -isystem "$fetched/api2/include" -isystem "$fetched/api2/ggml/include" "$@" "$here/tests/session.cpp" \
    -L"$fetched/prebuilt" -l:libllama.v0.5.0.so -l:libggml.v0.5.0.so -l:libggml-base.so \
    -Wl,-rpath,"$fetched/prebuilt" -o "$out"
