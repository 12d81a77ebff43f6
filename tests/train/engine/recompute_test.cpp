// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/train/engine/recompute.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace {

using namespace superoffload;

/// Two blocks, each with a norm that is cheap to recompute, a GEMM that is not, and the result.
std::vector<autograd::activation> const activations{
    {.unit = 1, .index = 0, .bytes = 100, .recompute = {.bytes = 200}},
    {.unit = 1, .index = 1, .bytes = 400, .recompute = {.flops = 400000}},
    {.unit = 1, .index = 2, .bytes = 50, .recompute = {.flops = 100000}, .result = true},
    {.unit = 2, .index = 0, .bytes = 100, .recompute = {.bytes = 200}},
    {.unit = 2, .index = 1, .bytes = 400, .recompute = {.flops = 400000}},
    {.unit = 2, .index = 2, .bytes = 50, .recompute = {.flops = 100000}, .result = true},
};

std::size_t kept_bytes(autograd::activation_checkpointing const& r) {
  std::size_t bytes = 0;
  for (auto const& a : activations) { bytes += r.keeps(a.unit, a.index) ? a.bytes : 0; }
  return bytes;
}

TEST_CASE("activation checkpointing keeps everything by default, and the result of a block always") {
  autograd::activation_checkpointing r;
  CHECK(r.keeps(7, 3));
  r = recompute::inputs_only(activations);
  CHECK(kept_bytes(r) == 100);
  r.keep(activations[1]);
  CHECK(r.keeps(1, 1));
  CHECK_FALSE(r.keeps(2, 1));
}

TEST_CASE("activations with the most recompute work for their size are kept first, as many as fit") {
  auto const kept = [](std::size_t budget) { return recompute::fit(activations, 100.0, budget, kept_bytes); };
  CHECK(kept_bytes(kept(0)) == 100);
  CHECK(kept_bytes(kept(499)) == 100);
  CHECK(kept_bytes(kept(899)) == 500);
  CHECK(kept(899).keeps(2, 1));
  CHECK(kept_bytes(kept(900)) == 900);
  CHECK_FALSE(kept(999).keeps(2, 0));
  CHECK(kept_bytes(kept(1000)) == 1000);
  CHECK(kept_bytes(kept(5000)) == 1100);
}

TEST_CASE("blocks that take turns in buffers keep the same functions, with the most work for their size") {
  CHECK(recompute::most_kept(activations) == 2);
  auto const offloaded = [](int buffers, int kept) {
    return recompute::offloaded(activations, 100.0, {buffers, kept});
  };
  auto const inputs = offloaded(2, 0);
  CHECK(kept_bytes(inputs) == 100);
  CHECK(inputs.buffers().bytes == 50);
  CHECK(inputs.buffers().blocks == 2);
  auto const one = offloaded(2, 1);
  CHECK(kept_bytes(one) == 900);
  CHECK(one.keeps(1, 1));
  CHECK_FALSE(one.keeps(1, 0));
  CHECK(one.buffers().bytes == 450);
  CHECK(kept_bytes(offloaded(2, 2)) == 1100);
  CHECK(kept_bytes(offloaded(2, -1)) == 1100);
}

TEST_CASE("the first blocks leave the device, and none with as many buffers as blocks") {
  std::vector<autograd::activation> blocks;
  for (int unit = 1; unit <= 6; ++unit) {
    blocks.push_back(
        {.unit = unit, .index = 0, .bytes = static_cast<std::size_t>(10 * unit), .result = true});
  }
  auto const offloaded = [&](int buffers) {
    return recompute::offloaded(blocks, 100.0, {buffers, 0}).buffers();
  };
  CHECK(offloaded(3).count == 3);
  CHECK(offloaded(3).bytes == 60);
  CHECK(offloaded(3).leaving() == 3);
  CHECK(offloaded(3).host_bytes() == 180);
  CHECK(offloaded(0).count == 2);  // a backward reads the result of the block before
  CHECK(offloaded(9).count == 6);
  CHECK(offloaded(9).host_bytes() == 0);
}

}  // namespace
