// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs that are interrupted after any step, and go on on as many ranks or on others. The ranks are those of a
// struct:
//   struct my_ranks {
//     using groups = ...;       // run(ranks, body): tests/conformance/communicator.hpp
//     template <class P>
//     using engine = ...;       // of ranks that have groups' device and communicator
//   };
#include <superoffload/core/error.hpp>
#include <superoffload/core/precision.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/train/trainer.hpp>

#include <doctest/doctest.h>

#include "conformance/communicator.hpp"
#include "support/fault_case.hpp"
#include "support/sanitizer.hpp"
#include "support/scratch_directory.hpp"
#include "support/short_run.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace superoffload::test::resumed {

/// What differs between runs in how much of a field a rank has.
struct variant {
  char const* name;
  char const* model = "llama";
  offload::mode offload = offload::mode::none;
  bool frozen = false;
  state_format format = state_format::float32;
  bool is_part = false;  ///< another variant has all of it, and more
};

inline constexpr std::array<variant, 6> variants{
    {{.name = "uneven shards"},
     {.name = "int8 state, off the device", .offload = offload::mode::super, .format = state_format::int8},
     {.name = "tied", .model = "llama_tied", .is_part = true},
     {.name = "frozen", .frozen = true, .is_part = true},
     {.name = "off the device", .offload = offload::mode::super, .is_part = true},
     {.name = "tied, frozen, off the device",
      .model = "llama_tied",
      .offload = offload::mode::super,
      .frozen = true}}};

inline train::training_options options(std::filesystem::path const& output, std::int64_t steps,
                                       variant const& v) {
  auto o = short_run(output, steps);
  o.model = o.model.parent_path() / v.model;
  o.batch_size = 5;
  o.accumulation = 2;  // of 5 sequences: some ranks have none
  o.max_length = 24;
  o.lr = 1e-3;
  o.scheduler = optim::schedule::shape::constant;
  o.metrics = output / "metrics.jsonl";
  o.offload.how = v.offload;
  o.offload.state = v.format;
  o.offload.bucket_bytes = 1 << 20;
  if (v.offload != offload::mode::none) {
    o.offload.ratio = 0.7;
  }
  if (v.frozen) {
    o.freeze = {"model.embed_tokens*", "*.0.self_attn*"};
  }
  return o;
}

/// The fields of the whole state by kind, weights first, and the exported weights.
using state = std::map<std::string, std::string>;

template <class Ranks, class P>
state run_on(int ranks, train::training_options const& o) {
  // A file of each kind from each rank: ranks may be processes.
  scratch_directory const fields;
  typename Ranks::groups groups;
  groups.settings.piece_bytes = 1U << 18;
  conformance::all_succeeded(groups.run(ranks, [&](auto& device, auto& group) {
    auto own = o;
    own.rank = group.rank();
    own.ranks = group.ranks();
    train::trainer<typename Ranks::template engine<P>> trainer{device, own, &group};
    (void)trainer.run();
    auto const place = fields.path() / std::to_string(group.rank());
    std::filesystem::create_directory(place);
    for (auto const& field : trainer.engine().state_fields()) {
      std::string bytes(field.bytes, '\0');
      trainer.engine().read_state(field, 0, std::as_writable_bytes(std::span{bytes}));
      std::ofstream{place / field.name.substr(field.name.rfind('.') + 1), std::ios::app | std::ios::binary}
          << bytes;
    }
  }));
  state done;
  for (int rank = 0; rank < ranks; ++rank) {
    CAPTURE(rank);
    state of_rank;
    for (auto const& file : std::filesystem::directory_iterator{fields.path() / std::to_string(rank)}) {
      of_rank[file.path().filename()] = contents_of(file);
    }
    CHECK((rank == 0 || of_rank == done));
    done = std::move(of_rank);
  }
  done["exported"] = contents_of(o.output / "model" / "model.safetensors");
  return done;
}

/// Numbers of each step, as text with all digits.
inline std::vector<std::string> series(train::training_options const& o,
                                       std::vector<char const*> const& names) {
  std::vector<std::string> values;
  std::ifstream file{o.metrics};
  for (std::string line; std::getline(file, line);) {
    auto const json = io::json::parse(line);
    if (json.contains("grad_norm")) {
      auto& text = values.emplace_back();
      for (auto const* name : names) { text += json[name].dump() + " "; }
    }
  }
  return values;
}

/// A run of `steps` steps that is interrupted after every `stride`-th, and goes on, ends with the bits of one
/// that was not.
template <class Ranks, class P>
void check_every_step(int ranks, variant const& v, std::int64_t steps, std::int64_t stride) {
  CAPTURE(ranks);
  CAPTURE(v.name);
  std::vector<char const*> const numbers{"loss", "grad_norm", "lr", "epoch", "label_tokens", "tokens"};
  scratch_directory const whole;
  auto o = options(whole.path(), steps, v);
  o.save_steps = 1;
  auto const expected = run_on<Ranks, P>(ranks, o);
  auto const expected_series = series(o, numbers);
  REQUIRE(expected_series.size() == static_cast<std::size_t>(steps));
  for (std::int64_t step = 1; step <= steps; step += stride) {
    CAPTURE(step);
    fault_case const interrupted{"F13"};
    scratch_directory const going_on;
    auto next = options(going_on.path(), steps, v);
    next.resume = (whole.path() / concat("checkpoint-", step)).string();
    CHECK((run_on<Ranks, P>(ranks, next) == expected));
    CHECK(series(next, numbers) ==
          std::vector<std::string>(expected_series.begin() + step, expected_series.end()));
  }
}

/// State that `writers` ranks wrote is the same bits on each of `readers`.
template <class Ranks>
void check_state_moves(variant const& v, int writers, std::vector<int> const& readers) {
  CAPTURE(v.name);
  CAPTURE(writers);
  scratch_directory const saved;
  auto o = options(saved.path(), 2, v);
  o.save_steps = 2;
  auto const written = run_on<Ranks, precision::bf16>(writers, o);
  CHECK(written.size() >= 4);  // weights or the master, both moments, and what is exported
  for (int const ranks : readers) {
    CAPTURE(ranks);
    scratch_directory const loaded;
    auto next = options(loaded.path(), 2, v);
    next.resume = (saved.path() / "checkpoint-2").string();
    auto const read = run_on<Ranks, precision::bf16>(ranks, next);
    CHECK(read.size() == written.size());
    for (auto const& kind : written) {
      CAPTURE(kind.first);
      fault_case const moved{"F14"};
      CHECK((read.at(kind.first) == kind.second));
    }
  }
}

/// A run of two steps on each of these numbers of ranks, one after the other, loses no state and no sample.
template <class Ranks>
void check_chain(variant const& v, std::vector<int> const& chain) {
  CAPTURE(v.name);
  std::vector<char const*> const numbers{"label_tokens", "tokens", "epoch"};
  scratch_directory const unbroken;
  auto const whole = options(unbroken.path(), 2 * static_cast<std::int64_t>(chain.size()), v);
  run_on<Ranks, precision::bf16>(1, whole);
  auto const tokens = series(whole, numbers);

  scratch_directory const place;
  state before;
  std::int64_t steps = 0;
  for (int const ranks : chain) {
    CAPTURE(ranks);
    fault_case const moved{"F14"};
    if (steps > 0) {
      scratch_directory const loaded;
      auto same = options(loaded.path(), steps, v);
      same.resume = (place.path() / concat("checkpoint-", steps)).string();
      CHECK((run_on<Ranks, precision::bf16>(ranks, same) == before));
    }
    auto o = options(place.path(), steps + 2, v);
    o.save_steps = 2;
    o.resume = "auto";
    before = run_on<Ranks, precision::bf16>(ranks, o);
    steps += 2;
    CHECK(series(o, numbers) == std::vector<std::string>(tokens.begin(), tokens.begin() + steps));
  }
}

}  // namespace superoffload::test::resumed
