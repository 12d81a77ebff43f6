#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail

usage() {
  cat <<'END'
Usage: tests/gpu.sh [STAGE...] [-- CMAKE_ARGUMENTS...]

Checks and measures what needs an NVIDIA GPU, stage by stage, each with its own time limit: GPU time may be available
only in pieces of some minutes. Without a stage: build, tests, and all that measure. Results go through bench/record.py to
bench/results/gpu_<stage>.json; logs are in the build directory. A stage that fails does not stop the next.

  build            configures and builds in $SUPEROFFLOAD_GPU_BUILD (build/gpu)
  tests            cuda_tests, cudnn_tests
  examples         CTest's examples.cuda.*: the programs
  nccl_tests       several ranks: needs two GPUs or more, like the next stages
  collectives      collectives of two GPUs for the units of Llama-8B, compared with NCCL's own calls
  collectives_4_gpus
                   the same with four GPUs
  train_2_gpus     steps of the Llama-8B shape on one GPU, and on two with a batch each
  train_4_gpus     the same with four
  models_2_gpus    steps of the published shapes for two GPUs, as planned: gpu_model_<shape>_2_gpus.json
  train_70b        steps of the Llama-70B shape on four, as planned: without clipping and with it
  faults           faults of GPUs, with the next four stages among them: docs/reliability.md; four GPUs run all of it
  memcheck racecheck initcheck synccheck
                   compute-sanitizer over the suites of the library's own kernels, one by one
  train_8_layers train_32_layers train_accumulated train_8192 train_32768
                   steps of the Llama-8B shape, with the bound that the run itself measures
  offload_8_layers offload_32_layers offload_planned offload_14b offload_largest
                   the same with state in host memory, clipped never and always, updated in several ways; with
                   device-updated state; as planned; a model whose state does not fit the GPU, as planned; and the most
                   layers that 125 GiB of host memory allow
  models_1_gpu     steps of the published shapes for one GPU, as planned: gpu_model_<shape>.json
  kernels          every kernel compared with a copy, every GEMM with a square one
  attention        the device's own attention and cuDNN's

If the host lacks libraries, or its cuDNN is refused (9.14.0), name others: -- -DCMAKE_PREFIX_PATH=<prefix>.
Exit status: 0 all stages passed, 1 one failed, 2 a wrong argument.
END
}

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
build=${SUPEROFFLOAD_GPU_BUILD:-build/gpu}
measuring=(train_8_layers train_32_layers train_accumulated train_8192 train_32768 offload_8_layers offload_32_layers
  offload_planned offload_14b offload_largest models_1_gpu kernels attention)
known=" build tests examples nccl_tests collectives collectives_4_gpus train_2_gpus train_4_gpus models_2_gpus train_70b faults memcheck racecheck initcheck synccheck ${measuring[*]} "
stages=()
cmake_arguments=()
while (($# > 0)); do
  case $1 in
    -h | --help) usage && exit 0 ;;
    --) shift && cmake_arguments=("$@") && break ;;
    *) [[ $known == *" $1 "* ]] || { usage >&2 && exit 2; } ;;
  esac
  stages+=("$1")
  shift
done
((${#stages[@]} > 0)) || stages=(build tests "${measuring[@]}")

say() { printf '== %s: %s\n' "$(date -u +%H:%M:%S)" "$*"; }

# limited SECONDS COMMAND...
limited() {
  local seconds=$1
  shift
  timeout --kill-after=10 "$seconds" "$@"
}

# measured STAGE SECONDS COMMAND...: records its output.
measured() {
  local name=$1 seconds=$2
  shift 2
  limited "$seconds" python3 bench/record.py "gpu_$name" -- "$@"
}

train() {
  local name=$1 seconds=$2
  shift 2
  measured "$name" "$seconds" "$build/bin/bench_train" --device cuda --dtype bf16 --shape llama-8b "$@"
}

# several STAGE SECONDS ARGUMENTS ARGUMENTS_OF_ONE_RUN...
several() {
  local name=$1 seconds=$2 all=$3 one runs=
  shift 3
  for one in "$@"; do
    runs+="$build/bin/bench_train --device cuda --dtype bf16 $all $one; "
  done
  measured "$name" "$seconds" bash -ec "$runs"
}

# models GPUS SHAPE:BATCHxSEQUENCE...: steps of published shapes, as planned.
models() {
  local gpus=$1 model suffix='' failed=0
  ((gpus == 1)) || suffix="_${gpus}_gpus"
  shift
  for model in "$@"; do
    local shape=${model%:*} batch=${model#*:}
    measured "model_$shape$suffix" 200 "$build/bin/bench_train" --device cuda --dtype bf16 --shape "$shape" \
      --gpus "$gpus" --batch "${batch%x*}" --seq "${batch#*x}" --warm_up 4 --steps 3 --offload auto \
      --max_grad_norm 0 || failed=1
  done
  return $failed
}

# Test cases whose kernels finish under a sanitizer, one after the other.
kernel_cases=(adamw attention cross_entropy dropout elementwise embedding expert_swiglu gemm grouped_gemm head_norm
  load_balancing reduction rms_norm rotary routing stored_adamw swiglu 'groups as models have them'
  'attention in bfloat16 on the matrix units is that in float')

# sanitized TOOL SECONDS_FOR_A_CASE: only the library's own kernels. Prints a count as tests/faults/table.py reads it.
sanitized() {
  local tool=$1 seconds=$2 name clean=0
  for name in "${kernel_cases[@]}"; do
    say "$tool: $name"
    limited "$seconds" compute-sanitizer --tool "$tool" --error-exitcode 1 --kernel-name kns=superoffload \
      "$build/bin/cuda_tests" -tc="$name" >"$build/$tool.log" 2>&1 && ((++clean)) || tail -30 "$build/$tool.log"
    grep -E 'SUMMARY|Status:' "$build/$tool.log"
  done
  printf '{"fault": "G5", "tried": %d, "survived": %d}\n' "${#kernel_cases[@]}" "$clean"
  ((clean == ${#kernel_cases[@]}))
}

stage() {
  case $1 in
    build)
      cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSUPEROFFLOAD_BUILD_TESTS=ON \
        -DSUPEROFFLOAD_BUILD_BENCH=ON -DSUPEROFFLOAD_TEST_SOURCES=OFF "${cmake_arguments[@]}" || return 1
      local targets=(cuda_tests bench_train cuda_bench) optional
      for optional in cudnn_tests attention_bench nccl_tests nccl_bench; do
        cmake --build "$build" --target help | grep -q "^$optional:" && targets+=("$optional")
      done
      limited 900 cmake --build "$build" --target "${targets[@]}"
      ;;
    tests) limited 600 ctest --test-dir "$build" -R '^cu(da|dnn)(\.|$)' --output-on-failure ;;
    examples)
      limited 900 cmake --build "$build" --target examples_tests finetune finetune_llama &&
        limited 900 ctest --test-dir "$build" -R '^examples\.cuda' --output-on-failure
      ;;
    nccl_tests)
      local suite
      for suite in host one_gpu gpus; do
        SUPEROFFLOAD_TEST_SUITE=$suite limited 420 "$build/bin/nccl_tests" || return 1
      done
      ;;
    collectives) measured "$1" 180 "$build/bin/nccl_bench" --gpus 2 ;;
    collectives_4_gpus) measured "$1" 180 "$build/bin/nccl_bench" --gpus 4 ;;
    train_2_gpus | train_4_gpus)
      local gpus=${1//[!0-9]/}
      train "train_1_of_${gpus}_gpus" 240 --gpus 1 --batch 4 --seq 2048 --steps 8 &&
        train "$1" 240 --gpus "$gpus" --batch 4 --seq 2048 --steps 8
      ;;
    train_70b)
      local norm
      for norm in 0 1; do
        measured "${1}_clipped_at_$norm" 540 "$build/bin/bench_train" --device cuda --shape llama-70b --gpus 4 \
          --offload auto --batch $((4 - 2 * norm)) --seq 4096 --steps 3 --max_grad_norm "$norm" || return 1
      done
      ;;
    faults)
      limited 900 cmake --build "$build" --target examples_tests finetune finetune_llama &&
        python3 bench/record.py gpu_faults tests/faults/table.py --build "$build" \
          --gpus "$(nvidia-smi -L | grep -c ^GPU)" --jobs 6 --json
      ;;
    memcheck) sanitized memcheck 120 ;;
    racecheck) sanitized racecheck 300 ;;
    initcheck) sanitized initcheck 120 ;;
    synccheck) sanitized synccheck 120 ;;
    train_8_layers) train "$1" 180 --layers 8 --batch 4 --seq 2048 --steps 8 ;;
    train_32_layers) train "$1" 300 --batch 4 --seq 2048 --steps 4 ;;
    train_accumulated) train "$1" 300 --batch 2 --seq 2048 --accumulation 8 --steps 3 ;;
    train_8192) train "$1" 300 --batch 1 --seq 8192 --steps 4 ;;
    train_32768) train "$1" 300 --batch 1 --seq 32768 --steps 3 ;;
    offload_8_layers)
      several "$1" 300 \
        '--shape llama-8b --batch 4 --seq 2048 --layers 8 --steps 8 --recompute every_block --ratio .9 --device_updated_share 0' \
        '--offload super --max_grad_norm 1000' '--offload super --max_grad_norm 1000 --speculation off' \
        '--offload super --max_grad_norm 1e-4 --acceptance 0' \
        '--offload super --max_grad_norm 1e-4 --acceptance 0 --speculation on' \
        '--offload zero --max_grad_norm 1000'
      ;;
    offload_32_layers)
      local all='--shape llama-8b --batch 4 --seq 2048 --warm_up 5 --steps 4 --recompute every_block --ratio 1'
      all+=' --offload super'
      several offload_32_host 150 "$all" '--device_updated_share 0 --max_grad_norm 1000' &&
        several offload_32_clipped 150 "$all" '--device_updated_share 0 --max_grad_norm 1e-4 --acceptance 0' &&
        several offload_32_streamed 150 "$all" '--max_grad_norm 1000'
      ;;
    offload_largest)
      local all='--shape llama-8b --batch 1 --seq 2048 --warm_up 4 --steps 3 --offload auto'
      several "${1}_clipped" 240 "$all" '--layers 81 --max_grad_norm 1' &&
        several "${1}_immediate" 240 "$all" '--layers 87 --max_grad_norm 0'
      ;;
    offload_planned) train "$1" 120 --batch 4 --seq 2048 --steps 6 --offload auto ;;
    offload_14b)
      measured "$1" 150 "$build/bin/bench_train" --device cuda --dtype bf16 --shape qwen3-14b --batch 4 --seq 2048 \
        --warm_up 5 --steps 4 --offload auto --max_grad_norm 1
      ;;
    models_1_gpu)
      # Of gpt-oss, the shape that 125 GiB of host memory allow.
      models 1 llama-8b:4x4096 phi-4:4x4096 qwen3-14b:4x4096 gpt-oss-20b:1x8192
      ;;
    models_2_gpus) models 2 seed-oss-36b:4x4096 qwen3-30b-a3b:4x4096 gpt-oss-20b:4x8192 ;;
    kernels) measured "$1" 420 "$build/bin/cuda_bench" ;;
    attention) measured "$1" 420 "$build/bin/attention_bench" ;;
  esac
}

if ! nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader && [[ ${stages[*]} != build ]]; then
  say "no NVIDIA GPU was found (nvidia-smi): only the stage build is possible"  # tests would be skipped, not passed
  exit 1
fi
failed=()
for name in "${stages[@]}"; do
  say "$name"
  stage "$name" || failed+=("$name")
done
if ((${#failed[@]} > 0)); then
  say "FAILED: ${failed[*]}"
  exit 1
fi
say "all passed: ${stages[*]}"
