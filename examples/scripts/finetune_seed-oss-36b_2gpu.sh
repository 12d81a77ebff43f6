#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
# ByteDance-Seed/Seed-OSS-36B-Instruct on two GPUs.
# shellcheck disable=SC2034
architecture=seed_oss model=ByteDance-Seed/Seed-OSS-36B-Instruct gpus=2 max_length=4096 ratio=0.90 bucket=4e8
# shellcheck source=examples/scripts/finetune.sh
source "$(dirname "${BASH_SOURCE[0]}")/finetune.sh"
