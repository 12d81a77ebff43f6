// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// The real program with several ranks, each a process of its own.
#include <superoffload/cpu/cores.hpp>

#include "examples/finetune.hpp"
#include "examples/reference_run.hpp"
#include "support/fault_case.hpp"
#include "support/sanitizer.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <map>
#include <numeric>
#include <random>
#include <sstream>
#include <string_view>
#include <sys/resource.h>
#include <thread>

namespace {

using namespace superoffload;
using namespace superoffload::test;
namespace fs = std::filesystem;

std::vector<std::string> joined(std::vector<std::string> flags, std::vector<std::string> const& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}
bool contains(std::string const& text, std::string_view part) { return text.find(part) != std::string::npos; }
std::string weights_of(fs::path const& output) { return contents_of(output / "model" / "model.safetensors"); }

using words = std::vector<std::string>;

std::vector<std::string> const short_run{"--max_steps", "6",    "--batch_size", "4",       "--max_length",
                                         "64",          "--lr", "1e-3",         "--dtype", "float32"};

void check_near(std::vector<double> const& a, std::vector<double> const& b, double tolerance) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(a[i] - b[i]) <= tolerance * std::abs(b[i]));
  }
}

/// The processes that `program` has started, by their rank, as long as they are there.
std::vector<pid_t> ranks_of(pid_t program) {
  std::vector<std::pair<int, pid_t>> found;
  std::error_code failure;
  for (auto const& entry : fs::directory_iterator{"/proc", failure}) {
    auto const name = entry.path().filename().native();
    if (name.find_first_not_of("0123456789") != std::string::npos) {
      continue;
    }
    auto const stat = contents_of(entry.path() / "stat");  // pid (name) state parent
    auto const end = stat.rfind(')');
    if (end == std::string::npos || end + 4 > stat.size() || std::atoi(stat.c_str() + end + 4) != program) {
      continue;
    }
    auto const variables = contents_of(entry.path() / "environ");
    auto const at = variables.find(std::string{'\0'} + "RANK=");
    if (at != std::string::npos) {
      found.emplace_back(std::atoi(variables.c_str() + at + 6), std::stoi(name));
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<pid_t> ids;
  for (auto const& [rank, id] : found) { ids.push_back(id); }
  return ids;
}

TEST_CASE("every reference run gives the losses of one rank on 2, 3 and 4, with and without offloading") {
  int runs = 0;
  for (std::string const model : {"llama", "llama_tied"}) {
    auto const expected = io::read_json(models / model / "expected.json", {.bytes = std::size_t{4} << 20});
    for (auto const& truth : expected["train"]) {
      auto const& args = truth["args"];
      for (std::string const dtype : {"float32", "bf16"}) {
        if (dtype == "float32" && args["dtype"] == "bfloat16") {
          continue;
        }
        if (superoffload::test::under_sanitizer && runs % 4 != 0) {
          ++runs;
          continue;
        }
        auto const name = args["name"].get<std::string>();
        CAPTURE(model);
        CAPTURE(name);
        CAPTURE(dtype);
        auto const flags = joined(flags_of(args), {"--dtype", dtype});
        scratch_directory const one;
        REQUIRE(finetune_run{model, flags}.run_in(one.path()).status == 0);
        for (int const ranks : {2, 3, 4}) {
          if (superoffload::test::under_sanitizer && ranks != 2 + runs % 3) {
            continue;
          }
          CAPTURE(ranks);
          scratch_directory const output;
          auto all = joined(flags, {"--ranks", std::to_string(ranks)});
          if ((ranks + runs) % 2 == 0) {
            all = joined(all, {"--offload", "super", "--ratio", "0.7", "--bucket_mib", "1"});
          }
          auto const done = finetune_run{model, all}.run_in(output.path());
          CAPTURE(done.err);
          REQUIRE(done.status == 0);
          check_near(series(output.path(), "loss"), series(one.path(), "loss"),
                     dtype == "bf16" ? 2e-3 : 2e-5);
          CHECK(series(output.path(), "label_tokens") == series(one.path(), "label_tokens"));
        }
        ++runs;
      }
    }
  }
  CHECK(runs == 11);
}

TEST_CASE("ranks and micro-batches that share a step by its work train on the same rows") {
  for (words const& batches : {words{"--batch_size", "6"},
                               {"--batch_size", "3", "--packing", "on", "--max_length", "256"},
                               {"--tokens_per_batch", "300"},
                               {"--tokens_per_batch", "800", "--packing", "on", "--max_length", "256"}}) {
    CAPTURE(batches.back());
    CAPTURE(batches.front());
    using superoffload::test::under_sanitizer;
    auto const flags = joined({"--max_length", "64", "--lr", "1e-3", "--dtype", "float32", "--max_steps",
                               under_sanitizer ? "3" : "8"},
                              batches);
    scratch_directory const one;
    REQUIRE(finetune_run{"llama", flags}.run_in(one.path()).status == 0);
    for (auto const& shape : {std::pair{"1", "3"}, {"2", "1"}, {"2", "2"}, {"4", "1"}}) {
      auto const* const ranks = shape.first;
      auto const* const accumulation = shape.second;
      CAPTURE(ranks);
      CAPTURE(accumulation);
      if (under_sanitizer && std::string_view{accumulation} != "2") {  // it has both, ranks and micro-batches
        continue;
      }
      scratch_directory const output;
      auto const done =
          finetune_run{"llama",
                       joined(flags, {"--ranks", ranks, "--gradient_accumulation_steps", accumulation})}
              .run_in(output.path());
      CAPTURE(done.err);
      REQUIRE(done.status == 0);
      check_near(series(output.path(), "loss"), series(one.path(), "loss"), 2e-5);
      for (char const* const exact : {"label_tokens", "tokens", "epoch"}) {
        CHECK(series(output.path(), exact) == series(one.path(), exact));
      }
    }
  }
}

TEST_CASE("ranks that share sequences train, evaluate and save as one rank does") {
  for (words const& batches : {words{"--batch_size", "4", "--max_length", "64"},
                               {"--tokens_per_batch", "600", "--packing", "on", "--max_length", "256"}}) {
    CAPTURE(batches.front());
    auto const flags =
        joined({"--lr", "1e-3", "--dtype", "float32", "--eval_dataset", some_rows.string()}, batches);
    scratch_directory const one;
    REQUIRE(finetune_run{"llama", joined(flags, {"--max_steps", "6"})}.run_in(one.path()).status == 0);
    for (auto const& shape : {std::pair{"2", "1"}, {"4", "2"}}) {
      if (superoffload::test::under_sanitizer && std::string_view{shape.first} == "2") {
        continue;
      }
      CAPTURE(shape.first);
      scratch_directory const output;
      auto const ranks = joined(flags, {"--ranks", shape.first, "--gradient_accumulation_steps", shape.second,
                                        "--sequence_parallel", "2"});
      auto const half =
          joined(ranks, {"--max_steps", "3", "--lr_scheduler", "constant", "--save_checkpoint"});
      REQUIRE(finetune_run{"llama", half}.run_in(output.path()).status == 0);
      scratch_directory const whole;
      auto const done = finetune_run{"llama", joined(ranks, {"--max_steps", "6"})}.run_in(whole.path());
      CAPTURE(done.err);
      REQUIRE(done.status == 0);
      CHECK(contains(done.out, "of 2 ranks that share them"));
      check_near(series(whole.path(), "loss"), series(one.path(), "loss"), 2e-5);
      for (char const* const exact : {"label_tokens", "tokens", "epoch"}) {
        CHECK(series(whole.path(), exact) == series(one.path(), exact));
      }
      // A checkpoint continues on one rank.
      auto const resumed =
          finetune_run{"llama",
                       joined(flags, {"--max_steps", "4", "--lr_scheduler", "constant", "--resume", "auto"})}
              .run_in(output.path());
      CAPTURE(resumed.err);
      CHECK(resumed.status == 0);
      CHECK(series(output.path(), "loss").size() == 4);
    }
  }
}

TEST_CASE(
    "ranks that keep copies of the weights train as ranks with one do, and save what any number resumes") {
  auto const flags = joined(short_run, {"--lr_scheduler", "constant", "--ranks", "4"});
  auto const trained = [&](words const& more) {
    scratch_directory const output;
    auto const done = finetune_run{"llama", joined(flags, more)}.run_in(output.path());
    CAPTURE(done.err);
    REQUIRE(done.status == 0);
    return std::pair{weights_of(output.path()), series(output.path(), "loss")};
  };
  auto const one_copy = trained({});
  CHECK(trained({"--hybrid_sharding", "2"}) == one_copy);
  if (superoffload::test::under_sanitizer) {
    return;
  }
  CHECK(trained({"--hybrid_sharding", "1", "--offload", "super", "--ratio", "1"}) == one_copy);
  words const two{"--gradient_accumulation_steps", "2", "--batch_size", "8"};
  auto const summed = trained(joined(two, {"--hybrid_sharding", "2"}));
  check_near(summed.second, trained(two).second, 2e-5);

  scratch_directory const output;
  auto const resumed = [&](words const& more) {
    auto const done = finetune_run{"llama", joined(joined(flags, two),
                                                   joined(more, {"--resume", "auto", "--save_checkpoint"}))}
                          .run_in(output.path());
    CAPTURE(done.err);
    REQUIRE(done.status == 0);
  };
  resumed({"--max_steps", "2", "--hybrid_sharding", "2"});
  resumed({"--max_steps", "6", "--hybrid_sharding", "2"});
  CHECK(weights_of(output.path()) == summed.first);
  resumed({"--max_steps", "7", "--ranks", "2", "--hybrid_sharding", "1"});
}

TEST_CASE("ranks that share sequences are padded within the longest sequence that a run allows") {
  scratch_directory const one, output;
  // One of two groups has a sequence of 15 tokens, the other none; each rank has 8 rows.
  words const flags{"--max_length", "15", "--batch_size", "1", "--max_steps", "3", "--dtype", "float32"};
  REQUIRE(finetune_run{"llama", flags}.run_in(one.path()).status == 0);
  auto const done = finetune_run{"llama", joined(flags, {"--ranks", "4", "--sequence_parallel", "2"})}.run_in(
      output.path());
  CAPTURE(done.err);
  REQUIRE(done.status == 0);
  check_near(series(output.path(), "loss"), series(one.path(), "loss"), 2e-5);
}

TEST_CASE("two identical runs on several ranks are identical bit for bit") {
  scratch_directory const first, second;
  finetune_run const r{"llama", joined(short_run, {"--dtype", "bf16", "--ranks", "3", "--offload", "super",
                                                   "--ratio", "0.6", "--bind_cores_to_rank", "off"})};
  REQUIRE(r.run_in(first.path()).status == 0);
  REQUIRE(r.run_in(second.path()).status == 0);
  CHECK(series(first.path(), "loss").size() == 6);
  CHECK(series(first.path(), "loss") == series(second.path(), "loss"));
  CHECK(weights_of(first.path()) == weights_of(second.path()));
}

TEST_CASE("the first rank tells of a run, and what it tells is of all") {
  scratch_directory const output;
  auto const done =
      finetune_run{"llama",
                   joined(short_run, {"--ranks", "3", "--wall_clock_breakdown", "--plan",
                                      (output.path() / "plan.json").string(), "--trace",
                                      (output.path() / "trace.json").string(), "--trace_steps", "6"})}
          .run_in(output.path());
  CAPTURE(done.err);
  REQUIRE(done.status == 0);
  CHECK(contains(done.out, "in 1 micro-batch on each of 3 ranks"));
  CHECK(done.out.find("plan for") == done.out.rfind("plan for"));
  CHECK(contains(done.err, "step 6/6"));
  CHECK(!contains(done.err, "rank 1"));
  CHECK(series(output.path(), "tokens").size() == 6);
  auto const plan = io::json::parse(contents_of(output.path() / "plan.json"));
  CHECK(plan["fits"] == true);
  CHECK(contains(done.out, "  collectives: "));
  CHECK(plan["collectives"]["bytes"] > 0);
  CHECK(plan["collectives"]["ms"] > 0);
  CHECK(plan["collectives"]["waited_ms"] > 0);
  CHECK(plan["busy"]["collectives"] > 0);
  CHECK(plan["activities"]["gather"]["count"] >= plan["activities"]["reduce"]["count"]);

  // As many exchanges as planned were made, and the step says how much of it they took.
  CHECK(contains(done.err, ", collectives "));
  for (auto const& line : metrics_in(output.path())) {
    CHECK(line["breakdown"]["busy"]["collectives"] > 0);
    CHECK(line["breakdown"]["busy"]["link_up"] == 0);
  }
  std::map<int, std::string> rows;
  std::map<std::string, int> gathers, reductions;
  auto const trace = io::json::parse(contents_of(output.path() / "trace.json"));
  for (auto const& event : trace["traceEvents"]) {
    auto const name = event["name"].get<std::string>();
    if (name == "thread_name") {
      rows[event["tid"]] = event["args"]["name"];
    } else if (event["ph"] == "X" && rows[event["tid"]] == "between ranks") {
      ++(name.starts_with("weights of ") ? gathers : reductions)[name];
    }
  }
  auto const sum = [](std::map<std::string, int> const& all) {
    return std::accumulate(all.begin(), all.end(), 0, [](int n, auto const& of) { return n + of.second; });
  };
  auto const& planned = plan["activities"];
  CHECK(sum(reductions) == 6 * planned["reduce"]["count"].get<int>());
  CHECK(sum(gathers) == 6 * planned["gather"]["count"].get<int>());
}

TEST_CASE("ranks that somebody else starts find each other, and say what differs between them once") {
  auto const start = [](fs::path const& output, int rank, std::vector<std::string> const& flags) {
    return program{finetune_llama, finetune_run{"llama", joined(short_run, flags)}.arguments(output),
                   [rank, output] {
                     ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
                     auto const text = std::to_string(rank);
                     ::setenv("RANK", text.c_str(), 1);
                     ::setenv("LOCAL_RANK", text.c_str(), 1);
                     ::setenv("WORLD_SIZE", "2", 1);
                     ::setenv("LOCAL_WORLD_SIZE", "2", 1);
                     ::setenv("SUPEROFFLOAD_JOB", output.filename().c_str(), 1);
                   }};
  };
  scratch_directory const one, output;
  REQUIRE(finetune_run{"llama", short_run}.run_in(one.path()).status == 0);
  {
    auto first = start(output.path(), 0, {});
    auto second = start(output.path(), 1, {});
    CHECK(first.wait().status == 0);
    auto const other = second.wait();
    CHECK(other.status == 0);
    CHECK(other.out == "");
    CHECK(other.err == "");
    check_near(series(output.path(), "loss"), series(one.path(), "loss"), 2e-5);
  }
  {  // as DeepSpeed's launcher does, and without --device: a host without visible GPUs has ranks on its CPU
    scratch_directory const chosen;
    auto first = start(chosen.path(), 0, {"--local_rank=0", "--device", "auto"});
    auto second = start(chosen.path(), 1, {"--local_rank=1", "--device", "auto"});
    auto const told = first.wait();
    auto const other = second.wait();
    CAPTURE(told.err);
    CHECK(told.status == 0);
    CHECK(contains(told.out, "--device auto is the cpu: "));
    CHECK(other.status == 0);
    CHECK(other.out == "");
    CHECK(series(chosen.path(), "loss") == series(output.path(), "loss"));
  }
  {
    auto first = start(output.path(), 0, {"--local_rank", "1"});
    auto const said = first.wait();
    CHECK(said.status == 2);
    CHECK(contains(said.err, "--local_rank is 1, but this process is number 0 of torchrun on its host"));
  }
  {
    auto first = start(output.path(), 0, {});
    auto second = start(output.path(), 1, {"--lr", "2e-3"});
    auto const said = first.wait();
    auto const other = second.wait();
    CHECK(said.status == 2);
    CHECK(contains(said.err,
                   "ranks differ in --lr: rank 0 has '0.001' (5 bytes), rank 1 has '0.002' (5 bytes)"));
    CHECK(other.status == 2);
    CHECK(other.err == "");
  }
  {
    auto first = start(output.path(), 0, {"--ranks", "3"});
    auto const said = first.wait();
    CHECK(said.status == 2);
    CHECK(contains(said.err, "--ranks is 3, but torchrun has started 2 ranks; leave the flag out"));
  }
}

TEST_CASE("wrong numbers of ranks and what ranks cannot do are refused in one line") {
  scratch_directory const output;
  auto const refused = [&](std::vector<std::string> const& flags, std::string_view said) {
    auto const done = finetune_run{"llama", joined(short_run, flags)}.run_in(output.path());
    CAPTURE(done.err);
    CHECK(done.status == 2);
    CHECK(contains(done.err, said));
    CHECK(std::count(done.err.begin(), done.err.end(), '\n') == 1);
  };
  refused({"--ranks", "0"}, "--ranks is 0, expected 1 to 1024");
  refused({"--hybrid_sharding", "0"}, "--hybrid_sharding is 0, expected 1 or more");
  refused({"--hybrid_sharding", "2"},
          "--hybrid_sharding is 2, but there is 1 rank; expected a number that divides");
  refused({"--ranks", "2", "--hybrid_sharding", "3"}, "--hybrid_sharding is 3, but there are 2 ranks");
  if (16 * cpu::usable_cores() < 1024) {
    refused({"--ranks", "1024"}, "--ranks is 1024, but this machine has ");
  }
  refused({"--ranks", "many"}, "--ranks");
  refused({"--gpus", "2"}, "--gpus is 2, but --device is cpu; expected --ranks for processes on the cpu");
  refused({"--ranks", "2", "--gpus", "3"}, "--ranks is 2, but --gpus is 3");
  refused({"--ranks", "2", "--offload_weights", "on"}, "--offload_weights is on, but 2 ranks train together");
  refused({"--sequence_parallel", "2"}, "--sequence_parallel is 2, but there is 1 rank; expected a number");
  refused({"--ranks", "4", "--sequence_parallel", "3"}, "--sequence_parallel is 3, but there are 4 ranks");
  refused({"--ranks", "2", "--sequence_parallel", "0"}, "--sequence_parallel is 0, but there are 2 ranks");
  auto const missing = finetune_run{"nowhere", joined(short_run, {"--ranks", "3"})}.run_in(output.path());
  CHECK(missing.status == 2);
  CHECK(missing.err.find("config.json") == missing.err.rfind("config.json"));
  auto const heads =
      finetune_run{"llama", joined(short_run, {"--ranks", "4", "--sequence_parallel", "4"})}.run_in(
          output.path());
  CHECK(heads.status == 2);
  CHECK(contains(heads.err, "--sequence_parallel is 4, but the model has 4 heads and 2 key-value heads"));
  CHECK(heads.err.find("key-value") == heads.err.rfind("key-value"));
}

TEST_CASE("a signal stops all ranks after the same step, and any number of them goes on from there") {
  std::vector<std::string> const flags{"--max_steps", "2000", "--batch_size", "2",       "--max_length",
                                       "64",          "--lr", "1e-4",         "--dtype", "float32"};
  for (bool const one_rank_only : {false, true}) {
    scratch_directory const output;
    program p{finetune_llama,
              finetune_run{"llama", joined(flags, {"--ranks", "2"})}.arguments(output.path())};
    while (p.running() && series(output.path(), "loss").size() < 3) {
      std::this_thread::sleep_for(std::chrono::milliseconds{2});
    }
    auto const ranks = ranks_of(p.id());
    REQUIRE(ranks.size() == 2);
    if (one_rank_only) {
      ::kill(ranks[1], SIGTERM);
    } else {
      p.send(SIGTERM);
    }
    auto const done = p.wait();
    CAPTURE(done.err);
    CHECK(done.status == 7);
    auto const steps = series(output.path(), "loss").size();
    CHECK(fs::exists(output.path() / ("checkpoint-" + std::to_string(steps)) / "rank-00001.bin"));
    auto const resumed =
        finetune_run{"llama", joined(flags, {"--ranks", one_rank_only ? "1" : "3", "--resume", "auto",
                                             "--max_steps", std::to_string(steps + 2)})}
            .run_in(output.path());
    CHECK(resumed.status == 0);
    CHECK(series(output.path(), "loss").size() == steps + 2);
  }
}

// Of the engine, at many more points: tests/train/rank_faults_test.cpp.
TEST_CASE("the end of a rank in mid-run ends the program, which names it, and leaves no process") {
  using std::chrono::milliseconds, std::chrono::seconds, std::chrono::steady_clock;
  std::mt19937 random{11};
  enum class fault { killed, full, stopped };
  bool const on_gpus = test_device() == "cuda";
  int const number = on_gpus ? test_gpus() : 3;
  REQUIRE(number > 1);
  for (int i = 0; i < in_long_tests(on_gpus ? 30 : 60, 10); ++i) {
    auto const what = i % 10 == 4 ? fault::stopped : i % 3 == 2 ? fault::full : fault::killed;
    auto const culprit = what == fault::full  // who has something to save
                             ? 0
                             : random() % static_cast<unsigned>(number);
    CAPTURE(i);
    CAPTURE(culprit);
    fault_case const injected{"F16"};
    scratch_directory const output;
    finetune_run const r{"llama",
                         {"--max_steps", "100000", "--batch_size", "4", "--max_length", "64", "--dtype",
                          "bf16", "--ranks", std::to_string(number), "--save_steps", "2",
                          "--save_total_limit", "1", "--offload", i % 2 == 0 ? "none" : "super"}};
    program p{finetune_llama, r.arguments(output.path())};
    std::vector<pid_t> ranks;
    while (p.running() && (ranks = ranks_of(p.id())).size() < static_cast<std::size_t>(number)) {
      std::this_thread::sleep_for(milliseconds{1});
    }
    REQUIRE(ranks.size() == static_cast<std::size_t>(number));
    if (what == fault::full) {  // a disk that is: the limit is met by its next checkpoint
      while (p.running() && series(output.path(), "loss").empty()) {
        std::this_thread::sleep_for(milliseconds{2});
      }
      rlimit const none{1000, 1000};
      REQUIRE(::prlimit(ranks[culprit], RLIMIT_FSIZE, &none, nullptr) == 0);
    } else {  // anywhere from its start on, which takes seconds on GPUs
      std::this_thread::sleep_for(milliseconds{random() % (on_gpus ? 8000 : 400)});
      ::kill(ranks[culprit], what == fault::killed ? SIGKILL : SIGSTOP);
    }
    auto const begin = steady_clock::now();
    auto const done = p.wait();
    CAPTURE(done.err);
    CHECK(done.status == (what == fault::full ? 4 : 10));
    CHECK(contains(done.err, "rank " + std::to_string(culprit) + " of " + std::to_string(number) + " "));
    for (auto const id : ranks) { CHECK((::kill(id, 0) != 0 && errno == ESRCH)); }
    if (on_gpus) {
      CHECK(steady_clock::now() - begin < seconds{what == fault::killed ? 10 : 40});
      // The GPUs are free again.
      auto const flags = joined(r.flags, {"--max_steps", "3"});
      scratch_directory const next;
      auto const later = finetune_run{"llama", flags}.run_in(next.path());
      CAPTURE(later.err);
      CHECK(later.status == 0);
    }
  }
}

}  // namespace
