// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/comm/environment.hpp>
#include <superoffload/core/error.hpp>

#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace superoffload;
using values = std::map<std::string, std::string>;

std::optional<comm::environment> read(values const& set) {
  return comm::read_environment([&](char const* name) {
    auto const at = set.find(name);
    return at == set.end() ? nullptr : at->second.c_str();
  });
}
std::string refusal(values const& set) {
  try {
    (void)read(set);
  } catch (error const& e) {
    CHECK(e.code() == exit_code::bad_input);
    return e.what();
  }
  return "accepted";
}
values with(values base, values const& more) {
  for (auto const& [name, value] : more) { base[name] = value; }
  return base;
}
values without(values base, std::string const& name) {
  base.erase(name);
  return base;
}

values const torchrun{{"RANK", "5"},
                      {"WORLD_SIZE", "8"},
                      {"LOCAL_RANK", "1"},
                      {"LOCAL_WORLD_SIZE", "4"},
                      {"MASTER_ADDR", "10.0.0.1"},
                      {"MASTER_PORT", "29500"}};
values const deepspeed{{"RANK", "1"},           {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"},
                       {"LOCAL_SIZE", "2"},     {"CROSS_RANK", "0"}, {"MASTER_ADDR", "127.0.0.1"},
                       {"MASTER_PORT", "29501"}};
values const open_mpi{{"OMPI_COMM_WORLD_RANK", "2"},
                      {"OMPI_COMM_WORLD_SIZE", "3"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                      {"PMIX_RANK", "2"},
                      {"PMIX_NAMESPACE", "prterun-host-77@1"}};
values const mpich{{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}};
values const slurm{{"SLURM_JOB_ID", "123"},       {"SLURM_STEP_ID", "0"},
                   {"SLURM_STEP_NUM_TASKS", "9"}, {"SLURM_NTASKS", "9"},
                   {"SLURM_PROCID", "8"},         {"SLURM_LOCALID", "0"},
                   {"SLURM_NODEID", "2"},         {"SLURM_STEP_TASKS_PER_NODE", "4(x2),1"}};

TEST_CASE("every launcher's variables are read") {
  struct expectation {
    values set;
    std::string launcher;
    int rank, ranks, local_rank, local_ranks;
    std::string job;
  };
  for (auto const& e : std::vector<expectation>{
           {torchrun, "torchrun", 5, 8, 1, 4, "port 29500"},
           {deepspeed, "torchrun", 1, 2, 1, 2, "port 29501"},
           {open_mpi, "Open MPI", 2, 3, 2, 3, "pmix prterun-host-77@1"},
           {mpich, "MPICH", 0, 2, 0, 2, ""},
           {slurm, "srun", 8, 9, 0, 1, "slurm 123.0"},
           {with(slurm, {{"SLURM_NODEID", "1"}, {"SLURM_LOCALID", "3"}, {"SLURM_PROCID", "7"}}), "srun", 7, 9,
            3, 4, "slurm 123.0"},
           {{{"PMIX_RANK", "1"}, {"SUPEROFFLOAD_RANKS", "2"}, {"PMIX_NAMESPACE", "n"}},
            "PMIx",
            1,
            2,
            1,
            2,
            "pmix n"},
           {{{"RANK", "0"}, {"WORLD_SIZE", "1"}}, "torchrun", 0, 1, 0, 1, ""},
           {with(torchrun, {{"SUPEROFFLOAD_JOB", "mine"}}), "torchrun", 5, 8, 1, 4, "mine"},
           {{{"RANK", "1"},
             {"WORLD_SIZE", "2"},
             {"LOCAL_RANK", "1"},
             {"LOCAL_WORLD_SIZE", "2"},
             {"SUPEROFFLOAD_SEGMENT", "7"}},
            "superoffload",
            1,
            2,
            1,
            2,
            ""},
       }) {
    CAPTURE(e.launcher);
    auto const found = read(e.set);
    REQUIRE(found);
    CHECK(found->launcher == e.launcher);
    CHECK(found->rank == e.rank);
    CHECK(found->ranks == e.ranks);
    CHECK(found->local_rank == e.local_rank);
    CHECK(found->local_ranks == e.local_ranks);
    CHECK(found->job == e.job);
    CHECK(found->shared_segment == (e.launcher == "superoffload" ? 7 : -1));
  }
  auto const found = read(torchrun);
  CHECK(found->address == "10.0.0.1");
  CHECK(found->port == 29500);
}

TEST_CASE("a process that no launcher has started is no rank") {
  CHECK_FALSE(read({}));
  // A batch script of Slurm outside of srun, and variables that schedulers and users leave set.
  CHECK_FALSE(read({{"SLURM_JOB_ID", "1"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}));
  CHECK_FALSE(read({{"LOCAL_RANK", "0"}, {"MASTER_PORT", "29500"}, {"PMIX_NAMESPACE", "n"}}));
}

TEST_CASE("the innermost launcher counts") {
  auto all = slurm;
  CHECK(read(all = with(all, mpich))->launcher == "MPICH");
  CHECK(read(all = with(all, open_mpi))->launcher == "Open MPI");
  CHECK(read(all = with(all, torchrun))->launcher == "torchrun");
}

TEST_CASE("numbers are whole, in range, and nothing else") {
  for (auto const* wrong :
       {"", " 5", "5 ", "+5", "-1", "0x5", "5.0", "five", "8", "99999999999999999999", "5\n"}) {
    CAPTURE(wrong);
    CHECK(refusal(with(torchrun, {{"RANK", wrong}})).find("RANK is '") != std::string::npos);
    CHECK(refusal(with(torchrun, {{"RANK", wrong}})).find("a whole number from 0 to 7") != std::string::npos);
  }
  CHECK(refusal(with(torchrun, {{"RANK", "\x1b[2J"}})).find("'\\x1b[2J'") != std::string::npos);
  for (auto const* wrong : {"0", "-8", "2000000", ""}) {
    CHECK(refusal(with(torchrun, {{"WORLD_SIZE", wrong}})).find("WORLD_SIZE is '") != std::string::npos);
  }
  CHECK(refusal(with(torchrun, {{"LOCAL_RANK", "4"}})).find("LOCAL_RANK is '4'") != std::string::npos);
  CHECK(refusal(with(torchrun, {{"LOCAL_WORLD_SIZE", "9"}})).find("LOCAL_WORLD_SIZE is '9'") !=
        std::string::npos);
  for (auto const* wrong : {"0", "65536", "http", ""}) {
    CHECK(refusal(with(torchrun, {{"MASTER_PORT", wrong}})).find("MASTER_PORT is '") != std::string::npos);
  }
  for (auto const* wrong : {"-1", "2", "x", ""}) {
    CHECK(refusal(with(deepspeed, {{"SUPEROFFLOAD_SEGMENT", wrong}})).find("SUPEROFFLOAD_SEGMENT is '") !=
          std::string::npos);
  }
  CHECK(refusal(with(mpich, {{"SUPEROFFLOAD_JOB", ""}})).find("SUPEROFFLOAD_JOB has 0 bytes") !=
        std::string::npos);
  CHECK(refusal(with(mpich, {{"SUPEROFFLOAD_JOB", std::string(65, 'j')}})).find("65 bytes") !=
        std::string::npos);
}

TEST_CASE("variables that belong together must all be set") {
  for (auto const* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}) {
    CAPTURE(name);
    auto const said = refusal(without(torchrun, name));
    CHECK(said.find(name) != std::string::npos);
    CHECK(said.find(" is not set, but ") != std::string::npos);
  }
  CHECK(refusal(without(torchrun, "LOCAL_WORLD_SIZE")).find("LOCAL_WORLD_SIZE or LOCAL_SIZE") !=
        std::string::npos);
  for (auto const& [name, value] : open_mpi) {
    if (name.starts_with("OMPI")) {
      CHECK(refusal(without(open_mpi, name)).find(name + " is not set") != std::string::npos);
    }
  }
  for (auto const& [name, value] : mpich) {
    CHECK(refusal(without(mpich, name)).find(name + " is not set") != std::string::npos);
  }
  for (auto const* name : {"SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_NODEID"}) {
    CHECK(refusal(without(slurm, name)).find(std::string{name} + " is not set") != std::string::npos);
  }
  CHECK(refusal({{"PMIX_RANK", "0"}}).find("SUPEROFFLOAD_RANKS is not set") != std::string::npos);
  CHECK(refusal({{"SUPEROFFLOAD_SEGMENT", "5"}}).find("RANK is not") != std::string::npos);
  CHECK(refusal(with(torchrun, {{"LOCAL_SIZE", "2"}})).find("the same number") != std::string::npos);
  CHECK(refusal(with(torchrun, {{"SUPEROFFLOAD_SEGMENT", "5"}})).find("expected all of them") !=
        std::string::npos);
}

TEST_CASE("Slurm's lists of tasks by node") {
  auto const tasks = [](std::string const& list, std::string const& node) {
    return with(slurm, {{"SLURM_STEP_TASKS_PER_NODE", list}, {"SLURM_NODEID", node}});
  };
  CHECK(read(tasks("9", "0"))->local_ranks == 9);
  CHECK(read(tasks("1,2(x3),7", "3"))->local_ranks == 2);
  CHECK(read(tasks("1,2(x3),7", "4"))->local_ranks == 7);
  for (auto const* wrong :
       {"", "x", "0", "4(", "4(x", "4(x2", "4(x0)", "4(x2),", ",4", "4;4", "4(x9999999999)"}) {
    CAPTURE(wrong);
    CHECK(refusal(tasks(wrong, "2")).find("SLURM_STEP_TASKS_PER_NODE is '") != std::string::npos);
  }
  CHECK(refusal(tasks("4(x2)", "2")).find("entry for node 2") != std::string::npos);
}

}  // namespace
