#!/usr/bin/env bash
# The module in programs that are not ours, built from unmodified source: llama-bench, and the Python binding.
#
# Needs Linux on x86-64, a C++17 compiler, Python; builds llama.cpp, some five minutes on two cores. Everything goes to
# target/llama_cpp ($LLAMA_CPP_WORK), where a second run finds it.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
work=${LLAMA_CPP_WORK:-$here/../../target/llama_cpp}
"$here/fetch.sh" "$work"
work=$(cd "$work" && pwd)
hosts=$work/hosts
mkdir -p "$hosts"
cd "$hosts"

version=0.3.36
if [ ! -e llama_cpp/llama_cpp.py ]; then
    python3 -m venv venv
    venv/bin/pip install -q --disable-pip-version-check cmake ninja numpy typing-extensions diskcache jinja2
    venv/bin/pip download -q --disable-pip-version-check --no-deps --no-binary llama-cpp-python "llama-cpp-python==$version"
    echo "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e  llama_cpp_python-$version.tar.gz" |
        sha256sum --check --quiet
    tar xzf "llama_cpp_python-$version.tar.gz" --strip-components=1
    rm "llama_cpp_python-$version.tar.gz"
fi
export PATH=$hosts/venv/bin:$PATH
if [ ! -x build/bin/llama-bench ]; then
    # The programs' speed is not what is tested: -O1 compiles in two thirds of the time.
    cmake -G Ninja -S vendor/llama.cpp -B build -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DBUILD_SHARED_LIBS=ON \
        -DGGML_OPENMP=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF >cmake.log
    ninja -C build llama-bench >ninja.log || { tail -n 40 ninja.log; exit 1; }
fi
[ -e "$work/tiny.gguf" ] || "$work/venv/bin/python" "$here/tiny_model.py" "$work/tiny.gguf"
"$here/build.sh" vendor/llama.cpp module build/bin
export GGML_BACKEND_PATH=$hosts/module/libggml-snapmla.so

echo "llama-bench:"
for type in q8_0 f16; do
    build/bin/llama-bench -m "$work/tiny.gguf" -ctk $type -ctv $type -fa 1 -p 64 -n 16 -d 256 -t 2 -r 1 2>bench.err | tee bench.out
    [ "$(grep -c "| SnapMLA " bench.out)" = 2 ] || { cat bench.err; echo "llama-bench ran without the module" >&2; exit 1; }
done

echo "llama-cpp-python:"
# Where an installed package has them.
ln -sfn ../build/bin llama_cpp/lib
export PYTHONPATH=$hosts
env -u GGML_BACKEND_PATH python "$here/tests/python_host.py" "$work/tiny.gguf" stock.npy 2>stock.err || { cat stock.err; exit 1; }
python "$here/tests/python_host.py" "$work/tiny.gguf" module.npy stock.npy 2>module.err || { cat module.err; exit 1; }
grep -q "layer   0: dev = SnapMLA" module.err || { echo "llama-cpp-python ran without the module" >&2; exit 1; }
