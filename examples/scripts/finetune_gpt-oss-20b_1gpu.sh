#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
# openai/gpt-oss-20b on one GPU.
# shellcheck disable=SC2034
architecture=gpt_oss model=openai/gpt-oss-20b gpus=1 max_length=8192 ratio=0.90 bucket=8e8
# shellcheck source=examples/scripts/finetune.sh
source "$(dirname "${BASH_SOURCE[0]}")/finetune.sh"
