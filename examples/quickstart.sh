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
build release --target finetune_llama

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
"$root/build/release/bin/finetune_llama" \
  --model "$root/examples/models/tiny_llama" \
  --dataset "$root/examples/data/alpaca_en_demo.json" \
  --dataset_percentage 90 \
  --eval_dataset "$root/examples/data/alpaca_held_out.jsonl" \
  --output_dir quickstart-output \
  --max_length 512 \
  --batch_size 8 \
  --num_train_epochs 2 \
  --lr 2e-3 \
  --lr_scheduler cosine \
  --lr_warmup_steps 20 \
  --log_interval 10 \
  --offload super \
  --ratio 0.9 \
  "${again[@]}" \
  "$@"
say "your own rows: docs/getting-started.md"
