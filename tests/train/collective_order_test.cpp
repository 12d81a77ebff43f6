// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// The collectives of a plan are those that an engine queues, in the same order.
#include <superoffload/comm/single.hpp>
#include <superoffload/cpu/device.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/train/engine.hpp>
#include <superoffload/train/planning/step_workload.hpp>
#include <superoffload/zero/sharded.hpp>

#include <doctest/doctest.h>

#include "comm/groups.hpp"
#include "conformance/communicator.hpp"
#include "support/engine_cores.hpp"
#include "support/precisions.hpp"
#include "support/ranked_training.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace superoffload;

/// One rank that records its collectives: addresses of shards, and bytes.
template <class D>
class writing_communicator : public comm::single_communicator<D> {
public:
  using base = comm::single_communicator<D>;
  struct entry {
    bool gathers;
    void const* shard;
    std::size_t bytes;
  };
  std::vector<entry> written;

  using base::queue;
  void queue(typename D::stream& on, comm::all_gather const& a) {
    written.push_back({true, a.from, a.bytes});
    base::queue(on, a);
  }
  template <element From, element To>
  void queue(typename D::stream& on, comm::reduce_scatter<From, To> const& a) {
    written.push_back({false, a.to, static_cast<std::size_t>(a.count) * sizeof(From)});
    base::queue(on, a);
  }
};
struct writing {
  template <device_policy D>
  using communicator = writing_communicator<D>;
};

/// One of several ranks, which writes down its collectives: what, among whom, and bytes that it sends.
template <class D>
class noting_communicator {
public:
  explicit noting_communicator(test::group_of_host& group) : group_{&group} {}
  std::vector<std::string> written;

  [[nodiscard]] int rank() const { return group_->rank(); }
  [[nodiscard]] int ranks() const { return group_->ranks(); }
  template <class Operation>
  void queue(typename D::stream& on, Operation const& a) {
    group_->queue(on, a);
  }
  void queue(typename D::stream& on, comm::all_gather const& a) {
    note("g", a.among, static_cast<std::size_t>(a.runs) * a.bytes);
    group_->queue(on, a);
  }
  template <element From, element To>
  void queue(typename D::stream& on, comm::reduce_scatter<From, To> const& a) {
    note("r", a.among, static_cast<std::size_t>(a.runs * a.count) * sizeof(From));
    group_->queue(on, a);
  }
  template <element From, element To>
  [[nodiscard]] std::size_t scratch_bytes(comm::reduce_scatter<From, To> const& a) const {
    return group_->scratch_bytes(a);
  }
  void gather(void const* from, void* to, std::size_t bytes) { group_->gather(from, to, bytes); }
  void barrier() { group_->barrier(); }
  void abort(std::string_view reason) noexcept { group_->abort(reason); }
  void check() const { group_->check(); }

private:
  void note(char const* what, comm::division const& among, std::size_t bytes) {
    auto const members = static_cast<std::size_t>(among.of(rank(), ranks()).number);
    written.push_back(text_of(what, among, (members - 1) * bytes));
  }

  test::group_of_host* group_;

public:
  static std::string text_of(char const* what, comm::division const& among, std::size_t bytes) {
    return concat(what, among.neighbours, among.counterparts ? " counterparts " : " neighbours ", bytes);
  }
};
struct noting {
  template <device_policy D>
  using communicator = noting_communicator<D>;
};

/// For example "g0 128": unit 0 is gathered, 128 bytes. Units are identified by their shards' addresses,
/// which have the units' order.
template <class Entries>
std::vector<std::string> words_of(Entries const& all, std::vector<int> const& trained) {
  std::map<void const*, int> weights, gradients;
  for (auto const& e : all) { (e.gathers ? weights : gradients)[e.shard] = 0; }
  int next = 0;
  for (auto& [shard, unit] : weights) { unit = next++; }
  next = 0;
  for (auto& [shard, unit] : gradients) { unit = trained[static_cast<std::size_t>(next++)]; }
  std::vector<std::string> words;
  for (auto const& e : all) {
    words.push_back(e.gathers ? concat("g", weights[e.shard], " ", e.bytes)
                              : concat("r", gradients[e.shard], " ", e.bytes));
  }
  return words;
}

TEST_CASE_TEMPLATE("a plan's collectives are those of an engine, in their order", P,
                   SUPEROFFLOAD_TEST_PRECISIONS) {
  using T = typename P::element;
  struct choice {
    bool tied;
    int micro_batches, layers;
    std::vector<std::string> frozen;
    int vocabulary = 701;
    int buffers = 3;
  };
  for (auto const& c : std::vector<choice>{{false, 1, 1, {}},
                                           {false, 1, 6, {}},
                                           {true, 1, 5, {}},
                                           {false, 2, 5, {}},
                                           {true, 3, 4, {}},
                                           {false, 1, 4, {"embed_tokens", "layers.1."}},
                                           {false, 2, 1, {"layers.0."}},
                                           {false, 1, 7, {}, 2000},  // the embedding is the largest unit
                                           {true, 1, 6, {}, 2000},
                                           {false, 3, 5, {}, 2000},
                                           {false, 1, 6, {}, 701, 5},
                                           {true, 2, 6, {}, 2000, 5},
                                           {false, 3, 4, {"layers.1."}, 2000, 5},
                                           {false, 1, 6, {}, 2000, 8},  // as many buffers as units
                                           {true, 1, 6, {}, 701, 8},
                                           {false, 2, 4, {"embed_tokens"}, 701, 99}}) {
    CAPTURE(c.tied);
    CAPTURE(c.micro_batches);
    CAPTURE(c.layers);
    CAPTURE(c.buffers);
    cpu::device device{1};
    writing_communicator<cpu::device> group;
    auto config = test::ranked::config_of(c.tied);
    config.layers = c.layers;
    config.vocabulary = c.vocabulary;
    auto options = test::ranked::options_of({.micro_batches = c.micro_batches});
    options.trainable = [&](autograd::tensor_entry const& tensor) {
      return std::none_of(c.frozen.begin(), c.frozen.end(), [&](std::string const& part) {
        return tensor.name.find(part) != std::string::npos;
      });
    };
    train::engine<model::llama, P, zero::sharded<writing>> e{device, group, config, options};
    offload::configuration configuration;
    configuration.buffers.weights = c.buffers;
    e.configure(configuration, std::numeric_limits<std::size_t>::max());
    e.initialize(test::ranked::some_weights);
    std::size_t begin = 0;
    for (int step = 0; step < 4; ++step) {
      begin = group.written.size();
      e.begin_step(test::ranked::label_tokens_of(step), c.micro_batches);
      for (int b = 0; b < c.micro_batches; ++b) {
        e.forward(test::ranked::batch_of(step, 0, 5));
        e.backward();
      }
      REQUIRE(e.step(1e-4).accepted);
    }
    e.synchronize();

    auto const& units = e.model().units();
    std::vector<int> trained;
    auto planned = train::detail::collectives_of(train::dry_model_of<T>(e.device(), e.model()), 2);
    for (std::size_t u = 0; u < units.size(); ++u) {
      // Of two ranks, each sends one half; this single one has both.
      auto const whole = static_cast<double>(zero::shard_elements(units[u], 1));
      auto const half = static_cast<double>(zero::shard_elements(units[u], 2));
      planned.units[u].weights *= whole / half;
      planned.units[u].gradient *= whole / half;
      if (units[u].trainable()) {
        trained.push_back(static_cast<int>(u));
      }
    }
    CHECK((trained.size() < units.size()) == !c.frozen.empty());
    auto const order = offload::order_of(planned, configuration, c.micro_batches);
    std::vector<std::string> expected;
    for (auto const& o : order.operations) {
      expected.push_back(concat(o.what == offload::activity::gather ? "g" : "r", o.unit, " ",
                                static_cast<std::size_t>(o.bytes + 0.5)));
    }
    auto const all = words_of(group.written, trained);
    std::vector<std::string> const last(all.begin() + static_cast<std::ptrdiff_t>(begin), all.end());
    CHECK(last == expected);
    CHECK(order.announcements.size() == trained.size());
    if (c.buffers >=
        static_cast<int>(units.size())) {  // each is gathered once, except frozen ones, which never change
      CHECK(order.operations.size() == 2 * trained.size() + (c.micro_batches - 1U) * trained.size());
    }
  }
}

TEST_CASE_TEMPLATE("so are those of several copies of the weights", P, SUPEROFFLOAD_TEST_PRECISIONS) {
  using T = typename P::element;
  for (int const weight_ranks : {1, 2, 4}) {
    for (int const micro_batches : {1, 3}) {
      for (int const buffers : {3, 99}) {
        CAPTURE(weight_ranks);
        CAPTURE(micro_batches);
        CAPTURE(buffers);
        conformance::all_succeeded(
            test::threads_of_a_process{{.piece_bytes = 1U << 18}}.run(4, [=](auto& device, auto& all) {
              noting_communicator<cpu::device> group{all};
              auto options = test::ranked::options_of({.micro_batches = micro_batches});
              options.trainable = [](autograd::tensor_entry const& tensor) {
                return tensor.name.find("layers.1.") == std::string::npos;
              };
              train::engine<model::llama, P, zero::sharded<noting>> e{
                  device, group, test::ranked::config_of(false, 4), options};
              comm::abort_on_exception const guard{all};
              offload::configuration configuration;
              configuration.buffers.weights = buffers;
              configuration.weight_ranks = weight_ranks;
              configuration.sums_in_copies = buffers == 3;
              e.configure(configuration, std::numeric_limits<std::size_t>::max());
              e.initialize(test::ranked::some_weights);
              for (int step = 0; step < 3; ++step) {
                group.written.clear();
                e.begin_step(test::ranked::label_tokens_of(step), micro_batches);
                for (int b = 0; b < micro_batches; ++b) {
                  e.forward(test::ranked::batch_of(step, 0, 1));
                  e.backward();
                }
                conformance::require(e.step(1e-4).accepted, "a step was skipped");
              }
              e.synchronize();

              auto const planned =
                  train::detail::collectives_of(train::dry_model_of<T>(e.device(), e.model()), 4);
              std::vector<std::string> expected;
              for (auto const& o : offload::order_of(planned, configuration, micro_batches).operations) {
                expected.push_back(group.text_of(o.what == offload::activity::gather ? "g" : "r", o.among,
                                                 static_cast<std::size_t>(o.bytes + 0.5)));
              }
              conformance::require(group.written == expected,
                                   "another order of collectives: ", group.written.size(), " instead of ",
                                   expected.size());
            }));
      }
    }
  }
}

}  // namespace
