#!/usr/bin/env python3
"""Writes the tables of measurements in the READMEs from the files here; with --check, fails if one is out of date."""

import csv
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BEGIN, END = "<!-- results: begin -->\n", "<!-- results: end -->\n"

CHARTS = {  # what `snapmla plot` draws
    "figure6.svg": "![Rates by length, 32 sequences, 16, 64 and 128 heads]({})",
    "figure7.svg": "![Rates by heads, 32 sequences of 16,384 tokens, 1, 2 and 4 query tokens]({})",
    "roofline.svg": "![Rates of large calls under what memory and tensor cores allow]({})",
    "speedup.svg": "![Times as fast as FlashMLA BF16]({})",
}


def markdown(heading, rows):
    lines = [heading, ["---"] * len(heading), *rows]
    return "".join(f"| {' | '.join(str(cell) for cell in line)} |\n" for line in lines)


def decode_beside_peers():
    text = []
    for path in sorted(HERE.glob("*/compare.json")):
        run = json.loads(path.read_text())
        about, before = run["about"], run["about"]["before"]
        text.append(
            f"{about['gpu']}, driver {before.get('driver_version', 'unknown')}, {about['date'][:10]}; {about['method']} "
            f"([data](results/{path.parent.name}/compare.json)):\n\n"
        )
        rows = []
        for row in run["rows"]:
            ours = row["snapmla_us"]
            peers = [f"{row[f'{peer}_us']:.1f}" if f"{peer}_us" in row else "" for peer in ("bf16", "fp8")]
            ratios = [f"{row[f'speedup_over_{peer}']:.2f}x" if f"speedup_over_{peer}" in row else "" for peer in ("bf16", "fp8")]
            shape = [f"{row['batch']} x {row['length']:,}", row["heads"], row["q_len"]]
            rows.append([*shape, f"{ours:.1f}", *peers, *ratios, f"{100 * row['floor_us'] / ours:.0f} %"])
        heading = ["batch x length", "heads", "q_len", "libsnapmla us", "FlashMLA BF16 us", "public FP8 us", "over BF16", "over FP8"]
        text.append(markdown([*heading, "of the floor"], rows) + "\n")
        charts = [CHARTS[chart.name].format(f"results/{path.parent.name}/{chart.name}") for chart in sorted(path.parent.glob("*.svg"))]
        text.append("".join(f"{chart}\n" for chart in charts) + "\n")
    return "".join(text)


def llama_cpp_attention():
    text = []
    for path in sorted(HERE.glob("*/llama_cpp_attention.csv")):
        folder = path.parent
        machine = (folder / "README.md").read_text().splitlines()[0].removeprefix("# ")
        text.append(f"{machine} ([data](../../results/{folder.name}/{path.name})):\n\n")
        with open(path, newline="") as file:
            rows = [
                [
                    row["queries"],
                    row["heads"],
                    f"{int(row['cells']):,}",
                    f"{float(row['f16_ms']):.1f}",
                    f"{float(row['q8_0_ms']):.1f}",
                    f"{float(row['module_ms']):.1f}",
                    f"{float(row['over_f16']):.1f}x",
                    f"{float(row['over_q8_0']):.1f}x",
                ]
                for row in csv.DictReader(file)
            ]
        heading = ["queries", "heads", "cells", "`f16` ms", "`q8_0` ms", "module ms", "over `f16`", "over `q8_0`"]
        text.append(markdown(heading, rows) + "\n")
    return "".join(text)


TABLES = {ROOT / "README.md": decode_beside_peers, ROOT / "integrations/llama_cpp/README.md": llama_cpp_attention}


def main():
    for readme, table in TABLES.items():
        text = readme.read_text()
        before, rest = text.split(BEGIN)
        after = rest.split(END)[1]
        wanted = before + BEGIN + table().rstrip("\n") + "\n" + END + after
        if wanted == text:
            continue
        if "--check" in sys.argv[1:]:
            sys.exit(f"{readme.relative_to(ROOT)} is out of date: run results/table.py")
        readme.write_text(wanted)


if __name__ == "__main__":
    main()
