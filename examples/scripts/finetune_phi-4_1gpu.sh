#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
# microsoft/phi-4 on one GPU.
# shellcheck disable=SC2034
architecture=phi3 model=microsoft/phi-4 gpus=1 max_length=4096 ratio=0.90 bucket=4e8
# shellcheck source=examples/scripts/finetune.sh
source "$(dirname "${BASH_SOURCE[0]}")/finetune.sh"
