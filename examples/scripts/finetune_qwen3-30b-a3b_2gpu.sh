#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
# Qwen/Qwen3-30B-A3B on two GPUs.
# shellcheck disable=SC2034
architecture=qwen3_moe model=Qwen/Qwen3-30B-A3B gpus=2 max_length=4096 ratio=0.90 bucket=4e8
# shellcheck source=examples/scripts/finetune.sh
source "$(dirname "${BASH_SOURCE[0]}")/finetune.sh"
