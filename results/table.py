#!/usr/bin/env python3
"""Writes README.md's table of measurements from the files here; with --check, fails if README.md is out of date."""

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
README = HERE.parent / "README.md"
BEGIN, END = "<!-- results: begin -->\n", "<!-- results: end -->\n"


def table():
    files = sorted(HERE.glob("*/compare.json"))
    if not files:
        return "None committed yet.\n"
    text = []
    for path in files:
        run = json.loads(path.read_text())
        about, before = run["about"], run["about"]["before"]
        text.append(
            f"{about['gpu']}, driver {before.get('driver_version', 'unknown')}, {about['date'][:10]}; {about['method']} "
            f"([data](results/{path.parent.name}/compare.json)):\n\n"
        )
        text.append("| batch x length | heads | q_len | libsnapmla us | FlashMLA BF16 us | public FP8 us | over BF16 | over FP8 | of the floor |\n")
        text.append("|---|---|---|---|---|---|---|---|---|\n")
        for row in run["rows"]:
            ours = row["snapmla_us"]
            peers = [f"{row[f'{peer}_us']:.1f}" if f"{peer}_us" in row else "" for peer in ("bf16", "fp8")]
            ratios = [f"{row[f'speedup_over_{peer}']:.2f}x" if f"speedup_over_{peer}" in row else "" for peer in ("bf16", "fp8")]
            text.append(
                f"| {row['batch']} x {row['length']:,} | {row['heads']} | {row['q_len']} | {ours:.1f} | {peers[0]} | {peers[1]} "
                f"| {ratios[0]} | {ratios[1]} | {100 * row['floor_us'] / ours:.0f} % |\n"
            )
        text.append("\n")
    return "".join(text).rstrip("\n") + "\n"


def main():
    readme = README.read_text()
    before, rest = readme.split(BEGIN)
    after = rest.split(END)[1]
    wanted = before + BEGIN + table() + END + after
    if "--check" in sys.argv[1:]:
        if wanted != readme:
            sys.exit("README.md is out of date: run results/table.py")
    else:
        README.write_text(wanted)


if __name__ == "__main__":
    main()
