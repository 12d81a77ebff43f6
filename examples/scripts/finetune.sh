# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
# What the scripts beside this file share, which set: architecture, gpus, max_length, ratio and bucket (elements).
# shellcheck shell=bash disable=SC2154
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
name=$(basename "$0" .sh)

usage() {
  cat <<END
Usage: MODEL_DIR=DIR $name.sh superoffload|zerooffload [BATCH] [flags of finetune_$architecture...]

Fine-tunes the model in MODEL_DIR (a Hugging Face directory) on $gpus GPU(s), ten steps of BATCH sequences (default 4) of
$max_length tokens, padded, of the first tenth of DATASET (Alpaca data; default: the bundled sample). The optimizer's state
is in host memory: superoffload updates it alongside the GPU, zerooffload after backward. Further flags override the
script's, such as --max_steps 0 for all of the data. With --dry_run [--hardware FILE] it prints the plan and the command;
a MODEL_DIR with nothing but config.json is enough then, and so is a machine without a GPU.

PROGRAMS is the directory of the programs, default $root/build/release/bin.
Writes beside itself: ${name}_MODE.json (the DeepSpeed configuration), ${name}_MODE.log, ${name}_MODE_output.
END
}

refuse() {
  echo "$name.sh: error: $1" >&2
  exit 2
}

case ${1:-} in
  superoffload | zerooffload) mode=$1 ;;
  -h | --help) usage && exit 0 ;;
  *) usage >&2 && refuse "the mode is '${1:-}', expected superoffload or zerooffload" ;;
esac
shift
batch=4
if [[ ${1:-} =~ ^[0-9]+$ ]]; then
  batch=$1
  shift
fi
((batch > 0 && batch % gpus == 0)) || refuse "the batch is $batch, expected a multiple of the $gpus GPU(s)"
[[ -n ${MODEL_DIR:-} ]] || refuse "MODEL_DIR is not set, expected a Hugging Face directory"
program=${PROGRAMS:-$root/build/release/bin}/finetune_$architecture
[[ -x $program ]] ||
  refuse "$program is missing; build it: cmake --preset release && cmake --build --preset release"

offload='"device": "cpu", "pin_memory": true'
if [[ $mode == superoffload ]]; then
  offload+=", \"ratio\": $ratio, \"super_offload\": true, \"cpuadam_cores_perc\": 0.90"
fi
config=$here/${name}_$mode.json
cat >"$config" <<END
{
  "train_batch_size": $batch,
  "gradient_accumulation_steps": 1,
  "bf16": { "enabled": true },
  "zero_optimization": {
    "stage": 3,
    "overlap_comm": false,
    "reduce_bucket_size": $bucket,
    "sub_group_size": $bucket,
    "offload_optimizer": { $offload }
  },
  "wall_clock_breakdown": true
}
END

output=$here/${name}_${mode}_output
command=("$program" --model "$MODEL_DIR" --dataset "${DATASET:-$root/examples/data/alpaca_en_demo.json}"
  --dataset_percentage 10 --output_dir "$output" --deepspeed_config "$config" --template deepspeed
  --label_mask none --append_eos off --padding max_length --max_length "$max_length" --max_grad_norm 0
  --on_nonfinite stop  # nothing waits for a verdict then: gradients are used up as they come
  --lr 1e-5 --weight_decay 0.01 --max_steps 10 --log_interval 1 --seed 42)
# Runs are not overwritten unasked: what an earlier run of this script has exported is made again, but where it left
# checkpoints the program names the choices.
if [[ -e $output/run.json && " $* " != *" --output"[-_]"dir"* && " $* " != *" --resume"* ]] &&
  ! compgen -G "$output/checkpoint-*" >/dev/null; then
  command+=(--overwrite_output_dir)
fi
if ((gpus > 1)); then
  command+=(--gpus "$gpus")
fi
if [[ " $* " == *" --dry_run "* && " $* " != *" --hardware"* ]] && ! nvidia-smi >/dev/null 2>&1; then
  command+=(--hardware "$root/bench/hardware/gb200.json")  # which all of them fit
fi
command+=("$@")
printf '%q ' "${command[@]}"
printf '\n'
"${command[@]}" 2>&1 | tee "$here/${name}_$mode.log"
