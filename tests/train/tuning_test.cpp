// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Checkpoints contain a device's tuning, and a resumed run loads it before it computes anything.
#include <superoffload/io/json.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/train/trainer.hpp>

#include <doctest/doctest.h>

#include "support/scratch_directory.hpp"
#include "support/short_run.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace {

using namespace superoffload;
namespace fs = std::filesystem;

/// The CPU as a device that makes a choice at its first kernel, unless a choice was loaded.
struct choosy_device : cpu::device {
  struct choices {
    static constexpr std::int64_t most_tokens = 32;
    std::string chosen, from;
    std::string at_settling = "nothing was settled";
    std::int64_t rows = 0, rows_at_settling = 0;  ///< of the largest batch whose tokens were embedded
    [[nodiscard]] std::string save() const { return chosen; }
    void load(std::string_view text, std::string_view source) {
      expect(text != "broken", exit_code::bad_input, source, ": expected what this device writes");
      chosen = text;
      from = source;
    }
    void settle(bool settled) {
      if (settled) {
        at_settling = chosen;
        rows_at_settling = rows;
      }
    }
  };
  struct stream : cpu::stream {
    explicit stream(choosy_device& device) : cpu::stream{device}, device_{&device} {}
    template <class Arguments>
    friend void launch(stream& on, Arguments const& arguments) {
      if (on.device_->made.chosen.empty()) {
        on.device_->made.chosen = on.device_->prefers;
      }
      if constexpr (std::is_same_v<Arguments, kernel::embedding_forward<float>>) {
        on.device_->made.rows = std::max(on.device_->made.rows, arguments.rows);
      }
      launch(static_cast<cpu::stream&>(on), arguments);
    }

  private:
    choosy_device* device_;
  };

  explicit choosy_device(std::string preferred) : cpu::device{1}, prefers{std::move(preferred)} {}
  choices& tuning() { return made; }

  std::string prefers;
  choices made;
};
static_assert(tuned_device<choosy_device>);
static_assert(!tuned_device<cpu::device>);

template <class Device>
train::run_summary run(Device& device, fs::path const& output, std::int64_t steps, bool resumes) {
  auto o = test::short_run(output, steps);
  o.metrics = output / "metrics.jsonl";
  o.save_steps = 1;
  o.resume = resumes ? "auto" : "";
  return train::trainer<train::engine<model::llama, Device>>{device, o}.run();
}

TEST_CASE("choices are made and settled before the first step, and change nothing") {
  test::scratch_directory const scratch, other;
  choosy_device device{"a choice"};
  auto const done = run(device, scratch.path(), 2, false);
  CHECK(device.made.at_settling == "a choice");
  CHECK(device.made.rows_at_settling == device.made.most_tokens);
  CHECK(device.made.rows > device.made.most_tokens);
  cpu::device untuned{1};
  auto const expected = run(untuned, other.path(), 2, false);
  CHECK(done.steps == expected.steps);
  auto const losses = [](fs::path const& of) {
    std::vector<double> all;
    std::ifstream file{of};
    for (std::string line; std::getline(file, line);) {
      auto const step = io::parse_json(line, "metrics");
      if (step.contains("loss")) {
        all.push_back(step["loss"].get<double>());
      }
    }
    return all;
  };
  auto const found = losses(scratch.path() / "metrics.jsonl"), was = losses(other.path() / "metrics.jsonl");
  REQUIRE(found.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) { CHECK(found[i] == doctest::Approx(was[i]).epsilon(1e-4)); }
}

TEST_CASE("a resumed run continues with the device's first choice") {
  test::scratch_directory const scratch;
  choosy_device first{"first choice"};
  auto const saved = run(first, scratch.path(), 1, false).checkpoint;
  choosy_device second{"another choice"};
  CHECK(run(second, scratch.path(), 2, true).steps == 2);
  CHECK(second.made.chosen == "first choice");
  CHECK(second.made.from == saved.string() + ": 'tuning'");
}

TEST_CASE("a checkpoint without tuning is resumed, and one with invalid tuning is passed over") {
  test::scratch_directory const scratch;
  cpu::device untuned{1};
  run(untuned, scratch.path(), 1, false);
  choosy_device device{"a choice"};
  CHECK(run(device, scratch.path(), 2, true).steps == 2);
  CHECK(device.made.chosen == "a choice");
  CHECK(device.made.from.empty());

  choosy_device nonsense{"broken"};
  nonsense.made.chosen = "broken";
  test::scratch_directory const other;
  run(nonsense, other.path(), 1, false);
  choosy_device careful{"a choice"};
  CHECK_THROWS_WITH_AS(run(careful, other.path(), 2, true),
                       doctest::Contains("expected what this device writes"), error);
}

TEST_CASE("a device without tuning resumes from a checkpoint of one with tuning") {
  test::scratch_directory const scratch;
  choosy_device first{"a choice"};
  run(first, scratch.path(), 1, false);
  cpu::device untuned{1};
  CHECK(run(untuned, scratch.path(), 2, true).steps == 2);
}

}  // namespace
