// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Runs that are interrupted, and go on on as many ranks or on others. Ranks are threads of this process.
#include <superoffload/comm/shared.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/zero/offloaded_or_sharded.hpp>

#include "comm/groups.hpp"
#include "support/engine_cores.hpp"
#include "support/resumed_training.hpp"

#include <algorithm>

namespace {

using namespace superoffload;
using namespace superoffload::test::resumed;

struct threads {
  using groups = test::threads_of_a_process;
  template <class P>
  using engine = train::engine<model::llama, P, zero::offloaded_or_sharded<comm::shared>, offload::super>;
};

TEST_CASE("a run that was interrupted after any step ends with the bits of one that was not") {
  constexpr std::int64_t steps = test::under_sanitizer ? 8 : 20;
  std::int64_t const stride = test::under_sanitizer ? steps - 1 : test::in_long_tests(1, 6);
  for (int const ranks : test::under_sanitizer ? std::vector{2} : std::vector{1, 2, 4}) {
    check_every_step<threads, precision::fp32>(ranks, {.name = "float32"}, steps, stride);
    check_every_step<threads, precision::bf16>(
        ranks, {.name = "bf16, off the device", .offload = offload::mode::super}, steps, stride);
  }
  for (int const ranks : test::under_sanitizer ? std::vector<int>{} : std::vector{1, 2}) {
    for (auto const format : {state_format::bf16, state_format::int8}) {
      check_every_step<threads, precision::bf16>(
          ranks, {.name = "state of fewer bytes", .offload = offload::mode::super, .format = format}, steps,
          stride);
    }
  }
}

TEST_CASE("state that some ranks wrote is the same bits on any others") {
  auto const numbers = test::under_sanitizer ? std::vector{1, 2} : std::vector{1, 2, 4};
  auto const from_all = test::in_long_tests(variants.size(), std::size_t{1});
  for (std::size_t i = 0; i < variants.size(); ++i) {
    if (test::under_sanitizer && variants[i].is_part) {
      continue;
    }
    for (int const writers : numbers) {
      if (i >= from_all && writers != numbers[i % numbers.size()]) {
        continue;
      }
      auto readers = numbers;
      if (test::under_sanitizer || i >= from_all) {
        std::erase(readers, writers);
      }
      check_state_moves<threads>(variants[i], writers, readers);
    }
  }
}

TEST_CASE("a checkpoint takes no more bytes than its format of state needs") {
  double bytes_of[3] = {};
  for (auto const format : state_formats) {
    CAPTURE(name_of(format));
    test::scratch_directory const output;
    auto o = options(output.path(), 2, {.name = "sizes", .format = format});
    o.save_steps = 2;
    std::uint64_t parameters = 0, most = 0;
    std::size_t fields = 0;
    threads::groups groups;
    groups.settings.piece_bytes = 1U << 18;
    conformance::all_succeeded(groups.run(1, [&](auto& device, auto& group) {
      using engine = threads::engine<precision::bf16>;
      train::trainer<engine> trainer{device, o, &group};
      (void)trainer.run();
      for (auto const& unit : trainer.engine().model().units()) {
        parameters += static_cast<std::uint64_t>(unit.elements());
      }
      for (auto const& field : trainer.engine().state_fields()) {
        most += train::saved_bytes<typename engine::core_type>(field, format);
        ++fields;
      }
    }));
    auto const bytes = std::filesystem::file_size(output.path() / "checkpoint-2" / "rank-00000.bin");
    CHECK(bytes <= most + 4096 * fields);  // each begins at a multiple
    auto const usual = format == state_format::float32 ? 12 : format == state_format::bf16 ? 8 : 7;
    CHECK(most == usual * parameters);
    bytes_of[static_cast<int>(format)] = static_cast<double>(bytes);
  }
  CHECK(bytes_of[1] < 0.75 * bytes_of[0]);
  CHECK(bytes_of[2] < 0.65 * bytes_of[0]);
}

TEST_CASE("a run that goes from 1 rank to 4, to 2 and back to 1 loses no state and no sample") {
  auto const some_variants = test::in_long_tests(variants.size(), std::size_t{2});
  for (std::size_t i = test::under_sanitizer ? some_variants - 1 : 0; i < some_variants; ++i) {
    check_chain<threads>(variants[i], test::under_sanitizer ? std::vector{1, 2} : std::vector{1, 4, 2, 1});
  }
}

}  // namespace
