#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
#
# Makes examples/models/tiny_llama and examples/data/alpaca_held_out.jsonl anew: a tokenizer and random weights from
# make_tiny_llama.py, pre-trained with the project's own fine-tuner on the plain text of the training rows (the first
# 90 %; the held-out ones are only measured). A minute or two on 2 idle cores; needs build/release/bin/finetune_llama,
# or another one named as the only argument.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

finetune=${1:-build/release/bin/finetune_llama}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

python3 examples/models/make_tiny_llama.py "$scratch/random" --held_out examples/data/alpaca_held_out.jsonl
"$finetune" \
  --model "$scratch/random" \
  --dataset examples/data/alpaca_en_demo.json --dataset_percentage 90 \
  --eval_dataset examples/data/alpaca_held_out.jsonl \
  --output_dir "$scratch/pretrained" \
  --template deepspeed --label_mask none --packing on --max_length 512 \
  --batch_size 4 --num_train_epochs 4 --eval_steps 110 \
  --lr 3e-3 --lr_scheduler linear --lr_warmup_steps 20 --weight_decay 0.1 --no_decay norms_and_biases

rm -rf examples/models/tiny_llama
cp -r "$scratch/pretrained/model" examples/models/tiny_llama
