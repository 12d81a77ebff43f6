// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/instruction_set.hpp>
#include <superoffload/cpu/kernels.hpp>

#include "conformance/kernels/lab.hpp"
#include "support/sanitizer.hpp"

#include <initializer_list>
#include <optional>

namespace superoffload::cpu {

enum class across_sets { may_differ, same_bits };

/// Runs `check(lab)` for every instruction set of this machine on 1, 2 and 5 threads, or on the given
/// numbers. The number of threads never changes a bit; the set does not either where that is promised. Under
/// sanitizers only the last number is run: work is cut in the same way for all of them. Under
/// ThreadSanitizer only the set in use is run: threads share the same work in all of them.
template <class Check>
void for_every_set(across_sets promise, Check check,
                   std::initializer_list<int> numbers_of_threads = {1, 2, 5}) {
  std::optional<std::uint64_t> of_all;
  auto const before = active_instruction_set();
  for (auto const set : instruction_sets) {
    if (!supported(set) || (test::under_thread_sanitizer && set != before)) {
      continue;
    }
    INFO("instruction set ", std::string{name_of(set)});
    use(set);
    std::optional<std::uint64_t> of_set;
    for (int const threads : numbers_of_threads) {
      if (test::slowed && threads != *(numbers_of_threads.end() - 1)) {
        continue;
      }
      device on{threads};
      conformance::lab<device> lab{on};
      check(lab);
      INFO("threads ", threads);
      CHECK(lab.digest == of_set.value_or(lab.digest));
      of_set = lab.digest;
    }
    if (promise == across_sets::same_bits) {
      CHECK(*of_set == of_all.value_or(*of_set));
      of_all = of_set;
    }
  }
  use(before);
}

}  // namespace superoffload::cpu
