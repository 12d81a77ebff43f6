#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
# meta-llama/Llama-3.1-8B on one GPU.
# shellcheck disable=SC2034
architecture=llama model=meta-llama/Llama-3.1-8B gpus=1 max_length=4096 ratio=0.80 bucket=4e8
# shellcheck source=examples/scripts/finetune.sh
source "$(dirname "${BASH_SOURCE[0]}")/finetune.sh"
