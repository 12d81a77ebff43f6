// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// A device is lost in the middle of a run, at each wait of the host for it. The run ends with the exit code
// for it and names the last checkpoint, from which another run continues bit for bit.
#include <superoffload/io/hub.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/train/trainer.hpp>

#include <doctest/doctest.h>

#include "support/sanitizer.hpp"
#include "support/scratch_directory.hpp"
#include "support/short_run.hpp"

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

namespace {

using namespace superoffload;
namespace fs = std::filesystem;

/// The CPU as a device that is lost after a number of waits.
struct fragile_device : cpu::device {
  class stream : public cpu::stream {
  public:
    explicit stream(fragile_device& device) : cpu::stream{device}, device_{&device} {}
    void synchronize() {
      cpu::stream::synchronize();  // a lost device works no more: nothing runs after the loss
      if (device_->waits.fetch_sub(1) <= 0) {
        device_->waits = 0;
        fail(exit_code::device_lost, "the device is lost");
      }
    }

  private:
    fragile_device* device_;
  };

  explicit fragile_device(int waits_until_lost) : cpu::device{1}, waits{waits_until_lost} {}
  std::atomic<int> waits;  // threads that load weights wait, too
};
static_assert(device_policy<fragile_device>);

using engine = train::engine<model::llama, fragile_device, precision::bf16>;

train::training_options options(fs::path const& output, bool resumes) {
  auto o = test::short_run(output, 4);
  o.lr = 1e-3;
  o.save_steps = 1;
  o.offload.hardware = fs::path{SUPEROFFLOAD_HARDWARE} / "h200_pcie5.json";  // measures nothing
  o.resume = resumes ? "auto" : "";
  return o;
}

std::vector<float> exported_weights(fs::path const& model) {
  auto const exported = io::hub_checkpoint::open(model);
  std::vector<float> all;
  for (auto const& name : exported.names()) {
    std::size_t count = 1;
    for (auto const extent : exported.find(name)->shape) { count *= static_cast<std::size_t>(extent); }
    std::vector<float> values(count);
    exported.read(name, 0, values);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST_CASE(
    "a device lost anywhere in a run ends it, and a run from the last checkpoint continues bit for bit") {
  constexpr int plenty = 1'000'000;
  test::scratch_directory const whole;
  fragile_device sound{plenty};
  train::trainer<engine>{sound, options(whole.path(), false)}.run();
  int const waits = plenty - sound.waits;
  auto const expected = exported_weights(whole.path() / "model");
  REQUIRE(waits > 50);

  // The last wait is the engine's destructor's, after the run: nothing is lost.
  int named = 0;
  for (int lost_after = 3; lost_after + 1 < waits; lost_after += test::under_sanitizer ? 23 : 7) {
    CAPTURE(lost_after);
    test::scratch_directory const output;
    fragile_device device{lost_after};
    std::string message;
    try {
      train::trainer<engine>{device, options(output.path(), false)}.run();
      FAIL("the run did not notice");
    } catch (error const& e) {
      CHECK(e.code() == exit_code::device_lost);
      message = e.what();
    }
    CHECK(message.starts_with("the device is lost"));
    auto const newest = io::newest_checkpoint(output.path(), [](std::string const& why) { FAIL(why); });
    if (newest) {
      ++named;
      CHECK(message.ends_with("the last checkpoint is " + newest->directory().string() +
                              ", --resume goes on from it"));
    } else {
      CHECK(message.ends_with("there is no checkpoint"));
    }
    fragile_device other{plenty};
    train::trainer<engine>{other, options(output.path(), true)}.run();
    CHECK(exported_weights(output.path() / "model") == expected);
  }
  CHECK(named > 3);
}

}  // namespace
