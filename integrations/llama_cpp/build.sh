#!/usr/bin/env bash
# Builds the module: build.sh LLAMA_CPP_SOURCE OUT_FOLDER [ENGINE_LIBRARIES]
#
# LLAMA_CPP_SOURCE: the tree that the engine was built from (headers only are read).
# ENGINE_LIBRARIES: the folder with the engine's libggml*.so. Given it, the module names them as libraries it needs,
# which a host that keeps its symbols to itself (a Python or Node binding) asks for.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
source=$1 out=$2 libraries=${3:-}
snapmla=${SNAPMLA_LIBRARY:-$root/target/release/libsnapmla.so}

mkdir -p "$out"
cp "$snapmla" "$out/libsnapmla.so.0"
needed=()
if [ -n "$libraries" ]; then
    needed=(-Wl,--no-as-needed $(find "$libraries" -maxdepth 1 -name 'libggml.*so*' -o -maxdepth 1 -name 'libggml-base.*so*'))
fi
"${CXX:-g++}" -std=c++17 -O2 -g -fPIC -shared -fvisibility=hidden -Wall -Wextra -Werror -Wno-missing-field-initializers \
    -I"$root/include" -isystem "$source/ggml/include" -isystem "$source/ggml/src" \
    "$here"/src/*.cpp "$out/libsnapmla.so.0" "${needed[@]}" -Wl,-rpath,'$ORIGIN' -o "$out/libggml-snapmla.so"
