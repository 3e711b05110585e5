#!/usr/bin/env bash
# Conformance and benchmarks on a machine with a Hopper GPU, all results in one folder.
#
#   gpu/run.sh                                 builds here, runs everything, writes gpu-results/
#   gpu/run.sh --bin DIR --out DIR             with prebuilt libsnapmla.so, snapmla and conformance (and, for racecheck,
#                                              traceable/conformance): needs no Rust, no network
#   gpu/run.sh --steps conformance,ops,compare only these
#   gpu/run.sh --limit conformance=300         another time limit for a step, in seconds
#
# Steps, in this order:
#   conformance   every backend against the references, the whole suite         -> conformance.json
#   memcheck      compute-sanitizer on some quick cases, where it is installed  -> log.txt
#   racecheck     the same, for shared memory, with kernels whose named barriers the tool can follow
#   ops           snapmla bench --preset ops                                    -> ops/
#   headline      snapmla bench --preset headline                               -> headline/
#   compare       beside FlashMLA, where PyTorch and flash_mla import           -> compare.json, compare.csv
# and, where --steps names them:
#   bars          beside FlashMLA: nine shapes, 16, 64 and 128 heads            -> bars/
#   sweep         the same, 8 to 128 heads, one, two and four query tokens      -> sweep/
#   figures       beside FlashMLA: the paper's figures 6 and 7                  -> figure6/, figure7/
#   invariance    what batch invariance costs                                   -> balanced/, invariant/
#   pages         16 and 32 tokens a page beside 64                             -> page16/, page32/, page64/
#   uneven        snapmla bench --preset uneven                                 -> uneven/
#   layers        snapmla bench --preset layers                                 -> layers/
# log.txt has the machine, every command, all output, and what became of each step.
#
# The limits of the first six together stay below nine minutes. Exits with 1 when a step failed (a wrong result, a crash,
# its time limit), with 2 on a mistake in the call. A sanitizer that does not work on the machine is told, not a failure.
set -uo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
steps=conformance,memcheck,racecheck,ops,headline,compare
out=gpu-results
bin=
declare -A limit=([conformance]=200 [memcheck]=45 [racecheck]=45 [ops]=100 [headline]=40 [compare]=80
    [bars]=240 [sweep]=590 [figures]=240 [invariance]=200 [pages]=200 [uneven]=90 [layers]=120)
# Groups of the conformance suite, for the sanitizers, which slow a kernel down a hundredfold.
sanitized="append/ fetch/ lengths/ shapes/b3- ragged/"
sanitizer_fault=99

usage() {
    sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"
    exit "$1"
}

die() {
    echo "gpu/run.sh: $*" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
        -h | --help) usage 0 ;;
        --bin | --out | --steps | --limit) [ $# -ge 2 ] || die "$1 needs a value" ;;
        *) die "what is $1? (--help)" ;;
    esac
    case $1 in
        --bin) bin=$(cd "$2" && pwd) || exit 2 ;;
        --out) out=$2 ;;
        --steps) steps=$2 ;;
        --limit)
            [ -n "${limit[${2%%=*}]:-}" ] || die "--limit: no step ${2%%=*}"
            [[ ${2#*=} =~ ^[1-9][0-9]*$ ]] || die "--limit ${2%%=*}: ${2#*=} is no number of seconds"
            limit[${2%%=*}]=${2#*=}
            ;;
    esac
    shift 2
done
IFS=, read -ra chosen <<<"$steps"
for step in "${chosen[@]}"; do
    [ -n "${limit[$step]:-}" ] || die "no step $step"
done

# Before the first time limit: a build takes minutes.
if [ -z "$bin" ]; then
    (cd "$root" && cargo build --release -p snapmla -p conformance) || die "the build failed"
    target=${CARGO_TARGET_DIR:-$root/target}
    bin=$target/release
    if [[ ,$steps, == *,racecheck,* ]]; then
        (cd "$root" && NVCC_APPEND_FLAGS="${NVCC_APPEND_FLAGS:-} -DSNAPMLA_TRACEABLE_BARRIERS" \
            cargo build --release -p conformance --target-dir "$target/traceable") || die "the build for racecheck failed"
        mkdir -p "$bin/traceable" && cp "$target/traceable/release/conformance" "$bin/traceable/" || exit 2
    fi
fi
for file in libsnapmla.so snapmla conformance; do
    [ -f "$bin/$file" ] || die "$bin/$file is missing"
done
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 2
exec > >(tee "$out/log.txt") 2>&1
tee=$!

echo "date      $(date -u +%Y-%m-%dT%H:%M:%SZ)"
echo "source    $(git -C "$root" describe --always --dirty 2>/dev/null || echo unknown)"
echo "binaries  $bin"
(cd "$bin" && sha256sum libsnapmla.so snapmla conformance)
echo "machine   $(uname -srm), $(nproc) processors"
nvidia-smi --query-gpu=name,driver_version,memory.total,power.limit,clocks.max.sm,clocks.sm,temperature.gpu --format=csv \
    || echo "nvidia-smi does not work"

# Runs a command under the step's time limit, with the command in the log.
run() {
    local step=$1
    shift
    echo "\$ $*"
    timeout --kill-after=5 "${limit[$step]}" "$@"
}

conformance() {
    run conformance "$bin/conformance" --backend all --json "$out/conformance.json"
}

sanitize() {
    local filter code=0
    for filter in $sanitized; do
        echo "\$ compute-sanitizer --tool $1 $2 --backend cuda --quick --filter $filter"
        compute-sanitizer --tool "$1" --error-exitcode $sanitizer_fault "$2" --backend cuda --quick \
            --filter "$filter" || { code=$?; [ $code -eq $sanitizer_fault ] && return $code; }
    done
    return $code
}

# `timeout` runs programs only: the step is this shell once more, with the function in it.
sanitizer() {
    type -P compute-sanitizer >/dev/null || { why="compute-sanitizer is not installed"; return 77; }
    export sanitized sanitizer_fault
    export -f sanitize
    timeout --kill-after=5 "${limit[$1]}" bash -c 'sanitize "$@"' bash "$1" "$2"
    local code=$?
    case $code in
        0 | $sanitizer_fault) return $code ;;
        *) why="did not get to its end (exit code $code)"; return 77 ;;
    esac
}

memcheck() { sanitizer memcheck "$bin/conformance"; }

racecheck() {
    [ -f "$bin/traceable/conformance" ] || { why="$bin/traceable/conformance is missing"; return 77; }
    sanitizer racecheck "$bin/traceable/conformance"
}

ops() {
    # Half a second of load will do: these kernels are bound by memory, not by the clock.
    bench ops "$out/ops" --preset ops --warm 0.5
}

headline() { bench headline "$out/headline" --preset headline; }

# compare.py, of the step $1, into the folder $2.
beside_peers() {
    local step=$1 folder=$2 missing
    missing=$(timeout 30 python3 -c 'import torch, flash_mla' 2>&1) || { why=$(tail -n 1 <<<"$missing"); return 77; }
    run "$step" python3 "$root/benches/compare.py" --lib "$bin/libsnapmla.so" --out "$folder" "${@:3}"
}

# snapmla bench, of the step $1, into the folder $2.
bench() {
    run "$1" "$bin/snapmla" --backend cuda bench --out "$2" "${@:3}"
}

compare() { beside_peers compare "$out" --preset headline; }
# Shorter turns than a headline's: 27 and 135 shapes, three kernels each.
bars() { beside_peers bars "$out/bars" --preset sweep --heads 16,64,128 --q-len 1 --warm 1 --rounds 5; }
sweep() { beside_peers sweep "$out/sweep" --preset sweep --warm 0.7 --rounds 4 --turn 0.05; }
figures() {
    beside_peers figures "$out/figure6" --preset figure6 --warm 1 && beside_peers figures "$out/figure7" --preset figure7 --warm 1
}
invariance() {
    local shapes=(--preset sweep --heads 16,64,128 --q-len 1 --warm 0.7)
    bench invariance "$out/balanced" "${shapes[@]}" && bench invariance "$out/invariant" --batch-invariant "${shapes[@]}"
}
pages() {
    local size
    for size in 16 32 64; do
        bench pages "$out/page$size" --page-size $size --batch 8,32 --length 8192,65536 --heads 16,128 --q-len 1 --warm 1 || return
    done
}
uneven() { bench uneven "$out/uneven" --preset uneven; }
layers() { bench layers "$out/layers" --preset layers; }

failed=0
summary=
for step in conformance memcheck racecheck ops headline compare bars sweep figures invariance pages uneven layers; do
    [[ ,$steps, == *,$step,* ]] || continue
    echo
    echo "=== $step (at most ${limit[$step]} s)"
    SECONDS=0
    why=
    "$step"
    code=$?
    case $code in
        0) result=ok ;;
        77) result="skipped: $why" ;;
        124 | 137) result="FAILED: ran past ${limit[$step]} s" failed=1 ;;
        *) result="FAILED: exit code $code" failed=1 ;;
    esac
    summary+=$(printf '%-12s %4d s  %s' "$step" "$SECONDS" "$result")$'\n'
done
printf '\n=== summary\n%s' "$summary"

# The log is whole before anyone looks at it.
exec >&- 2>&-
wait "$tee"
exit $failed
