// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Short runs on a GPU, of tests that are skipped unless SUPEROFFLOAD_TEST_DEVICE is cuda.
#include "examples/rejection.hpp"

#include <string>
#include <vector>

namespace superoffload::test {

inline doctest::skip const without_gpu{test_device() != "cuda"};

/// Flags, of which later ones replace these.
inline std::vector<std::string> const short_gpu_run{"--max_steps",    "12",       "--batch_size", "4",
                                                    "--max_length",   "64",       "--lr",         "1e-3",
                                                    "--lr_scheduler", "constant", "--save_steps", "4"};

inline outcome train_on_gpu(std::filesystem::path const& output, std::vector<std::string> const& flags) {
  return finetune_run{"llama", joined(short_gpu_run, flags)}.run_in(output);
}

}  // namespace superoffload::test
