#!/usr/bin/env python3
"""Compiles every kernel with NVRTC, as the library does where the build had no nvcc. No GPU is needed.

Needs libnvrtc and libnvrtc-builtins: in CUDA_HOME or CUDA_PATH (lib64 or lib), or on the loader's path.
"""

import ctypes
import os
import sys
from pathlib import Path

CUDA = Path(__file__).resolve().parent
# As in src/cuda/nvrtc.rs.
OPTIONS = [b"--gpu-architecture=sm_90a", b"--std=c++17", b"--device-as-default-execution-space"]


def load():
    homes = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    for folder in (home / lib for home in homes for lib in ("lib64", "lib")):
        # NVRTC opens its builtins by their bare name, which finds them once they are loaded.
        for builtins in sorted(folder.glob("libnvrtc-builtins.so.*")):
            ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
        for nvrtc in sorted(folder.glob("libnvrtc.so*")):
            return ctypes.CDLL(str(nvrtc))
    try:
        return ctypes.CDLL("libnvrtc.so")
    except OSError:
        sys.exit("libnvrtc.so not found (CUDA_HOME, CUDA_PATH, the loader's path)")


def strings(values):
    return (ctypes.c_char_p * len(values))(*values)


def compile_unit(nvrtc, unit, headers):
    """0 and the size of the cubin, or NVRTC's error and its log."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    names = strings([str(header.relative_to(CUDA)).encode() for header in headers])
    texts = strings([header.read_bytes() for header in headers])
    nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), unit.read_bytes(), unit.name.encode(), len(headers), texts, names
    )
    code = nvrtc.nvrtcCompileProgram(program, len(OPTIONS), strings(OPTIONS))
    if code == 0:
        nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
        return 0, f"{size.value} bytes"
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    return code, log.value.decode()


def main():
    nvrtc = load()
    headers = sorted(CUDA.rglob("*.cuh"))
    failed = False
    for unit in sorted(CUDA.glob("*.cu")):
        code, text = compile_unit(nvrtc, unit, headers)
        print(f"{unit.name}: {text if code == 0 else f'error {code}'}")
        if code != 0:
            failed = True
            print(text, file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
