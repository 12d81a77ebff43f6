# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
# What the scripts beside this file share, which set: architecture, model (its name on the hub), gpus, max_length, ratio and
# bucket (elements).
# shellcheck shell=bash disable=SC2154
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
name=$(basename "$0" .sh)

usage() {
  cat <<END
Usage: $name.sh superoffload|zerooffload [BATCH] [--bench] [flags of finetune_$architecture...]

Fine-tunes $model on $gpus GPU(s) in steps of BATCH sequences (default 4) of up to $max_length tokens: one epoch
over all of the data, with an evaluation before and after, checkpoints, and an export at the end. The same command goes on
after an interruption. The optimizer's state is in host memory: superoffload updates it alongside the GPU, zerooffload after
backward. Further flags replace the script's, such as --num_train_epochs 3. With --device cpu the ranks share the CPU. With
--dry_run [--hardware FILE] it prints the plan and the command; a model with nothing but config.json is enough then, and so is
a machine without a GPU.

--bench measures instead, as DeepSpeed's example does: ten steps on the first tenth of the data, padded to $max_length
tokens, all of them learnt, without clipping, evaluation and export.

Environment:
  MODEL_DIR     the model's Hugging Face directory; default: the copy of $model that the hub's tools
                have downloaded
  DATASET       the data; default: nine tenths of the bundled sample in Alpaca's format
  EVAL_DATASET  held-out data; default: none beside DATASET, otherwise the rest of the sample
  PROGRAMS      the directory of the programs; default: $root/build/release/bin

Writes beside itself: ${name}_MODE.json (the DeepSpeed configuration), ${name}_MODE.log, ${name}_MODE_output; with --bench
${name}_MODE_bench.json and so on.
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
program=${PROGRAMS:-$root/build/release/bin}/finetune_$architecture
[[ -x $program ]] ||
  refuse "$program is missing; build it: cmake --preset release && cmake --build --preset release"

bench=''
flags=()
for flag in "$@"; do
  if [[ $flag == --bench ]]; then bench=_bench; else flags+=("$flag"); fi
done
# given FLAG: is it among the user's flags, with dashes or underscores?
given() {
  local flag
  for flag in "${flags[@]}"; do
    flag=${flag%%=*}
    if [[ ${flag//-/_} == "${1//-/_}" ]]; then return 0; fi
  done
  return 1
}
# default FLAG [VALUE]: unless the user has given the flag, since a flag has one value.
default() {
  given "$1" || command+=("$@")
}

offload='"device": "cpu", "pin_memory": true'
if [[ $mode == superoffload ]]; then
  offload+=", \"ratio\": $ratio, \"super_offload\": true, \"cpuadam_cores_perc\": 0.90"
fi
more=''
if [[ $bench ]]; then
  given --max_grad_norm || more+=$'\n  "gradient_clipping": 0.0,'
  more+=$'\n  "wall_clock_breakdown": true,'
else
  given --max_grad_norm || more+=$'\n  "gradient_clipping": 1.0,'
fi
config=$here/${name}_$mode$bench.json
cat >"$config" <<END
{
  "train_batch_size": $batch,
  "gradient_accumulation_steps": 1,
  "bf16": { "enabled": true },$more
  "zero_optimization": {
    "stage": 3,
    "overlap_comm": false,
    "reduce_bucket_size": $bucket,
    "sub_group_size": $bucket,
    "offload_optimizer": { $offload }
  }
}
END

output=$here/${name}_$mode${bench}_output
sample=$root/examples/data
command=("$program" --deepspeed_config "$config")
default --model "${MODEL_DIR:-$model}"
default --dataset "${DATASET:-$sample/alpaca_en_demo.json}"
default --output_dir "$output"
default --max_length "$max_length"
default --lr 1e-5
default --weight_decay 0.01
default --seed 42
if [[ $bench ]]; then
  default --dataset_percentage 10
  default --template deepspeed
  default --label_mask none
  default --append_eos off
  default --padding max_length
  default --learn_padding on
  default --on_nonfinite stop # nothing waits for a verdict then: gradients are used up as they come
  default --max_steps 10
  default --log_interval 1
  # Runs are not overwritten unasked: what an earlier benchmark left is removed, but where there are checkpoints the program
  # names the choices.
  if [[ -e $output/run.json ]] && ! given --output_dir && ! given --resume && ! given --overwrite_output_dir &&
    ! compgen -G "$output/checkpoint-*" >/dev/null; then
    command+=(--overwrite_output_dir)
  fi
else
  if [[ -z ${DATASET:-} ]] && ! given --dataset; then
    default --dataset_percentage 90
    EVAL_DATASET=${EVAL_DATASET:-$sample/alpaca_held_out.jsonl}
  fi
  if [[ ${EVAL_DATASET:-} ]]; then default --eval_dataset "$EVAL_DATASET"; fi
  default --lr_scheduler cosine
  default --lr_warmup_ratio 0.05
  default --num_train_epochs 1
  default --log_interval 10
  default --save_steps 500
  default --save_total_limit 1
  given --overwrite_output_dir || default --resume auto
  default --export on
fi
if [[ " ${flags[*]} " == *" --device cpu "* || " ${flags[*]} " == *" --device=cpu "* ]]; then
  if ((gpus > 1)); then default --ranks "$gpus"; fi
elif ((gpus > 1)); then
  default --gpus "$gpus"
fi
if given --dry_run && ! given --hardware && ! nvidia-smi >/dev/null 2>&1; then
  command+=(--hardware "$root/bench/hardware/gb200.json") # which all of them fit
fi
command+=("${flags[@]}")
printf '%q ' "${command[@]}"
printf '\n'
"${command[@]}" 2>&1 | tee "$here/${name}_$mode$bench.log"
