#!/usr/bin/env python3
"""Checks the compiled kernels without a GPU: no spill, no stack, no local memory, the instructions that make them fast,
and the names that src/cuda/kernels.rs loads.

Needs nvcc and nvdisasm, from CUDA_HOME, CUDA_PATH or PATH. Exits with 1 on the first list of faults.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CUDA = Path(__file__).resolve().parent
KERNELS_RS = CUDA.parent / "src" / "cuda" / "kernels.rs"

# File: instructions that every kernel in it must contain, by the beginning of their name.
REQUIRED = {
    "decode": ["QGMMA", "UBLKCP"],
    "decode_batch_invariant": ["QGMMA", "UBLKCP"],
    "fetch_dequant": ["STG.E.128", "ACQBULK", "PREEXIT"],
    "k_append": ["LDG.E.NA.128", "F2FP.SATFINITE.E4M3", "ACQBULK", "PREEXIT"],
    "merge": ["LDG.E.NA.128", "STG.E.128", "ACQBULK", "PREEXIT"],
    "q_quant": ["LDG.E.NA.128", "F2FP.SATFINITE.E4M3", "ACQBULK", "PREEXIT"],
    "records_copy": ["LDG.E.NA.128", "STG.E.128", "ACQBULK", "PREEXIT"],
}

# No kernel may load or store local memory.
FORBIDDEN = ["LDL", "STL"]

# Most registers a thread, where occupancy depends on it: 32 let a multiprocessor hold 64 warps, 40 let it hold 48.
MOST_REGISTERS = {
    "fetch_dequant": 32,
    "k_append": 64,
    "merge": 96,
    "q_quant": 64,
    "records_copy": 40,
}


def tool(name):
    for home in filter(None, (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"))):
        path = Path(home) / "bin" / name
        if path.exists():
            return str(path)
    path = shutil.which(name)
    if path is None:
        sys.exit(f"{name} not found (CUDA_HOME, CUDA_PATH, PATH)")
    return path


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def compile_unit(unit, folder):
    """The cubin, and what ptxas says of each kernel."""
    cubin = folder / f"{unit.stem}.cubin"
    text = run(
        tool("nvcc"), "-std=c++17", "-O3", "-gencode=arch=compute_90a,code=sm_90a", "-cubin", "-I", str(CUDA),
        "-Xptxas", "-v", "-o", str(cubin), str(unit),
    )  # fmt: skip
    usage = {}
    for part in text.split("Compiling entry function")[1:]:
        name = re.search(r"'(\w+)'", part)[1]
        numbers = {
            "stack": r"(\d+) bytes stack frame",
            "spill stores": r"(\d+) bytes spill stores",
            "spill loads": r"(\d+) bytes spill loads",
            "registers": r"Used (\d+) registers",
        }
        usage[name] = {what: int(re.search(pattern, part)[1]) for what, pattern in numbers.items()}
        local = re.search(r"(\d+) bytes lmem", part)
        usage[name]["local memory"] = int(local[1]) if local else 0
    return cubin, usage


def opcodes(cubin):
    """How often each kernel contains each instruction."""
    counts = defaultdict(Counter)
    kernel = None
    for line in run(tool("nvdisasm"), "-c", str(cubin)).splitlines():
        if section := re.match(r"\s*\.section\s+\.text\.(\w+),", line):
            kernel = section[1]
        elif found := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d+\s+)?([A-Z][\w.]*)", line):
            counts[kernel][found[1]] += 1
    return counts


def check(unit, folder):
    module = unit.stem
    cubin, usage = compile_unit(unit, folder)
    counts = opcodes(cubin)
    faults, table = [], []
    if module not in REQUIRED:
        faults.append(f"{unit.name} has no line in REQUIRED")
    for kernel, numbers in usage.items():
        table.append(f"{kernel:36} {numbers['registers']:4} registers {sum(counts[kernel].values()):6} instructions")
        for what in ("stack", "spill stores", "spill loads", "local memory"):
            if numbers[what] != 0:
                faults.append(f"{kernel}: {numbers[what]} bytes of {what}")
        if numbers["registers"] > MOST_REGISTERS.get(module, 255):
            faults.append(f"{kernel}: {numbers['registers']} registers, more than {MOST_REGISTERS[module]}")
        for opcode in REQUIRED.get(module, []):
            if not any(name.startswith(opcode) for name in counts[kernel]):
                faults.append(f"{kernel}: no {opcode}")
        for opcode in FORBIDDEN:
            for name in (name for name in counts[kernel] if name.split(".")[0] == opcode):
                faults.append(f"{kernel}: {counts[kernel][name]} x {name}")
    return {(module, kernel) for kernel in usage}, table, faults


def main():
    units = sorted(CUDA.glob("*.cu"))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda unit: check(unit, Path(folder)), units))
    compiled = set().union(*(kernels for kernels, _, _ in results))
    faults = [fault for _, _, faults in results for fault in faults]
    loaded = set(re.findall(r'= "(\w+)" / "(\w+)"', KERNELS_RS.read_text()))
    faults += [f"{module}.cu has no kernel {kernel}, which kernels.rs loads" for module, kernel in loaded - compiled]
    faults += [f"kernels.rs does not load {kernel} of {module}.cu" for module, kernel in compiled - loaded]
    print("\n".join(line for _, table, _ in results for line in table))
    if faults:
        sys.exit("\n" + "\n".join(sorted(faults)))


if __name__ == "__main__":
    main()
