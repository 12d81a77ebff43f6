#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

usage() {
  cat <<'END'
Usage: examples/quickstart.sh [finetune_llama's flags...]

Builds the fine-tuner and fine-tunes the bundled small Llama checkpoint on the bundled instructions, on the GPU if there
is one and a CUDA toolkit to build for it, else on the CPU. From a fresh clone on a bare Debian 12 or Ubuntu 24.04:
missing packages are installed with apt when this user may, else the line to run is printed. Nine tenths of the
optimizer's state are kept and updated off the device, as a model that does not fit it would have them: --ratio 0 shows
that the losses are the same. Flags given here are passed on and override the ones below. The result is in
quickstart-output; that of an earlier quickstart there is replaced, unless there are checkpoints to go on from.
END
}

if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  usage
  exit 0
fi

start=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=cmake/bootstrap.sh
source cmake/bootstrap.sh

ensure_build_packages
choose_cuda gpu
build release --target finetune_llama tokenize

say "fine-tuning"
root=$PWD
cd "$start"
# Runs are not overwritten unasked. An earlier quickstart that went to its end has left nothing but its export, which
# this one makes again; where one was interrupted, or saved checkpoints, the program names the choices.
again=()
if [[ -e quickstart-output/run.json && " $* " != *" --output"[-_]"dir"* && " $* " != *" --resume"* ]] &&
  ! compgen -G 'quickstart-output/checkpoint-*' >/dev/null; then
  again=(--overwrite_output_dir)
fi
command=("$root/build/release/bin/finetune_llama")
# default FLAG [VALUE]: unless the user has given the flag, since a flag has one value.
default() {
  local flag
  for flag in "${flags[@]}"; do
    flag=${flag%%=*}
    if [[ ${flag//-/_} == "${1//-/_}" ]]; then return; fi
  done
  command+=("$@")
}
flags=("$@")
default --model "$root/examples/models/tiny_llama"
default --dataset "$root/examples/data/alpaca_en_demo.json"
default --dataset_percentage 90
default --eval_dataset "$root/examples/data/alpaca_held_out.jsonl"
default --output_dir quickstart-output
default --max_length 512
default --batch_size 8
default --num_train_epochs 2
default --lr 2e-3
default --lr_scheduler cosine
default --lr_warmup_steps 20
default --log_interval 10
default --offload super
default --ratio 0.9
"${command[@]}" "${again[@]}" "$@"
say "your own rows: docs/getting-started.md"
