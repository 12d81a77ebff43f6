// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/environment.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>

#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace superoffload::comm {
namespace detail {

inline constexpr int most_ranks = 1 << 20;

class reader {
public:
  explicit reader(variables const& value_of) : value_of_{&value_of} {}

  [[nodiscard]] bool has(char const* name) const { return (*value_of_)(name) != nullptr; }
  [[nodiscard]] std::string text(char const* name) const {
    char const* const value = (*value_of_)(name);
    return value == nullptr ? "" : value;
  }
  /// The value of the first of `names` that is set: a whole number from `least` to `most`.
  [[nodiscard]] int number(std::initializer_list<char const*> names, int least, int most) const {
    for (char const* const name : names) {
      if (has(name)) {
        return parse(name, text(name), least, most);
      }
    }
    std::string all;
    for (char const* const name : names) { all += (all.empty() ? "" : " or ") + std::string{name}; }
    fail(exit_code::bad_input, "the environment variable ", all, " is not set, but ", because_,
         " is: they belong together");
  }
  /// Sets the variable that messages name as the reason why the others are needed.
  void because(char const* name) { because_ = name; }

  [[nodiscard]] static int parse(char const* name, std::string const& value, int least, int most) {
    int number = 0;
    auto const [end, status] = std::from_chars(value.data(), value.data() + value.size(), number);
    expect(status == std::errc{} && end == value.data() + value.size() && number >= least && number <= most,
           exit_code::bad_input, "the environment variable ", name, " is '", printable(value),
           "': expected a whole number from ", least, " to ", most);
    return number;
  }

private:
  variables const* value_of_;
  char const* because_ = "";
};

struct names {
  char const* launcher;
  char const* rank;
  char const* ranks;
  char const* local_rank;
  std::initializer_list<char const*> local_ranks;
};

SUPEROFFLOAD_INLINE environment of_names(reader& r, names const& n) {
  environment found;
  found.launcher = n.launcher;
  r.because(r.has(n.rank) ? n.rank : n.ranks);
  found.ranks = r.number({n.ranks}, 1, most_ranks);
  found.rank = r.number({n.rank}, 0, found.ranks - 1);
  if (found.ranks > 1 || r.has(n.local_rank)) {
    found.local_ranks = found.ranks == 1 ? 1 : r.number(n.local_ranks, 1, found.ranks);
    found.local_rank = r.number({n.local_rank}, 0, found.local_ranks - 1);
  }
  return found;
}

/// Tasks of node `node` in Slurm's list, such as "4(x2),3".
SUPEROFFLOAD_INLINE int tasks_of_node(std::string const& list, int node) {
  auto const wrong = [&]() -> int {
    fail(exit_code::bad_input, "the environment variable SLURM_STEP_TASKS_PER_NODE is '", printable(list),
         "': expected such as 4(x2),3 with an entry for node ", node, ", as SLURM_NODEID says");
  };
  std::string_view rest{list};
  auto const take = [&] {
    int number = 0;
    auto const [end, status] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (status != std::errc{} || number < 1 || number > most_ranks) {
      wrong();
    }
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    return number;
  };
  for (int first = 0;;) {
    int const tasks = take();
    int times = 1;
    if (rest.starts_with("(x")) {
      rest.remove_prefix(2);
      times = take();
      if (!rest.starts_with(')')) {
        return wrong();
      }
      rest.remove_prefix(1);
    }
    if (node < first + times) {
      return tasks;
    }
    first += times;
    if (!rest.starts_with(',')) {
      return wrong();
    }
    rest.remove_prefix(1);
  }
}

SUPEROFFLOAD_INLINE environment of_slurm(reader& r) {
  environment found;
  found.launcher = "srun";
  r.because("SLURM_STEP_ID");
  found.ranks = r.number({"SLURM_STEP_NUM_TASKS"}, 1, most_ranks);
  found.rank = r.number({"SLURM_PROCID"}, 0, found.ranks - 1);
  int const node = r.number({"SLURM_NODEID"}, 0, most_ranks);
  found.local_ranks = tasks_of_node(r.text("SLURM_STEP_TASKS_PER_NODE"), node);
  found.local_rank = r.number({"SLURM_LOCALID"}, 0, found.local_ranks - 1);
  found.job = "slurm " + r.text("SLURM_JOB_ID") + "." + r.text("SLURM_STEP_ID");
  return found;
}

SUPEROFFLOAD_INLINE environment of_torch(reader& r) {
  auto found =
      of_names(r, {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", {"LOCAL_WORLD_SIZE", "LOCAL_SIZE"}});
  if (r.has("LOCAL_WORLD_SIZE") && r.has("LOCAL_SIZE")) {
    expect(found.local_ranks == r.number({"LOCAL_SIZE"}, 1, most_ranks), exit_code::bad_input,
           "the environment variables LOCAL_WORLD_SIZE and LOCAL_SIZE are '",
           printable(r.text("LOCAL_WORLD_SIZE")), "' and '", printable(r.text("LOCAL_SIZE")),
           "': expected the same number");
  }
  if (r.has("SUPEROFFLOAD_SEGMENT")) {
    found.launcher = "superoffload";
    found.shared_segment = r.number({"SUPEROFFLOAD_SEGMENT"}, 3, 1 << 20);
    expect(found.local_ranks == found.ranks, exit_code::bad_input, "SUPEROFFLOAD_SEGMENT is set, and ",
           found.local_ranks, " of ", found.ranks, " ranks are of this host: expected all of them");
  }
  if (r.has("MASTER_PORT")) {
    found.port = r.number({"MASTER_PORT"}, 1, 65535);
    found.job = concat("port ", found.port);
  }
  found.address = r.text("MASTER_ADDR");
  return found;
}

SUPEROFFLOAD_INLINE std::optional<environment> find(reader& r) {
  if (r.has("RANK") || r.has("WORLD_SIZE")) {
    return of_torch(r);
  }
  expect(!r.has("SUPEROFFLOAD_SEGMENT"), exit_code::bad_input,
         "the environment variable SUPEROFFLOAD_SEGMENT is set, but RANK is not: they belong together");
  if (r.has("OMPI_COMM_WORLD_RANK") || r.has("OMPI_COMM_WORLD_SIZE")) {
    return of_names(r, {"Open MPI",
                        "OMPI_COMM_WORLD_RANK",
                        "OMPI_COMM_WORLD_SIZE",
                        "OMPI_COMM_WORLD_LOCAL_RANK",
                        {"OMPI_COMM_WORLD_LOCAL_SIZE"}});
  }
  if (r.has("PMI_RANK") || r.has("PMI_SIZE")) {
    return of_names(r, {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", {"MPI_LOCALNRANKS"}});
  }
  if (r.has("SLURM_STEP_ID") && r.has("SLURM_PROCID")) {
    return of_slurm(r);
  }
  if (r.has("PMIX_RANK")) {
    r.because("PMIX_RANK");
    environment found;
    found.launcher = "PMIx";
    found.ranks = found.local_ranks = r.number({"SUPEROFFLOAD_RANKS"}, 1, most_ranks);
    found.rank = found.local_rank = r.number({"PMIX_RANK"}, 0, found.ranks - 1);
    return found;
  }
  return std::nullopt;
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::optional<environment> read_environment(variables const& value_of) {
  detail::reader r{value_of};
  auto found = detail::find(r);
  if (found) {
    if (r.has("SUPEROFFLOAD_JOB")) {
      found->job = r.text("SUPEROFFLOAD_JOB");
      expect(!found->job.empty() && found->job.size() <= 64, exit_code::bad_input,
             "the environment variable SUPEROFFLOAD_JOB has ", found->job.size(), " bytes: expected 1 to 64");
    } else if (found->job.empty() && r.has("PMIX_NAMESPACE")) {
      found->job = "pmix " + r.text("PMIX_NAMESPACE");
    }
  }
  return found;
}

SUPEROFFLOAD_INLINE std::optional<environment> read_environment() {
  return read_environment([](char const* name) { return std::getenv(name); });
}

}  // namespace superoffload::comm
