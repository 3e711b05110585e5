#!/usr/bin/env python3
"""libsnapmla beside FlashMLA: one process, one GPU, the same tokens, page tables and clock.

Needs a Hopper GPU, PyTorch 2.10 or newer, and the wheel `sgl-flash-mla` 1.0.0 on PYTHONPATH (it carries FlashMLA's
BF16 dense decode and the public per-tensor FP8 dense decode, both for sm_90).

    cargo build --release && python3 benches/compare.py --out results

How it is measured. Each contestant's 20 calls, over 20 different page tables of a pool larger than the L2 cache, are
one CUDA graph. After two seconds of load the contestants take turns: some replays to settle the clock, then timed
ones; the median over all rounds counts. Everything that a call launches is in it, but for the peers' scheduling
metadata, which their users prepare once a step for all layers (ours is derived inside the call). Before the clock
runs, every contestant's answer is held against attention in f64 on the BF16 tokens, on a few rows.
"""

import argparse
import csv
import datetime
import json
import pathlib
import statistics
import subprocess
import sys
import time

import torch

from snapmla_ctypes import (
    BACKEND_CUDA,
    DECODE_CAUSAL,
    DTYPE_BF16,
    RECORD_BYTES,
    CacheParams,
    DecodeLimits,
    DecodeParams,
    KAppendParams,
    Library,
)

try:
    import flash_mla
except ImportError:
    flash_mla = None

PAGE = 64
CONTENT, ROPE = 512, 64
KEY = CONTENT + ROPE
SCALE = 192**-0.5
POOL_PAGES = 32768  # 1.35 GB of ours, 2.4 GB in BF16: far larger than any L2
ROW_BYTES = 2 * KEY  # a token in BF16
OUR_BOUND = 0.1  # relative L2 against f64 on the un-quantised tokens

ROOT = pathlib.Path(__file__).resolve().parent.parent
SWEEP = "1x8192 1x131072 8x8192 8x131072 32x16384 32x65536 32x131072 128x1024 128x8192"
PRESETS = {  # batch x length, heads, q_len: as `snapmla bench` has them
    "headline": ("32x65536", (16, 64, 128), (1,)),
    "sweep": (SWEEP, (8, 16, 32, 64, 128), (1, 2, 4)),
    "small": ("1x1024 1x4096 1x8192 2x1024 2x4096 2x8192 4x1024 4x4096 4x8192 8x1024 8x4096 8x8192", (16, 128), (1,)),
    "figure6": ("32x16384 32x32768 32x65536 32x131072", (16, 64, 128), (1,)),
    "figure7": ("32x16384", (16, 32, 64, 128), (1, 2, 4)),
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: tuple(int(n) for n in text.split(","))  # noqa: E731
    parser.add_argument("--lib", default=ROOT / "target/release/libsnapmla.so", help="the library to measure")
    parser.add_argument("--preset", choices=PRESETS, default="headline")
    parser.add_argument("--shapes", help="batch x length, e.g. '1x8192 32x65536', instead of the preset's")
    parser.add_argument("--heads", type=numbers, help="e.g. 16,128, instead of the preset's")
    parser.add_argument("--q-len", type=numbers, help="e.g. 1,2, instead of the preset's")
    parser.add_argument("--peers", default="bf16,fp8", help="which of bf16 and fp8 to run; '' for none")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--calls", type=int, default=20, help="calls of a graph")
    parser.add_argument("--warm", type=float, default=2.0, help="seconds of load before the clock")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each contestant")
    parser.add_argument("--turn", type=float, default=0.1, help="seconds of a turn before its clock, and under it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--read", type=float, default=4.53, help="read ceiling, TB/s")
    parser.add_argument("--fp8-rate", type=float, default=1459, help="FP8 ceiling, TFLOP/s")
    parser.add_argument("--bf16-rate", type=float, default=788, help="BF16 ceiling, TFLOP/s")
    parser.add_argument("--out", type=pathlib.Path, help="folder for compare.json and compare.csv")
    args = parser.parse_args()
    shapes, heads, q_lens = PRESETS[args.preset]
    pairs = [tuple(int(n) for n in text.split("x")) for text in (args.shapes or shapes).split()]
    args.grid = [(b, s, h, q) for b, s in pairs for q in args.q_len or q_lens for h in args.heads or heads]
    args.peers = [peer for peer in args.peers.split(",") if peer]
    if args.peers and flash_mla is None:
        parser.error("flash_mla is not on PYTHONPATH (pip wheel sgl-flash-mla 1.0.0); --peers '' runs without")
    return args


class Pool:
    """The same tokens three times: BF16, per-tensor FP8, and in our cache."""

    def __init__(self, library, context, pages, fp8, seed):
        generator = torch.Generator("cuda").manual_seed(seed)
        # Content with a mean in every channel, rope a few times as wide with channels that stand out.
        mean = torch.zeros(KEY, device="cuda")
        mean[:CONTENT].normal_(0, 0.5, generator=generator)
        sigma = torch.ones(KEY, device="cuda")
        sigma[CONTENT:] = 4
        sigma[CONTENT + 56 :] = 40
        self.sigma = sigma
        self.pages = pages
        self.bf16 = torch.empty(pages, PAGE, 1, KEY, dtype=torch.bfloat16, device="cuda")
        for chunk in self.bf16.split(2048):
            noise = torch.randn(chunk.shape, device="cuda", generator=generator)
            chunk.copy_(noise.mul_(sigma).add_(mean).clamp_(-400, 400))
        self.fp8 = self.bf16.to(torch.float8_e4m3fn) if fp8 else None

        params = CacheParams(page_size=PAGE, num_layers=1, num_pages=pages)
        params.memory_size = library.cache_size(params)
        self._memory = torch.empty(params.memory_size, dtype=torch.uint8, device="cuda")
        params.memory = self._memory.data_ptr()
        stream = torch.cuda.current_stream().cuda_stream
        self.cache = library.cache(context, params, stream)
        slots = torch.arange(pages * PAGE, device="cuda")
        append = KAppendParams(
            dtype=DTYPE_BF16,
            num_tokens=pages * PAGE,
            content=self.bf16.data_ptr(),
            content_stride=ROW_BYTES,
            rope=self.bf16.data_ptr() + 2 * CONTENT,
            rope_stride=ROW_BYTES,
            slots=slots.data_ptr(),
        )
        library.k_append(context, self.cache, append, stream)
        torch.cuda.synchronize()


class Shape:
    """One shape's queries and page tables, and each contestant's call over table i."""

    def __init__(self, args, library, context, pool, batch, length, heads, q_len):
        self.batch, self.length, self.heads, self.q_len = batch, length, heads, q_len
        self.pool, self.library, self.context = pool, library, context
        self.causal = q_len > 1
        self.max_pages = -(-length // PAGE)
        generator = torch.Generator("cuda").manual_seed(args.seed + 1)
        self.tables = self.random_tables(args.calls, generator)
        self.seq_lens = torch.full((batch,), length, dtype=torch.int32, device="cuda")
        # Logits that spread by 1.5: half from content, half from rope.
        gain = 1.5 / SCALE / 2**0.5
        noise = torch.randn(batch, q_len, heads, KEY, device="cuda", generator=generator)
        noise[..., :CONTENT] *= gain / CONTENT**0.5
        noise[..., CONTENT:] *= gain / ROPE**0.5 / pool.sigma[CONTENT:]
        self.q = noise.to(torch.bfloat16)
        self.calls = {"snapmla": self.ours()}
        if "bf16" in args.peers:
            self.calls["bf16"] = self.flash_mla_bf16()
        if "fp8" in args.peers:
            self.calls["fp8"] = self.flash_mla_fp8()

    def random_tables(self, count, generator):
        """Tables without a page twice; each goes on where the last one ended, so that calls touch other pages."""
        need, order, tables = self.batch * self.max_pages, torch.empty(0, dtype=torch.int64, device="cuda"), []
        for _ in range(count):
            if len(order) < need:
                order = torch.randperm(self.pool.pages, device="cuda", generator=generator)
            tables.append(order[:need].to(torch.int32).view(self.batch, self.max_pages).contiguous())
            order = order[need:]
        return tables

    def ours(self):
        rows = (self.batch, self.q_len, self.heads)
        out = torch.full((*rows, CONTENT), float("nan"), dtype=torch.bfloat16, device="cuda")
        lse = torch.full(rows, float("nan"), device="cuda")
        limits = DecodeLimits(
            max_batch=self.batch, max_q_len=self.q_len, max_heads=self.heads, max_seq_len=self.max_pages * PAGE
        )
        size = self.library.workspace_size(self.context, limits)
        workspace = torch.empty(max(size, 1), dtype=torch.uint8, device="cuda")
        strides = {
            f"{part}_{axis}_stride": ROW_BYTES * count
            for part in ("q_content", "q_rope")
            for axis, count in (("head", 1), ("token", self.heads), ("batch", self.heads * self.q_len))
        }
        params = [
            DecodeParams(
                flags=DECODE_CAUSAL if self.causal else 0,
                batch=self.batch,
                q_len=self.q_len,
                num_heads=self.heads,
                softmax_scale=SCALE,
                q_dtype=DTYPE_BF16,
                q_content=self.q.data_ptr(),
                q_rope=self.q.data_ptr() + 2 * CONTENT,
                seq_lens=self.seq_lens.data_ptr(),
                block_table=table.data_ptr(),
                max_pages=self.max_pages,
                out_dtype=DTYPE_BF16,
                out=out.data_ptr(),
                lse=lse.data_ptr(),
                workspace=workspace.data_ptr(),
                workspace_size=size,
                **strides,
            )
            for table in self.tables
        ]

        def call(i, keep=(workspace,)):
            self.library.decode(self.context, self.pool.cache, params[i], torch.cuda.current_stream().cuda_stream)
            return out, lse

        return call

    def flash_mla_bf16(self):
        meta, _ = flash_mla.get_mla_metadata()

        def call(i):
            out, lse = flash_mla.flash_mla_with_kvcache(
                self.q, self.pool.bf16, self.tables[i], self.seq_lens, CONTENT, meta,
                softmax_scale=SCALE, causal=self.causal, use_legacy=True,
            )  # fmt: skip
            return out, lse.transpose(1, 2)

        return call

    def flash_mla_fp8(self):
        meta, _ = flash_mla.get_mla_metadata()
        meta.tile_scheduler_metadata, meta.num_splits = flash_mla.get_mla_decoding_metadata(
            self.seq_lens, self.q_len * self.heads, 1, is_fp8_kvcache=True, use_legacy=True
        )
        # The queries fill E4M3's range; the tokens are taken as they are.
        descale_q = (self.q.abs().max().float() / 448).reshape(1)
        descale_k = torch.ones(1, device="cuda")
        q = (self.q.float() / descale_q).to(torch.float8_e4m3fn)

        def call(i):
            out, lse = flash_mla.flash_mla_with_kvcache(
                q, self.pool.fp8, self.tables[i], self.seq_lens, CONTENT, meta,
                softmax_scale=SCALE, causal=self.causal, is_fp8_kvcache=True, use_legacy=True,
                descale_q=descale_q, descale_k=descale_k,
            )  # fmt: skip
            return out, lse.transpose(1, 2)

        return call

    def errors(self, name):
        """Relative L2 and largest LSE error of a contestant, on the corner rows."""
        out, lse = self.calls[name](0)
        torch.cuda.synchronize()
        wrong = right = worst = 0.0
        for b in {0, self.batch - 1}:
            tokens = self.pool.bf16[self.tables[0][b].long()].view(-1, KEY)
            for i in {0, self.q_len - 1}:
                keys = tokens[: self.length - self.q_len + i + 1].double()
                for h in {0, self.heads - 1}:
                    logits = keys @ self.q[b, i, h].double() * SCALE
                    want = torch.softmax(logits, 0) @ keys[:, :CONTENT]
                    wrong += (out[b, i, h].double() - want).square().sum().item()
                    right += want.square().sum().item()
                    gap = (lse[b, i, h].double() - logits.logsumexp(0)).abs().item()
                    worst = gap if not gap <= worst else worst
        return (wrong / right) ** 0.5, worst


class Contestant:
    """A captured graph of all of a shape's calls."""

    def __init__(self, call, calls):
        self.calls = calls
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            call(0)
        side.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=side):
            for i in range(calls):
                call(i)
        self.replay_s = self.timed(1)[0] * calls
        self.replay_s = self.timed(1)[0] * calls
        self.samples = []

    def timed(self, replays):
        """Seconds a call, one number a replay."""
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(replays + 1)]
        marks[0].record()
        for mark in marks[1:]:
            self.graph.replay()
            mark.record()
        marks[-1].synchronize()
        return [a.elapsed_time(b) / 1e3 / self.calls for a, b in zip(marks, marks[1:])]

    def load(self, seconds):
        """Queues replays that last about this long."""
        for _ in range(max(1, int(seconds / self.replay_s))):
            self.graph.replay()

    def turn(self, seconds):
        self.load(seconds)
        self.samples += self.timed(min(200, max(1, int(seconds / self.replay_s))))


def smi(device, under_load=lambda: None):
    """Clock, power and temperature as they are while `under_load` runs over and over."""
    fields = ["name", "driver_version", "clocks.sm", "clocks.mem", "power.draw", "power.limit", "temperature.gpu"]
    which = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits", "-i", which]
    try:
        query = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except OSError as error:
        return {"error": str(error)}
    while query.poll() is None:
        under_load()
        time.sleep(0.01)
    answer = query.stdout.read().strip()
    return {"error": answer} if query.returncode else dict(zip(fields, answer.split(", ")))


def floor_us(args, batch, length, heads, q_len):
    tokens = batch * length
    products = 2 * tokens * heads * q_len
    compute = products * 2 * CONTENT / args.fp8_rate + products * ROPE / args.bf16_rate
    return max(tokens * RECORD_BYTES / args.read, compute) / 1e6


def measure(args, library, context, pool, batch, length, heads, q_len):
    shape = Shape(args, library, context, pool, batch, length, heads, q_len)
    row = {"batch": batch, "length": length, "heads": heads, "q_len": q_len}
    for name in shape.calls:
        row[f"{name}_relative_l2"], row[f"{name}_lse_error"] = shape.errors(name)
    contestants = {name: Contestant(call, args.calls) for name, call in shape.calls.items()}
    for _ in range(4):
        for contestant in contestants.values():
            contestant.load(args.warm / 4 / len(contestants))
    for _ in range(args.rounds):
        for contestant in contestants.values():
            contestant.turn(args.turn)
    for name, contestant in contestants.items():
        state = smi(args.device, lambda: (contestant.load(0.05), torch.cuda.synchronize()))
        row[f"{name}_us"] = statistics.median(contestant.samples) * 1e6
        row[f"{name}_least_us"] = min(contestant.samples) * 1e6
        row[f"{name}_most_us"] = max(contestant.samples) * 1e6
        row[f"{name}_sm_mhz"], row[f"{name}_watt"] = state.get("clocks.sm"), state.get("power.draw")
    seconds = row["snapmla_us"] * 1e-6
    row["tflops"] = 2 * batch * length * heads * q_len * (KEY + CONTENT) / seconds * 1e-12
    row["gb_per_s"] = batch * length * RECORD_BYTES / seconds * 1e-9
    row["floor_us"] = floor_us(args, batch, length, heads, q_len)
    for peer in args.peers:
        row[f"speedup_over_{peer}"] = row[f"{peer}_us"] / row["snapmla_us"]
    return row


HEADING = ("batch", "length", "heads", "q_len", "ours us", "bf16 us", "fp8 us", "bf16/ours", "fp8/ours",
           "TFLOP/s", "GB/s", "floor us", "ours L2", "bf16 L2", "fp8 L2")  # fmt: skip
COLUMNS = (("batch", ""), ("length", ""), ("heads", ""), ("q_len", ""), ("snapmla_us", ".1f"), ("bf16_us", ".1f"),
           ("fp8_us", ".1f"), ("speedup_over_bf16", ".2f"), ("speedup_over_fp8", ".2f"), ("tflops", ".0f"),
           ("gb_per_s", ".0f"), ("floor_us", ".1f"), ("snapmla_relative_l2", ".1e"), ("bf16_relative_l2", ".1e"),
           ("fp8_relative_l2", ".1e"))  # fmt: skip


def show(cells):
    print("  ".join(f"{cell:>9}" for cell in cells), flush=True)


def main():
    args = arguments()
    torch.cuda.set_device(args.device)
    torch.cuda.init()
    library = Library(args.lib)
    context = library.context(BACKEND_CUDA, args.device)
    about = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": " ".join(sys.argv),
        "snapmla": library.version(),
        "flash_mla": getattr(flash_mla, "__version__", None),
        "torch": torch.__version__,
        "gpu": torch.cuda.get_device_name(args.device),
        "before": smi(args.device),
        "method": f"graphs of {args.calls} calls, {args.warm} s of load, median of {args.rounds} turns of {args.turn} s",
    }
    pages = max([POOL_PAGES] + [b * -(-s // PAGE) for b, s, _, _ in args.grid])
    pool = Pool(library, context, pages, "fp8" in args.peers, args.seed)
    print(f"{about['gpu']}, driver {about['before'].get('driver_version')}, {about['date']}; {about['method']}")
    show(HEADING)
    rows = []
    for shape in args.grid:
        rows.append(measure(args, library, context, pool, *shape))
        show([format(rows[-1].get(key, ""), spec if key in rows[-1] else "") for key, spec in COLUMNS])
    about["after"] = smi(args.device)
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / "compare.json").write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")
        with open(args.out / "compare.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)
    worst = max(rows, key=lambda row: (not row["snapmla_relative_l2"] <= OUR_BOUND, row["snapmla_relative_l2"]))
    if not worst["snapmla_relative_l2"] <= OUR_BOUND:
        sys.exit(f"relative L2 {worst['snapmla_relative_l2']:.2e} at {worst}, above the bound of {OUR_BOUND}")
    library.destroy(context, pool.cache)


if __name__ == "__main__":
    main()
