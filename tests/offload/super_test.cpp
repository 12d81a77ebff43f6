// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/offload/none.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/optim/clip.hpp>
#include <superoffload/zero/shard.hpp>

#include <doctest/doctest.h>

#include "support/fault_case.hpp"
#include "support/precisions.hpp"
#include "support/sanitizer.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <compare>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using namespace superoffload;
using offload::state_part;
using offload::tier;

/// Units on the grid of the norm: one has a tensor without decay and a frozen one; one unit is frozen. Blocks
/// of int8 state do not go beyond a tensor that is treated differently.
std::vector<autograd::unit_layout> some_units(state_format format = state_format::float32) {
  std::vector<autograd::unit_layout> units{
      autograd::unit_layout{0, "first"}, autograd::unit_layout{1, "second"},
      autograd::unit_layout{2, "frozen"}, autograd::unit_layout{3, "last"}};
  units[0].add_matrix({{"a", 40}, {"b", 37}}, format == state_format::int8 ? 1024 : 1001);
  units[0].add_vector("norm", 77);
  units[0].tensors()[1].trainable = false;
  units[0].tensors()[2].decays = false;
  units[1].add_matrix({{"c", 100}}, 700);
  units[2].add_vector("d", 50);
  units[2].tensors()[0].trainable = false;
  units[3].add_vector("e", 5);
  return units;
}

/// Numbers of a normal distribution, made once, since making them takes most of the time of these tests.
struct normal_numbers {
  static constexpr std::size_t count = std::size_t{1} << 16;
  std::vector<float> values;

  normal_numbers() {
    std::mt19937 generator{7};
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < count; ++i) { values.push_back(normal(generator)); }
  }
  /// The i-th number of the sequence with this seed.
  [[nodiscard]] float at(std::size_t seed, std::size_t i) const {
    return values[(i * 2654435761U + seed * 40503U) % count];
  }
};
normal_numbers const normal;

/// A part of a unit's whole state.
template <class State>
std::vector<float> values_of(State& state, autograd::unit_layout const& unit, state_part part) {
  std::vector<float> values(static_cast<std::size_t>(unit.elements()));
  state.read(unit.id(), part, 0, values);
  return values;
}

/// A state with its working weights and gradients. The CPU is the device.
template <class State, class T, class G, class D = cpu::device>
struct trained {
  D device{2};
  typename D::stream stream{device};
  std::vector<autograd::unit_layout> units;
  std::vector<std::vector<T>> weights;
  std::vector<std::vector<G>> gradients;
  State state;

  explicit trained(offload::configuration const& a)
      : units{some_units(a.format)},
        weights(zeros<T>()),
        gradients(zeros<G>()),
        state{device, stream, units, a,
              [this](int u) { return weights[static_cast<std::size_t>(u)].data(); }} {
    stream.synchronize();
    for (auto const& unit : units) {
      if (unit.trainable()) {
        std::vector<float> masters(static_cast<std::size_t>(unit.elements()));
        for (std::size_t i = 0; i < masters.size(); ++i) {
          masters[i] = 0.02F * normal.at(static_cast<std::size_t>(unit.id()), i);
        }
        state.write(unit.id(), state_part::master, 0, masters);
      }
    }
  }
  ~trained() { drain(stream); }
  template <class U>
  std::vector<std::vector<U>> zeros() const {
    std::vector<std::vector<U>> all;
    for (auto const& unit : units) { all.emplace_back(static_cast<std::size_t>(unit.elements())); }
    return all;
  }

  /// One step as an engine makes it: weights are used, gradients become final from the last unit to the
  /// first, then the check. `bad` is put into the gradient if it is not 0.
  double step(int t, double max_norm, float bad, bool announced) {
    for (int u = 0; u < 4; ++u) { state.await(u, stream); }
    stream.synchronize();
    auto const speculated = state.counts().speculated;
    offload::step_record record{.settings = {.weight_decay = 0.1}, .rate = 1e-3 / t, .t = steps_done + 1};
    if (announced) {
      state.announce(record);
    }
    for (int u = 3; u >= 0; --u) {
      auto const& unit = units[static_cast<std::size_t>(u)];
      if (!unit.trainable()) {
        continue;
      }
      auto& gradient = gradients[static_cast<std::size_t>(u)];
      auto const seed = static_cast<std::size_t>(4 * t + u);
      float const scale = t % 4 == 2 ? 2e-3F : 1e-3F;
      state.await_gradient(u, stream);  // as if another unit had used its buffer
      stream.synchronize();
      for (auto const& tensor : unit.tensors()) {
        for (std::int64_t i = 0; i < tensor.count(); ++i) {
          // As in training, a gradient depends on the weight.
          auto const at = static_cast<std::size_t>(tensor.offset + i);
          float const weight = float{weights[static_cast<std::size_t>(u)][at]};
          gradient[at] = tensor.trainable ? G(0.01F * weight + scale * normal.at(seed, at)) : G(0.0F);
        }
      }
      if (u == 1 && bad != 0.0F) {
        gradient[12345] = G(bad);
      }
      state.ready(u, {gradient.data(), !std::is_same_v<T, G>});
    }
    if (speculates_first) {
      await_speculation(speculated);
    }
    auto const gradient_check = state.check_gradient();
    if (gradient_check.finite) {
      record.factor = optim::clip_factor(gradient_check.norm, max_norm);
      state.update(record);
      ++steps_done;
    } else {
      state.skip();
    }
    return gradient_check.norm;
  }

  /// Waits, at most a second, for an update that was not among the first `speculated`.
  void await_speculation(std::int64_t speculated) {
    auto const end = std::chrono::steady_clock::now() + std::chrono::seconds{1};
    while (state.counts().speculated == speculated && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
  }

  std::vector<float> everything() {
    std::vector<float> all;
    for (auto const& unit : units) {
      if (!unit.trainable()) {
        continue;
      }
      for (auto const part : {state_part::master, state_part::m, state_part::v}) {
        auto const values = values_of(state, unit, part);
        all.insert(all.end(), values.begin(), values.end());
      }
    }
    return all;
  }

  std::int64_t steps_done = 0;
  bool speculates_first = false;  ///< the check waits for a speculative update of its step
};

bool same_bits(std::vector<float> const& a, std::vector<float> const& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

struct run {
  double max_norm;  ///< the gradients' norm is about .35, and .65 in every fourth step
  bool faults;      ///< some gradients have Inf or NaN
  bool announced;

  friend auto operator<=>(run const&, run const&) = default;
};

/// The bad number in the gradient of step t; 0: none.
float fault_of(run const& r, int t) {
  return !r.faults || t % 7 != 3 ? 0.0F
         : t % 2 == 0            ? std::numeric_limits<float>::infinity()
                                 : std::numeric_limits<float>::quiet_NaN();
}
/// Is the whole state read after step t? A checkpoint does so while state is pending.
bool reads_state(int t, int steps) { return t % 40 == 0 || t == steps; }

/// The results of a run of the simple path: all norms, the states that are read, the final weights.
template <class T>
struct simple_path {
  std::vector<double> norms;
  std::vector<std::vector<float>> states;
  std::vector<std::vector<T>> weights;
};
template <class T, class G>
simple_path<T> const& simple_path_of(run const& r, int steps, state_format format) {
  static std::map<std::tuple<run, int, state_format>, simple_path<T>> known;  // one for all configurations
  auto const [at, is_new] = known.try_emplace({r, steps, format});
  if (is_new) {
    offload::configuration a;
    a.format = format;
    trained<offload::device_state<cpu::device, T>, T, G> simple{a};
    for (int t = 1; t <= steps; ++t) {
      at->second.norms.push_back(simple.step(t, r.max_norm, fault_of(r, t), r.announced));
      if (reads_state(t, steps)) {
        at->second.states.push_back(simple.everything());
      }
    }
    simple.stream.synchronize();
    at->second.weights = simple.weights;
  }
  return at->second;
}

/// Checks that every norm, every state that is read and the final weights equal those of the simple path, bit
/// for bit. On a busy machine the check may come before any speculative update: in every `waits`-th step it
/// waits for one.
template <class T, class G, class D = cpu::device>
offload::worker_counts check_exact(offload::configuration const& a, run const& r, int steps, int waits = 0) {
  auto const& expected = simple_path_of<T, G>(r, steps, a.format);
  trained<offload::placed_state<D, T>, T, G, D> placed{a};
  auto state = expected.states.begin();
  for (int t = 1; t <= steps; ++t) {
    CAPTURE(t);
    test::fault_case const step{"F12"};
    double const simple_norm = expected.norms[static_cast<std::size_t>(t - 1)];
    placed.speculates_first = waits > 0 && t % waits == waits / 2;
    double const norm = placed.step(t, r.max_norm, fault_of(r, t), r.announced);
    REQUIRE(((norm == simple_norm) || (std::isnan(norm) && std::isnan(simple_norm))));
    if (reads_state(t, steps)) {
      REQUIRE(same_bits(*state++, placed.everything()));
    }
  }
  for (int u = 0; u < 4; ++u) {
    placed.state.await(u, placed.stream);
    CHECK(placed.state.returned(u));
  }
  placed.stream.synchronize();
  for (std::size_t u = 0; u < 4; ++u) {
    auto const& weights = expected.weights[u];
    REQUIRE(std::memcmp(weights.data(), placed.weights[u].data(), weights.size() * sizeof(T)) == 0);
  }
  return placed.state.counts();
}

offload::configuration configured(std::string const& tiers, int pinned_buffers = 4,
                                  state_format format = state_format::float32) {
  offload::configuration a;
  a.format = format;
  a.buckets = offload::buckets_of(some_units(format), kernel::norm_grid);
  for (std::size_t i = 0; i < a.buckets.size(); ++i) {
    char const c = tiers[i % tiers.size()];
    a.buckets[i].where = c == 'h' ? tier::host : c == 's' ? tier::device_updated : tier::resident;
  }
  a.pinned_buffers = pinned_buffers;
  a.workers = 2;
  return a;
}

/// The same with the weights of some units, those with a '1', in host memory. Their resident buckets move to
/// the host. `held`: gradients leave the device when they are final, and are held in pinned buffers until the
/// check.
offload::configuration offloading(std::string const& tiers, std::string const& units, bool held,
                                  state_format format = state_format::float32) {
  auto a = configured(tiers, 4, format);
  for (std::size_t u = 0; u < 4; ++u) { a.offloaded.weights.push_back(units[u] == '1'); }
  a.offloaded.gradients.assign(4, held);
  for (auto& b : a.buckets) {
    if (a.weights_offloaded(b) && b.where == tier::resident) {
      b.where = tier::host;
    }
    if (b.where != tier::host) {
      a.offloaded.gradients[static_cast<std::size_t>(b.unit)] = false;
    }
  }
  if (held) {
    a.pinned_buffers = static_cast<int>(a.buckets.size()) + 2;
  }
  return a;
}

constexpr int slower = test::under_thread_sanitizer ? 3 : 1;  // fewer steps

constexpr double never = 1e9, sometimes = 0.5, always = 0.1;

/// Of every mixture: where a step is sometimes clipped, it has the work of all.
std::vector<double> norms_of_mixtures() {
  return test::under_sanitizer ? std::vector{sometimes} : std::vector{never, sometimes, always};
}

TEST_CASE_TEMPLATE("every mixture of memory tiers gives the bits of the simple path", T,
                   SUPEROFFLOAD_TEST_WEIGHTS) {
  for (auto const* tiers : {"h", "s", "r", "hs", "hr", "rs", "hhsr"}) {
    for (double const max_norm : norms_of_mixtures()) {
      for (bool const faults : {false, true}) {
        CAPTURE(std::string{tiers});
        CAPTURE(max_norm);
        CAPTURE(faults);
        check_exact<T, T>(configured(tiers), {max_norm, faults, true}, 12 / slower);
      }
    }
  }
}

TEST_CASE_TEMPLATE("weights in host memory give the bits of the simple path, in every mixture", T,
                   SUPEROFFLOAD_TEST_WEIGHTS) {
  for (auto const* units : {"1111", "0100", "1001"}) {
    for (auto const* tiers : {"h", "s", "hs", "hr", "rs", "hhsr"}) {
      for (bool const held : {false, true}) {
        for (double const max_norm : norms_of_mixtures()) {
          CAPTURE(std::string{units});
          CAPTURE(std::string{tiers});
          CAPTURE(held);
          CAPTURE(max_norm);
          check_exact<T, T>(offloading(tiers, units, held), {max_norm, true, true}, 12 / slower);
        }
      }
    }
  }
}

/// Threads do the same in both.
std::vector<state_format> formats_of_fewer_bytes() {
  return test::under_sanitizer ? std::vector{state_format::int8}
                               : std::vector{state_format::bf16, state_format::int8};
}

TEST_CASE_TEMPLATE("state of fewer bytes gives the bits of the simple path, in every mixture of tiers", T,
                   SUPEROFFLOAD_TEST_WEIGHTS) {
  for (auto const format : formats_of_fewer_bytes()) {
    CAPTURE(std::string{name_of(format)});
    for (auto const* tiers : {"h", "s", "r", "hhsr"}) {
      for (double const max_norm : norms_of_mixtures()) {
        CAPTURE(std::string{tiers});
        CAPTURE(max_norm);
        check_exact<T, T>(configured(tiers, 4, format), {max_norm, true, true}, 12 / slower);
        for (auto const* units : {"1111", "0100"}) {
          CAPTURE(std::string{units});
          check_exact<T, T>(offloading(tiers, units, true, format), {max_norm, true, true}, 12 / slower);
        }
      }
    }
  }
}

TEST_CASE("state of fewer bytes stays exact over many steps with every kind of update") {
  for (auto const format : formats_of_fewer_bytes()) {
    CAPTURE(std::string{name_of(format)});
    auto const counts = check_exact<bfloat16, bfloat16>(configured("hhsr", 6, format),
                                                        {sometimes, true, true}, 120 / slower, 4);
    CHECK(counts.speculated > 0);
    CHECK(counts.committed > 0);
    CHECK(counts.updated > 0);
    CHECK(counts.resent > 0);
    check_exact<bfloat16, float>(configured("hsr", 3, format), {sometimes, true, true}, 30);
    auto at_once = configured("hhr", 4, format);
    at_once.immediate = true;
    check_exact<bfloat16, bfloat16>(at_once, {never, false, true}, 30);
  }
}

/// The same with double-buffered state.
offload::configuration doubled(offload::configuration a) {
  a.double_buffered = true;
  return a;
}

TEST_CASE_TEMPLATE(
    "double-buffered state gives the bits of the simple path, in every format and mixture of tiers", T,
    SUPEROFFLOAD_TEST_WEIGHTS) {
  auto formats = formats_of_fewer_bytes();
  formats.push_back(state_format::float32);
  for (auto const format : formats) {
    CAPTURE(std::string{name_of(format)});
    for (auto const* tiers : {"h", "hs", "hhsr"}) {
      for (double const max_norm : norms_of_mixtures()) {
        CAPTURE(std::string{tiers});
        CAPTURE(max_norm);
        check_exact<T, T>(doubled(configured(tiers, 4, format)), {max_norm, true, true}, 12 / slower);
        check_exact<T, T>(doubled(offloading(tiers, "0100", true, format)), {max_norm, true, true},
                          12 / slower);
      }
    }
  }
}

TEST_CASE(
    "double-buffered state needs no commit, and stays exact over many steps with every kind of update") {
  for (auto const format : {state_format::float32, state_format::int8}) {
    CAPTURE(std::string{name_of(format)});
    auto const counts = check_exact<bfloat16, bfloat16>(doubled(configured("hhsr", 6, format)),
                                                        {sometimes, true, true}, 120 / slower, 4);
    CHECK(counts.speculated > 0);
    CHECK(counts.committed == 0);
    CHECK(counts.updated > 0);
    CHECK(counts.resent > 0);
    check_exact<bfloat16, float>(doubled(configured("hsr", 3, format)), {sometimes, true, true}, 30);
    check_exact<bfloat16, bfloat16>(doubled(configured("hr", 2, format)), {never, true, true}, 30);
    auto at_once = doubled(configured("hhr", 4, format));
    at_once.immediate = true;
    check_exact<bfloat16, bfloat16>(at_once, {never, false, true}, 30);
  }
}

TEST_CASE_TEMPLATE("state of fewer bytes that is read can be written again without loss, in any pieces", T,
                   SUPEROFFLOAD_TEST_WEIGHTS) {
  for (auto const format : formats_of_fewer_bytes()) {
    CAPTURE(std::string{name_of(format)});
    for (bool const twice : {false, true}) {
      CAPTURE(twice);
      auto const run = [&](bool interrupted) {
        auto a = configured("hsr", 4, format);
        a.double_buffered = twice;
        auto before = std::make_unique<trained<offload::placed_state<cpu::device, T>, T, T>>(a);
        for (int t = 1; t <= 5; ++t) { before->step(t, sometimes, 0.0F, true); }
        if (interrupted) {
          auto after = std::make_unique<trained<offload::placed_state<cpu::device, T>, T, T>>(a);
          after->steps_done = before->steps_done;
          for (auto const& unit : before->units) {
            if (!unit.trainable()) {
              continue;
            }
            for (auto const part : {state_part::m, state_part::v, state_part::master}) {
              auto const values = values_of(before->state, unit, part);
              std::size_t done = 0;
              for (std::size_t piece = 77; done < values.size(); piece = piece * 3 / 2) {
                auto const n = std::min(piece, values.size() - done);
                after->state.write(unit.id(), part, static_cast<std::int64_t>(done),
                                   std::span{values}.subspan(done, n));
                done += n;
              }
            }
          }
          CHECK(same_bits(before->everything(), after->everything()));
          before = std::move(after);
        }
        for (int t = 6; t <= 9; ++t) { before->step(t, sometimes, 0.0F, true); }
        return before->everything();
      };
      CHECK(same_bits(run(false), run(true)));
    }
  }
}

TEST_CASE("the shards of any number of ranks have the bits of the whole state, in every format") {
  for (auto const format : state_formats) {
    CAPTURE(std::string{name_of(format)});
    auto const whole_units = some_units(format);
    offload::configuration a;
    a.format = format;
    // By rank, every unit's state after three steps, cut to the elements that are no padding of shards.
    auto const trained_on = [&](int ranks) {
      std::vector<std::vector<float>> all(3 * whole_units.size());
      for (int rank = 0; rank < ranks; ++rank) {
        cpu::device device{1};
        cpu::stream stream{device};
        auto const units = zero::shards_of(whole_units, rank, ranks);
        std::vector<std::vector<bfloat16>> weights, gradients;
        for (auto const& unit : units) {
          weights.emplace_back(static_cast<std::size_t>(unit.elements()));
          auto& gradient = gradients.emplace_back(static_cast<std::size_t>(unit.elements()));
          for (auto const& tensor : unit.tensors()) {
            for (std::int64_t i = tensor.offset; tensor.trainable && i < tensor.offset + tensor.count();
                 ++i) {
              gradient[static_cast<std::size_t>(i)] = bfloat16{
                  normal.at(static_cast<std::size_t>(unit.id()), static_cast<std::size_t>(unit.begin() + i))};
            }
          }
        }
        offload::device_state<cpu::device, bfloat16> state{
            device, stream, units, a, [&](int u) { return weights[static_cast<std::size_t>(u)].data(); }};
        for (std::int64_t t = 1; t <= 3; ++t) {
          for (auto const& unit : units) {
            if (unit.trainable()) {
              state.ready(unit.id(), {gradients[static_cast<std::size_t>(unit.id())].data()});
            }
          }
          (void)state.check_gradient();
          state.update({.rate = 1e-3, .t = t});
        }
        for (auto const& unit : units) {
          if (!unit.trainable()) {
            continue;
          }
          for (auto const part : {state_part::master, state_part::m, state_part::v}) {
            auto const values = values_of(state, unit, part);
            auto& to = all[static_cast<std::size_t>(3 * unit.id()) + static_cast<std::size_t>(part)];
            to.insert(to.end(), values.begin(), values.end());
          }
        }
        stream.synchronize();
      }
      for (auto const& unit : whole_units) {
        for (std::size_t part = 0; part < 3; ++part) {
          auto& values = all[3 * static_cast<std::size_t>(unit.id()) + part];
          values.resize(unit.trainable() ? static_cast<std::size_t>(unit.elements()) : 0);
        }
      }
      return all;
    };
    auto const expected = trained_on(1);
    for (int const ranks : {2, 3}) {
      CAPTURE(ranks);
      auto const sharded = trained_on(ranks);
      for (std::size_t i = 0; i < expected.size(); ++i) { CHECK(same_bits(expected[i], sharded[i])); }
    }
  }
}

TEST_CASE("a block of int8 state that a frozen tensor begins in is refused by the tensor's name") {
  using state = offload::device_state<cpu::device, bfloat16>;
  auto const units = some_units();
  cpu::device device{1};
  cpu::stream stream{device};
  std::vector<bfloat16> weights(1 << 20);
  offload::configuration a;
  a.format = state_format::int8;
  try {
    state const s{device, stream, units, a, [&](int) { return weights.data(); }};
    FAIL("was not refused");
  } catch (error const& e) {
    CHECK(e.code() == exit_code::bad_input);
    CHECK_MESSAGE(
        std::string{e.what()}.find("tensor 'b' begins at element 40040 of 'first'") != std::string::npos,
        e.what());
  }
  stream.synchronize();
}

TEST_CASE("weights in host memory beside others stay exact over hundreds of steps") {
  auto const counts = check_exact<bfloat16, bfloat16>(offloading("hhsr", "0100", true),
                                                      {sometimes, true, true}, 240 / slower, 4);
  CHECK(counts.speculated > 0);
  CHECK(counts.updated > 0);
}

TEST_CASE("a weight in host memory gets no speculative update, since it is half of its master") {
  auto const a = offloading("h", "1111", true);
  auto const counts = check_exact<bfloat16, bfloat16>(a, {never, false, true}, 20);
  CHECK(counts.speculated == 0);
  CHECK(counts.updated == 20 * static_cast<std::int64_t>(a.buckets.size()));
}

TEST_CASE("weights in host memory need no second master, and wide gradients are rounded") {
  auto const beside = offloading("h", "1111", false), apart = configured("h");
  using state = offload::placed_state<cpu::device, bfloat16>;
  std::size_t elements = 0;
  for (auto const& b : apart.buckets) { elements += static_cast<std::size_t>(b.count); }
  CHECK(state::bytes(some_units(), apart).host - state::bytes(some_units(), beside).host == 2 * elements);
  check_exact<bfloat16, float>(offloading("hsr", "1101", true), {sometimes, true, true}, 30);
}

TEST_CASE(
    "a configuration that cannot hold its gradients, or keeps state apart from its weights, is refused") {
  using state = offload::placed_state<cpu::device, float>;
  auto const units = some_units();
  cpu::device device{1};
  cpu::stream stream{device};
  std::vector<float> weights(1 << 20);
  auto const refused = [&](offload::configuration const& a, char const* why) {
    try {
      state const s{device, stream, units, a, [&](int) { return weights.data(); }};
      FAIL("was not refused: ", why);
    } catch (error const& e) {
      CHECK(e.code() == exit_code::internal);
      CHECK_MESSAGE(std::string{e.what()}.find(why) != std::string::npos, e.what());
    }
    stream.synchronize();
  };
  auto few = offloading("h", "0000", true);
  --few.pinned_buffers;
  refused(few, "they hold gradients");
  auto apart = configured("r");
  apart.offloaded.weights = {true};
  refused(apart, "their state is resident");
  auto held = offloading("h", "0000", true);
  held.buckets.front().where = tier::resident;
  refused(held, "its state is updated there");
}

TEST_CASE("hundreds of steps use every kind of update and stay exact") {
  auto const counts =
      check_exact<bfloat16, bfloat16>(configured("hhsr", 6), {sometimes, true, true}, 240 / slower, 4);
  CHECK(counts.speculated > 0);
  CHECK(counts.committed > 0);
  CHECK(counts.updated > 0);
  CHECK(counts.resent > 0);
}

TEST_CASE("if every speculative update is confirmed, all of them are committed") {
  auto a = configured("h", 10);
  auto const buckets = static_cast<std::int64_t>(a.buckets.size());
  auto const counts = check_exact<bfloat16, bfloat16>(a, {never, false, true}, 20, 2);
  CHECK(counts.resent == 0);
  CHECK(counts.speculated + counts.updated == 20 * buckets);
  CHECK(counts.speculated == counts.committed);
  CHECK(counts.speculated > 0);
}

TEST_CASE("two pinned buffers are enough, and wide gradients are rounded when they are copied") {
  for (double const max_norm : {never, sometimes}) {
    check_exact<bfloat16, bfloat16>(configured("h", 2), {max_norm, true, true}, 30);
    check_exact<bfloat16, float>(configured("hsr", 3), {max_norm, true, true}, 30);
  }
}

TEST_CASE("a step that was not announced, or a configuration without speculation, waits for the check") {
  CHECK(check_exact<float, float>(configured("hs"), {sometimes, true, false}, 20).speculated == 0);
  auto a = configured("hs");
  a.speculates = false;
  a.waits_for_all = true;
  auto const counts = check_exact<float, float>(a, {sometimes, true, true}, 20);
  CHECK(counts.speculated == 0);
  CHECK(counts.committed == 0);
}

TEST_CASE("in the immediate mode buckets are updated as their gradients arrive") {
  auto a = configured("hhr");
  a.immediate = true;
  auto const counts = check_exact<bfloat16, bfloat16>(a, {never, false, true}, 30);
  CHECK(counts.speculated == 0);
  CHECK(counts.committed == 0);
  CHECK(counts.updated == 30 * std::count_if(a.buckets.begin(), a.buckets.end(),
                                             [](auto const& b) { return b.where == tier::host; }));
}

TEST_CASE(
    "in the immediate mode buckets of all tiers are updated at once, and their gradients leave the device") {
  for (auto const* tiers : {"r", "s", "hsr"}) {
    for (auto const* units : {"0000", "1111", "0100"}) {
      CAPTURE(std::string{tiers});
      CAPTURE(std::string{units});
      auto a = offloading(tiers, units, false);
      a.immediate = true;
      a.offloaded.gradients.assign(4, true);
      a.pinned_buffers = 2;
      auto const counts = check_exact<bfloat16, bfloat16>(a, {never, false, true}, 30 / slower);
      CHECK(counts.speculated == 0);
    }
  }
}

TEST_CASE("if every step is clipped, speculation ends") {
  // The hit rate falls below one half in the seventh step. The number of speculative updates until then
  // varies.
  auto const a = configured("h");
  auto const counts = check_exact<float, float>(a, {always, false, true}, 60);
  CHECK(counts.speculated <= 7 * static_cast<std::int64_t>(a.buckets.size()));
}

TEST_CASE("speculation that does not adapt continues, and changes no bit") {
  auto a = configured("h", 10);
  a.adapts = false;
  auto const counts = check_exact<bfloat16, bfloat16>(a, {always, true, true}, 40, 1);
  CHECK(counts.speculated >= 40);
  CHECK(counts.committed < counts.speculated);
}

TEST_CASE("a state takes the memory that bytes() announces") {
  for (auto const& a :
       {configured("hhsr", 5), offloading("hhsr", "1001", true), offloading("s", "1111", false),
        configured("hhsr", 5, state_format::bf16), configured("hhsr", 5, state_format::int8),
        offloading("hhsr", "1001", true, state_format::int8)}) {
    auto const units = some_units(a.format);
    using state = offload::placed_state<cpu::device, bfloat16>;
    auto const announced = state::bytes(units, a);
    cpu::device device{1};
    cpu::stream stream{device};
    std::vector<bfloat16> weights(1 << 20);
    state const taken{device, stream, units, a, [&](int) { return weights.data(); }};
    CHECK(device.bytes_in_use(memory::device) == announced.device);
    CHECK(device.bytes_in_use(memory::host) == announced.host);
    stream.synchronize();
  }
}

TEST_CASE("a failing thread of CPU Adam ends the run with its error and without a deadlock") {
  for (int good_steps = 0; good_steps < 3; ++good_steps) {
    trained<offload::placed_state<cpu::device, float>, float, float> run{configured("hhs")};
    auto const train = [&] {
      for (int t = 1; t <= 5; ++t) {
        if (t == good_steps + 1) {
          run.state.workers()->threads().submit([](int thread, int) {
            if (thread == 0) {
              fail(exit_code::internal, "a core broke");
            }
          });
        }
        run.step(t, sometimes, 0.0F, true);
      }
    };
    CHECK_THROWS_WITH_AS(train(), "a core broke", error);
    CHECK_THROWS_WITH_AS(train(), "a core broke", error);  // every later call throws it again
  }
}

TEST_CASE("CPU Adam has threads only if a bucket is on the host, and notes missing ones") {
  auto const units = some_units();
  cpu::device device{1};
  cpu::stream stream{device};
  std::vector<float> weights(1 << 20);
  auto const made = [&](offload::configuration const& a) {
    return std::make_unique<offload::placed_state<cpu::device, float>>(device, stream, units, a,
                                                                       [&](int) { return weights.data(); });
  };
  auto const without = made(configured("rs"));
  CHECK(without->workers() == nullptr);
  auto a = configured("h");
  a.workers = 100'000;
  auto const state = made(a);
  CHECK(state->workers()->threads().size() == std::ssize(cpu::allowed_processors()));
  REQUIRE_FALSE(state->workers()->notes().empty());
  CHECK(state->workers()->notes()[0].find("instead of 100000") != std::string::npos);
  stream.synchronize();
}

/// A device whose copies fail after `left` of them.
struct failing_stream : cpu::stream {
  static inline std::atomic<int> left{0};

  using cpu::stream::stream;
  void copy(void* to, void const* from, std::size_t bytes) {
    if (left.fetch_sub(1) == 0) {
      enqueue([] { fail(exit_code::device, "the link broke"); });
    } else {
      cpu::stream::copy(to, from, bytes);
    }
  }
};
struct failing_device : cpu::device {
  using cpu::device::device;
  using stream = failing_stream;
};

/// A device whose waits for copies return late.
struct late_event : cpu::event {
  using cpu::event::event;
  void wait() const {
    cpu::event::wait();
    if (is_late) {
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
  }
  bool is_late = false;
};
struct late_device : cpu::device {
  struct stream;
  using cpu::device::device;
  using event = late_event;
  int streams = 0;
};
struct late_device::stream : cpu::stream {
  using cpu::stream::record;

  explicit stream(late_device& d) : cpu::stream{d}, computes{d.streams++ == 0} {}
  void record(late_event& e) {
    e.is_late = !computes;
    cpu::stream::record(e);
  }
  bool computes;
};

TEST_CASE("gradients of a skipped step may still be copied when the next step's are final") {
  for (auto const& a : {configured("h"), configured("hs"), offloading("h", "1111", true)}) {
    check_exact<float, float, late_device>(a, {sometimes, true, true}, 5);
  }
}

TEST_CASE("a failed copy reaches the training thread as an error, without a deadlock") {
  int failed = 0;
  for (int copies = 0; copies < 42; copies += 2) {
    failing_stream::left = 1 << 30;
    trained<offload::placed_state<failing_device, float>, float, float, failing_device> run{
        configured("hhs")};
    failing_stream::left = copies;
    try {
      for (int t = 1; t <= 4; ++t) { run.step(t, sometimes, 0.0F, true); }
      run.state.flush();
    } catch (error const& e) {
      CHECK(std::string{e.what()}.find("the link broke") != std::string::npos);
      CHECK(e.code() == exit_code::device);
      ++failed;
    }
  }
  CHECK(failed > 15);
}

}  // namespace
