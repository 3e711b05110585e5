#!/usr/bin/env bash
# Fetches what the tests and examples run against, from the public registries: fetch.sh [FOLDER]
#
#   prebuilt/   llama.cpp 0.5.0 for Linux x86-64, backend interface 2 (npm @node-llama-cpp/linux-x64)
#   api2/       llama.cpp source with the headers of that interface   (crates.io llama-cpp-sys-2 0.1.159)
#   api3/       llama.cpp source, backend interface 3                 (crates.io llama-cpp-sys-2 0.1.161)
#   venv/       Python with gguf and numpy
#
# What is there already is not fetched again.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/../../target/llama_cpp}
mkdir -p "$folder"
cd "$folder"

checked() { # URL SHA256 FILE
    curl -sSfL --retry 3 "$1" -o "$3"
    echo "$2  $3" | sha256sum --check --quiet
}

if [ ! -e prebuilt/libllama.v0.5.0.so ]; then
    if command -v npm >/dev/null; then
        npm pack --silent @node-llama-cpp/linux-x64@3.22.1 >/dev/null
    else
        curl -sSfL --retry 3 https://registry.npmjs.org/@node-llama-cpp/linux-x64/-/linux-x64-3.22.1.tgz \
            -o node-llama-cpp-linux-x64-3.22.1.tgz
    fi
    echo "0d953e1503d5ab4608d8ed5b739132308c81ac05ffeb760d2a7f30e08a9f90e0  node-llama-cpp-linux-x64-3.22.1.tgz" | sha256sum --check --quiet
    mkdir -p prebuilt
    tar xzf node-llama-cpp-linux-x64-3.22.1.tgz -C prebuilt --strip-components=3 package/bins/linux-x64
    rm node-llama-cpp-linux-x64-3.22.1.tgz
fi

crate() { # VERSION SHA256 FOLDER
    [ ! -e "$3/include/llama.h" ] || return 0
    checked "https://static.crates.io/crates/llama-cpp-sys-2/llama-cpp-sys-2-$1.crate" "$2" "$3.crate"
    mkdir -p "$3"
    tar xzf "$3.crate" -C "$3" --strip-components=2 "llama-cpp-sys-2-$1/llama.cpp"
    rm "$3.crate"
}
crate 0.1.159 1a96d43d9370ff79293fe9777c9a4bda9d3bacb7100b61ed1e3690df39e9ad9e api2
crate 0.1.161 e9bea77fde41bbc15a278891cd5edd2ba07c5260d162614b41080ba1f100b39b api3

if [ ! -x venv/bin/python ]; then
    python3 -m venv venv
fi
venv/bin/python -c 'import gguf, numpy' 2>/dev/null || venv/bin/pip install -q --disable-pip-version-check gguf==0.19.0 numpy
