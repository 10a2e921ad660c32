#!/usr/bin/env bash
# One visit to a machine with GPUs: builds lanescope there and runs the chosen sections, each under a time limit.
usage() {
  cat <<'TEXT'
usage: bench/gpu/run.sh [SECTION[:SECONDS] ...]

  build         the package into a separate folder, and the torch observer              240 s
  ladder        compare.py: matmul + add, 64 and 4096, eager and compiled, cold and warm 360 s
  programs      compare.py: layers and models                                           300 s
  cuda_program  examples/02_cuda_program under `lanescope record`                       60 s
  readme        readme_commands.py: README's section about the GPU, to the letter       90 s
  floor         cupti_floor.py: what CUPTI alone costs                                  120 s
  samples       cupti_samples.py: in which library the time goes                        60 s
  ending        cupti_ending.cu: which calls break a capture; when all records are there  60 s
  leaving       leaving.py: CUPTI leaves busy processes; with NCCL where there are 2 GPUs 180 s
  cost          cost.py                                                                 480 s
  residual      residual.py: what a profiler leaves                                     150 s
  models        slowdown_models.py                                                      240 s
  kill9         kill9.py: MLP training, and a program whose GPU is never idle           300 s
  faults        examples/faults: pairs of programs with and without a fault, and explain 480 s
                pairs that need more GPUs than the machine has are named and left out
  faults2       the pairs of programs that run on 2 GPUs, only                          300 s
  ddp2, ddp4    compare.py under torchrun on 2 and on 4 GPUs                            180 s
Default: build ladder programs cuda_program kill9. A section that fails or runs out of time does not stop the next one; the
exit code is the number of those. Environment:
  OUT                     where results go (default: gpu_bench): summary.txt, results.tar.gz, traces.tar.gz
  LANESCOPE_DEPENDENCIES  the usr folder that tools/carry_dependencies.sh made, when they are not installed
  LANESCOPE_SITE          where the package is installed (default: a folder lanescope-site in TMPDIR); kept between visits
  LANESCOPE_PYTHON        the interpreter that has torch (default: python3)
  DEVICE=cpu              small sizes on the CPU, to try this script out
TEXT
}
set -uo pipefail
case "${1:-}" in -h | --help) usage; exit 0 ;; esac
limit_of() {
  case "$1" in
    build | models) echo 240 ;; ladder) echo 360 ;; programs) echo 300 ;; cuda_program) echo 60 ;; readme) echo 90 ;; floor) echo 120 ;; cost | faults) echo 480 ;;
    ddp2 | ddp4 | leaving) echo 180 ;; ending | samples) echo 60 ;; residual) echo 150 ;; kill9 | faults2) echo 300 ;; *) echo unknown ;;
  esac
}
if [ "${1:-}" != --only ]; then
  [ $# -gt 0 ] || set -- build ladder programs cuda_program kill9
  for wanted in "$@"; do
    [ "$(limit_of "${wanted%%:*}")" != unknown ] || { usage >&2; exit 2; }
  done
fi
cd "$(dirname "$0")/../.." || exit 1
out=${OUT:-gpu_bench}
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python=${LANESCOPE_PYTHON:-python3}
site=${LANESCOPE_SITE:-${TMPDIR:-/tmp}/lanescope-site}
device=${DEVICE:-cuda}
sizes=(--device "$device")
[ "$device" = cpu ] && sizes+=(--small)
export PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH} PATH=$site/bin:$PATH PYTHONUNBUFFERED=1
if [ -n "${LANESCOPE_DEPENDENCIES:-}" ]; then
  prefix=$(cd "$LANESCOPE_DEPENDENCIES" && pwd) || exit 2
  libraries=$(printf '%s\n' "$prefix"/lib/*-linux-gnu | head -n 1)
  export CMAKE_PREFIX_PATH=$prefix PKG_CONFIG_PATH=$libraries/pkgconfig CPATH=$prefix/include
  export LIBRARY_PATH=$libraries LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi

build() {
  rm -rf "$site"
  CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)} "$python" -m pip install -q --no-index \
    --no-build-isolation --no-deps --target "$site" . || return 1
  "$python" -c 'import sys, torch, lanescope
from lanescope import _torch
why = _torch.ensure_observer()
print("lanescope", lanescope.__version__, "torch", torch.__version__, "observer:", why or "built")
sys.exit(1 if why else 0)'
}
cuda_program() {
  nvcc -O2 -std=c++17 examples/02_cuda_program/main.cu -o "$work/cuda_program" -ldl &&
    "$python" bench/gpu/check_cuda_program.py "$work/cuda_program" --out "$work/cuda_program_results"
}
readme() {
  nvcc -O2 -std=c++17 examples/02_cuda_program/main.cu -o "$work/cuda_program" -ldl &&
    "$python" bench/gpu/readme_commands.py --cuda-program "$work/cuda_program"
}
with_cupti() {  # with_cupti options and files of nvcc
  local cuda
  cuda=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")
  nvcc -O2 -std=c++17 -I"$cuda/extras/CUPTI/include" "$@" -ldl
}
floor_library() {
  with_cupti -shared -Xcompiler -fPIC bench/gpu/cupti_floor.cpp -o "$work/cupti_floor.so"
}
ending() {
  with_cupti bench/gpu/cupti_ending.cu -o "$work/cupti_ending" -lcuda &&
    "$work/cupti_ending" "$(cd bench/gpu && "$python" -c 'import cupti_floor; print(cupti_floor.find_cupti())')"
}
floor() {  # floor SECONDS
  floor_library &&
    "$python" bench/gpu/cupti_floor.py --library "$work/cupti_floor.so" --seconds $(($1 * 4 / 10)) &&
    "$python" bench/gpu/cupti_floor.py --library "$work/cupti_floor.so" --seconds $(($1 * 3 / 10)) \
      --program llama_decode --variants K,KMPSObc
}
samples() {
  floor_library &&
    g++ -O2 -std=c++17 -shared -fPIC bench/gpu/cupti_samples.cpp -o "$work/cupti_samples.so" &&
    "$python" bench/gpu/cupti_samples.py --floor "$work/cupti_floor.so" --samples "$work/cupti_samples.so"
}
leaving() {  # leaving SECONDS
  "$python" bench/gpu/leaving.py --seconds $(($1 / 6)) || return 1
  [ "$(nvidia-smi -L | wc -l)" -lt 2 ] ||
    "$python" -m torch.distributed.run --nproc_per_node 2 bench/gpu/leaving.py --programs ddp --seconds $(($1 / 6))
}
compare() {  # compare NAME arguments...
  local name=$1
  shift
  "$python" bench/gpu/compare.py "${sizes[@]}" --out "$work/$name" "$@"
}
faults() {  # faults NAME SECONDS options of run.py...
  local name=$1 limit=$2 jobs start=fork begin=$SECONDS
  shift 2
  jobs=$([ "$(nproc)" -ge 8 ] && echo 5 || echo 1)
  # One pair first: where profilers do not work in forked processes, all import torch again.
  "$python" examples/faults/run.py "${sizes[@]}" --out "$work/${name}_first" --pairs tiny_ops --seconds 0.1 --timeout 60 &&
    "$python" examples/faults/matrix.py "$work/${name}_first" >"$work/${name}_first/matrix.txt" || start=spawn
  "$python" examples/faults/run.py "${sizes[@]}" --out "$work/$name" --jobs "$jobs" --start "$start" \
    --stop-after $((limit * 9 / 10 - 10 - SECONDS + begin)) "$@"
  local code=$?
  "$python" examples/faults/matrix.py "$work/$name" --json "$work/$name/matrix.json" && return $code
}
section() {  # section NAME SECONDS: what runs, without the limit
  local few=()
  [ "$device" = cpu ] && few=(--allow-not-run)
  case "$1" in
    build) build ;;
    ladder) compare ladder --programs ladder ;;
    programs) compare programs --programs layers,models --jobs "$([ "$(nproc)" -ge 8 ] && echo 4 || echo 1)" "${few[@]}" ;;
    cuda_program) cuda_program ;;
    readme) readme ;;
    floor) floor "$2" ;;
    samples) samples ;;
    ending) ending ;;
    leaving) leaving "$2" ;;
    cost) "$python" bench/gpu/cost.py --device "$device" --seconds $(($2 * 8 / 10)) --out "$work/cost" \
      --after-variants "$([ "$device" = cpu ] && echo 'lanescope everything,torch cpu' ||
        echo 'none,lanescope cpu+cuda,lanescope everything,torch cpu+cuda')" ;;
    residual) "$python" bench/gpu/residual.py --device "$device" --seconds $(($2 * 5 / 10)) --out "$work/residual" ;;
    models) "$python" bench/gpu/slowdown_models.py "${sizes[@]}" --seconds $(($2 * 8 / 10)) --out "$work/models" ;;
    kill9)
      "$python" bench/gpu/kill9.py "${sizes[@]}" --out "$work/kill9"
      local code=$?
      "$python" bench/gpu/kill9.py "${sizes[@]}" --program long_products --out "$work/kill9_long_products" &&
        return $code
      ;;
    faults) faults faults "$2" ;;
    faults2) faults faults2 "$2" --ranks 2 ;;
    ddp2) compare ddp2 --programs ddp --ranks 2 --shapes ;;
    ddp4) compare ddp4 --programs ddp --ranks 4 --shapes ;;
  esac
}
# Runs inside `timeout`, which wants a command: this script again, with only one section.
if [ "${1:-}" = --only ]; then
  trap - EXIT
  rm -rf "$work"
  work=$4
  section "$2" "$3"
  exit $?
fi
pack() {  # small results after each section, so that a visit cut short still brings them; traces apart
  cp "$work/summary.txt" "$out/summary.txt"
  tar -C "$work" --exclude=traces --exclude='*.lspool' --exclude=cuda_program --exclude=cupti_ending -czf "$out/results.tar.gz" .
  find "$work" -type d -name traces -printf '%P\n' | tar -C "$work" -czf "$out/traces.tar.gz" --exclude='*.log' -T -
}

failed=0
{ nvidia-smi -L 2>/dev/null || echo "no nvidia-smi"; } >"$work/machine.txt"
nvidia-smi >>"$work/machine.txt" 2>/dev/null
printf '%-14s%8s  %-12s%s\n' section seconds result 'last line' >"$work/summary.txt"
for wanted in "$@"; do
  name=${wanted%%:*}
  limit=$(limit_of "$name")
  [ "$name" = "$wanted" ] || limit=${wanted#*:}
  echo "== $name, at most $limit s"
  begin=$SECONDS
  timeout -k 10 "$limit" bench/gpu/run.sh --only "$name" "$limit" "$work" >"$work/$name.log" 2>&1
  code=$?
  result=passed
  [ $code -eq 0 ] || { failed=$((failed + 1)); result="FAILED ($code)"; }
  [ $code -eq 124 ] && result='out of time'
  tail -n 40 "$work/$name.log"
  printf '%-14s%8d  %-12s%s\n' "$name" $((SECONDS - begin)) "$result" "$(tail -n 1 "$work/$name.log" | cut -c1-100)" \
    >>"$work/summary.txt"
  pack
done
echo
cat "$work/summary.txt"
exit $failed
