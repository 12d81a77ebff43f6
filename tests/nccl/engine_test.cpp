// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Engines of ranks with a GPU each, against one engine on one GPU.
#include <superoffload/comm/single.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/nccl/communicator.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/train/engine.hpp>
#include <superoffload/zero/offloaded_or_sharded.hpp>
#include <superoffload/zero/sharded.hpp>

#include <doctest/doctest.h>

#include "nccl/groups.hpp"
#include "support/fault_case.hpp"
#include "support/ranked_training.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>

namespace {

using namespace superoffload;
using conformance::require;
namespace ranked = test::ranked;

template <class P>
ranked::record resident(cuda::device& device, ranked::settings const& s) {
  train::engine<model::llama, cuda::device, P> e{device, ranked::config_of(s.tied, s.layers),
                                                 ranked::options_of(s)};
  return ranked::train(e, s, 0, 1);
}

template <class P, class Offload = offload::none>
ranked::record sharded(cuda::device& device, nccl::communicator& group, ranked::settings const& s) {
  train::engine<model::llama, cuda::device, P, zero::sharded<nccl::gpus>, Offload> e{
      device, group, ranked::config_of(s.tied, s.layers), ranked::options_of(s)};
  e.configure(ranked::configuration_of(e, s, group.rank()), std::numeric_limits<std::size_t>::max());
  comm::abort_on_exception const guard{group};
  return ranked::train(e, s, group.rank(), group.ranks());
}

/// In the immediate mode, with gradients that take turns in so many buffers; 0: they stay.
template <class P>
ranked::record offloading(cuda::device& device, nccl::communicator& group, ranked::settings const& s,
                          int buffers) {
  train::engine<model::llama, cuda::device, P, zero::offloaded_or_sharded<nccl::gpus>, offload::super> e{
      device, group, ranked::config_of(s.tied, s.layers), ranked::options_of(s)};
  offload::configuration a;
  a.buckets = ranked::mixed(e.units_of_state(), group.rank());
  a.immediate = true;
  if (buffers > 0) {
    a.offloaded.gradients.assign(e.model().units().size(), true);
    a.offloaded.gradient_buffers = buffers;
  }
  e.configure(std::move(a), std::numeric_limits<std::size_t>::max());
  comm::abort_on_exception const guard{group};
  return ranked::train(e, s, group.rank(), group.ranks());
}

/// Both have the same bits; else the message says where they differ first.
template <class... What>
void require_same(ranked::record const& a, ranked::record const& b, What const&... what) {
  auto const differs = ranked::difference(a, b);
  require(differs.empty() && a == b, what..., ": ", differs);
}

ranked::settings const cases[] = {{},
                                  {.tied = true, .micro_batches = 2},
                                  {.micro_batches = 3, .recompute = recompute::choice::every_block},
                                  {.max_grad_norm = 0.0, .speculates = false}};

TEST_SUITE("one_gpu") {
  TEST_CASE_TEMPLATE("one rank gives the bits of no ranks on a GPU", P, precision::fp32, precision::bf16) {
    test::gpu_processes groups;
    conformance::all_succeeded(groups.run(1, [](auto& device, auto& group) {
      for (bool const tied : {false, true}) {
        ranked::settings const s{.tied = tied};
        auto const expected = resident<P>(device, s);
        require_same(sharded<P>(device, group, s), expected, "tied ", tied);
        require_same(sharded<P, offload::super>(device, group, s), expected, "offload, tied ", tied);
      }
    }));
  }
}

/// on_rank(device, group) on every rank of two GPUs and more.
template <class Test>
void on_gpus(Test const& on_rank) {
  test::gpu_processes groups;
  groups.settings.piece_bytes = 1U << 18;
  for (int ranks = 2; ranks <= test::gpus(); ++ranks) {
    CAPTURE(ranks);
    conformance::all_succeeded(groups.run(ranks, on_rank));
  }
}

TEST_SUITE("gpus") {
  TEST_CASE_TEMPLATE("ranks with a GPU each train as one does, and repeat bit for bit", P, precision::fp32,
                     precision::bf16) {
    on_gpus([](auto& device, auto& group) {
      double const tolerance = std::is_same_v<P, precision::fp32> ? 2e-5 : 2e-3;
      for (auto const& s : cases) {
        auto const one = resident<P>(device, s);
        auto const all = sharded<P>(device, group, s);
        auto const losses = ranked::worst(all.losses, one.losses);
        auto const norms = ranked::worst(all.norms, one.norms);
        require(losses < tolerance && norms < 20 * tolerance, "losses differ by ", losses, ", norms by ",
                norms, " with ", s.micro_batches, " micro-batches");
        require_same(sharded<P>(device, group, s), all, "the same run gave other bits");
        require_same(sharded<P, offload::super>(device, group, s), all, "offload gave other bits");
      }
    });
  }

  TEST_CASE_TEMPLATE("ranks with a GPU each share micro-batches, and repeat bit for bit", P, precision::fp32,
                     precision::bf16) {
    on_gpus([](auto& device, auto& group) {
      if (group.ranks() % 2 != 0) {
        return;
      }
      double const tolerance = std::is_same_v<P, precision::fp32> ? 2e-5 : 2e-3;
      for (ranked::settings s : {ranked::settings{}, ranked::settings{.tied = true, .micro_batches = 2}}) {
        auto const one = resident<P>(device, s);
        s.sequence_ranks = 2;
        auto const all = sharded<P>(device, group, s);
        auto const losses = ranked::worst(all.losses, one.losses);
        require(losses < tolerance, "losses differ by ", losses, " with ", s.micro_batches, " micro-batches");
        s.recompute = recompute::choice::every_block;
        require_same(sharded<P, offload::super>(device, group, s), all, "recompute gave other bits");
      }
    });
  }

  TEST_CASE_TEMPLATE("gradients that leave ranks' GPUs as they come change no bit", P, precision::fp32,
                     precision::bf16) {
    on_gpus([](auto& device, auto& group) {
      for (bool const tied : {false, true}) {
        ranked::settings const s{.tied = tied, .immediate = true, .layers = 6};
        auto const stays = offloading<P>(device, group, s, 0);
        for (int const buffers : {1, 3}) {
          require_same(offloading<P>(device, group, s, buffers), stays, "tied ", tied, ", ", buffers,
                       " gather buffers");
        }
      }
    });
  }

  TEST_CASE_TEMPLATE("whole weights that stay on ranks' GPUs from forward to backward change no bit", P,
                     precision::fp32, precision::bf16) {
    on_gpus([](auto& device, auto& group) {
      for (bool const tied : {false, true}) {
        ranked::settings s{.tied = tied, .micro_batches = tied ? 2 : 1, .layers = 6};
        auto const expected = sharded<P>(device, group, s);
        for (int const buffers : {5, 99}) {
          s.weight_buffers = buffers;
          require_same(sharded<P>(device, group, s), expected, "tied ", tied, ", ", buffers,
                       " gather buffers");
          require_same(sharded<P, offload::super>(device, group, s), expected, "tied ", tied, ", ", buffers,
                       " gather buffers, offload");
        }
      }
    });
  }

  TEST_CASE_TEMPLATE("a gradient that overflows on one rank's GPU alone leaves nothing behind on any", P,
                     precision::fp32, precision::bf16) {
    for (int rank = 0; rank < test::gpus(); ++rank) {
      CAPTURE(rank);
      test::fault_case const overflow{"F12"};
      on_gpus([rank](auto& device, auto& group) {
        if (rank >= group.ranks()) {
          return;
        }
        for (double const max_grad_norm : {1.0, 1e6}) {
          ranked::settings const none{.micro_batches = 2, .max_grad_norm = max_grad_norm};
          auto some = none;
          some.overflows_on = rank;
          auto const expected = sharded<P>(device, group, none);
          require_same(sharded<P>(device, group, some), expected, "it changed something");
          require_same(sharded<P, offload::super>(device, group, some), expected,
                       "it changed something of offloaded state");
        }
      });
    }
  }

  TEST_CASE("threads with a GPU each train as processes do") {
    ranked::settings const s{.tied = true, .micro_batches = 2};
    test::gpu_threads groups;
    conformance::all_succeeded(groups.run(2, [s](auto& device, auto& group) {
      auto const losses = ranked::worst(sharded<precision::bf16>(device, group, s).losses,
                                        resident<precision::bf16>(device, s).losses);
      require(losses < 2e-3, "losses differ by ", losses);
    }));
  }
}

}  // namespace
