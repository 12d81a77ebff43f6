// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// The configurations of published models give the published numbers of parameters, and FLOPs counted by hand.
#include <superoffload/kernel/attention.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/model/gpt_oss.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/model/mistral.hpp>
#include <superoffload/model/phi3.hpp>
#include <superoffload/model/qwen2.hpp>
#include <superoffload/model/qwen3.hpp>
#include <superoffload/model/qwen3_moe.hpp>
#include <superoffload/model/seed_oss.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>

namespace {

using namespace superoffload;

/// `tensors` and `parameters` of the checkpoint; `multiplied`: parameters by which a token is multiplied.
template <model::architecture A>
void check(char const* name, std::size_t tensors, std::int64_t parameters, std::int64_t multiplied) {
  CAPTURE(name);
  auto const config = model::read_config(std::filesystem::path{SUPEROFFLOAD_TEST_DATA} / "configs" / name);
  A const model{config};
  std::size_t count = 0;
  std::int64_t elements = 0;
  for (auto const& unit : model.units()) {
    for (auto const& tensor : unit.tensors()) {
      ++count;
      elements += tensor.count();
    }
  }
  CHECK(count == tensors);
  CHECK(elements == parameters);
  constexpr std::int64_t length = 4096;
  double pairs = 0.0;  // of all layers; in gpt-oss a token sees at most 128 on every other layer
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    bool const slides = config.model_type == "gpt_oss" && layer % 2 == 0;
    pairs += slides ? 128.0 * 129 / 2 + (length - 128) * 128.0 : length * (length + 1) / 2.0;
  }
  double const attention = 4.0 * static_cast<double>(config.query_columns()) * pairs;
  CHECK(model.forward_flops(length, [](std::int32_t window) {
    return kernel::visible_pairs(length, window);
  }) == doctest::Approx(2.0 * static_cast<double>(multiplied) * length + attention).epsilon(1e-12));
}

TEST_CASE("published models have the published numbers of parameters and FLOPs") {
  check<model::llama>("llama-8b", 291, 8'030'261'248, 7'504'658'432);
  check<model::llama>("llama-70b", 723, 70'553'706'496, 69'501'714'432);
  check<model::mistral>("mistral-7b", 291, 7'241'732'096, 7'110'393'856);
  check<model::phi3>("phi-4", 243, 14'659'507'200, 14'145'290'240);
  check<model::qwen2>("qwen2.5-7b", 339, 7'615'616'512, 7'070'285'824);
  check<model::qwen3>("qwen3-14b", 443, 14'768'307'200, 13'989'969'920);
  check<model::seed_oss>("seed-oss-36b", 771, 36'151'104'512, 35'355'361'280);
  check<model::qwen3_moe>("qwen3-30b-a3b", 18867, 30'532'122'624, 3'041'656'832);
  // Blocks and scales of two tensors a layer are two tensors each in the file.
  check<model::gpt_oss>("gpt-oss-20b", 459 - 2 * 24, 20'914'757'184, 3'607'142'400);
}

TEST_CASE("pairs of a query and a key in a window") {
  CHECK(kernel::visible_pairs(5, 0) == 15);
  CHECK(kernel::visible_pairs(5, 5) == 15);
  CHECK(kernel::visible_pairs(5, 9) == 15);
  CHECK(kernel::visible_pairs(5, 2) == 9);
  CHECK(kernel::visible_pairs(5, 1) == 5);
  CHECK(kernel::visible_pairs(0, 3) == 0);
}

}  // namespace
