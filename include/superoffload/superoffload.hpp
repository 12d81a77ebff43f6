// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Everything that host code needs. Programs that care for compile time include what they use instead.
// IWYU pragma: begin_exports
#include <superoffload/comm/communicator.hpp>
#include <superoffload/comm/environment.hpp>
#include <superoffload/comm/launcher.hpp>
#include <superoffload/comm/membership.hpp>
#include <superoffload/comm/rendezvous.hpp>
#include <superoffload/comm/shared.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/log.hpp>
#include <superoffload/core/policy.hpp>
#include <superoffload/core/precision.hpp>
#include <superoffload/core/version.hpp>
#include <superoffload/cpu/device.hpp>
#include <superoffload/data/examples.hpp>
#include <superoffload/data/instructions.hpp>
#include <superoffload/data/loader.hpp>
#include <superoffload/io/hub.hpp>
#include <superoffload/io/hub_cache.hpp>
#include <superoffload/io/hub_export.hpp>
#include <superoffload/io/model_directory.hpp>
#include <superoffload/io/train_checkpoint.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/model/gpt_oss.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/model/mistral.hpp>
#include <superoffload/model/phi3.hpp>
#include <superoffload/model/qwen2.hpp>
#include <superoffload/model/qwen3.hpp>
#include <superoffload/model/qwen3_moe.hpp>
#include <superoffload/model/seed_oss.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/optim/adamw.hpp>
#include <superoffload/optim/schedule.hpp>
#include <superoffload/text/prompt.hpp>
#include <superoffload/text/tokenizer.hpp>
#include <superoffload/train/engine.hpp>
#include <superoffload/train/engine/weights.hpp>
#include <superoffload/train/planned_engine.hpp>
#include <superoffload/train/trainer.hpp>
#include <superoffload/zero/offloaded.hpp>
#include <superoffload/zero/offloaded_or_sharded.hpp>
#include <superoffload/zero/sharded.hpp>
// IWYU pragma: end_exports
