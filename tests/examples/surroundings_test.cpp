// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// What a program finds around it: closed descriptors, pipes that are read no more, pipes where files are
// expected, terminals that go away, too little memory.
#include <superoffload/io/train_checkpoint.hpp>

#include "examples/rejection.hpp"
#include "support/sanitizer.hpp"

#include <array>
#include <chrono>
#include <sys/stat.h>
#include <thread>

namespace {

using namespace superoffload;
using namespace superoffload::test;
namespace fs = std::filesystem;
using words = std::vector<std::string>;

words arguments(fs::path const& output, words const& more) {
  return finetune_run{"llama", joined({"--max_length", "64", "--batch_size", "2", "--dtype", "bf16"}, more)}
      .arguments(output);
}

void on_one_thread() {
  ::setenv("SUPEROFFLOAD_NUM_THREADS", "1", 1);
  ::alarm(100);
}

TEST_CASE("what is said to a closed descriptor reaches no file") {
  for (std::vector<int> const& closed : {std::vector{2}, std::vector{1, 2}, std::vector{0, 1, 2}}) {
    for (std::string const ranks : {"1", "2"}) {
      CAPTURE(closed.size());
      CAPTURE(ranks);
      scratch_directory const output;
      auto const done = program{
          finetune_llama,
          arguments(output.path(),
                    {"--max_steps", "8", "--save_steps", "1", "--log_interval", "1", "--ranks", ranks}),
          [&] {
            on_one_thread();
            for (int const descriptor : closed) { ::close(descriptor); }
          }}.wait();
      CHECK(done.status == 0);
      CHECK(metrics_in(output.path()).size() == 8);
      for (int step = 1; step <= 8; ++step) {
        auto const checkpoint = output.path() / ("checkpoint-" + std::to_string(step));
        CHECK_NOTHROW(io::checkpoint_reader::open(checkpoint).verify());
      }
    }
  }
}

TEST_CASE("output that is asked for and cannot be written is an error") {
  scratch_directory const root;
  auto const model = fs::path{SUPEROFFLOAD_TEST_DATA} / "tokenizers" / "llama3";
  auto const input = write_file(root.path() / "input", "\"a\"\n");
  auto const done =
      program{SUPEROFFLOAD_TOKENIZE, {"--model", model.string()}, [] { ::close(1); }, input}.wait();
  check_rejected(done, exit_code::io_failure, {"standard output", "Bad file descriptor"}, "tokenize");
}

TEST_CASE("progress that is read no more ends no run") {
  for (std::string const ranks : {"1", "2"}) {
    CAPTURE(ranks);
    scratch_directory const output;
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    program run{finetune_llama, arguments(output.path(), {"--max_steps", "4", "--ranks", ranks}), [&] {
                  on_one_thread();
                  ::dup2(ends[1], 1);
                  ::dup2(ends[1], 2);
                }};
    ::close(ends[1]);
    ::close(ends[0]);
    CHECK(run.wait().status == 0);
    CHECK(fs::exists(output.path() / "model" / "model.safetensors"));
    CHECK(metrics_in(output.path()).size() == 4);
  }
}

TEST_CASE("progress that is not read makes no rank wait") {
  for (std::string const ranks : {"1", "2"}) {
    CAPTURE(ranks);
    scratch_directory const output;
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    REQUIRE(::fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
    std::string const full(4096, '.');
    while (::write(ends[1], full.data(), full.size()) > 0) {}
    REQUIRE(::fcntl(ends[1], F_SETFL, 0) == 0);
    program run{finetune_llama,
                arguments(output.path(), {"--max_steps", "4", "--save_steps", "2", "--ranks", ranks}), [&] {
                  on_one_thread();
                  ::dup2(ends[1], 2);
                }};
    ::close(ends[1]);
    for (int i = 0; i < 4500 && run.running() && !fs::exists(output.path() / "model"); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
    CHECK(fs::exists(output.path() / "model"));
    std::string said;
    std::array<char, 4096> block{};
    for (ssize_t got = 1; got > 0;) {
      got = ::read(ends[0], block.data(), block.size());
      said.append(block.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    }
    ::close(ends[0]);
    CHECK(run.wait().status == 0);
    CHECK(said.find("saved ") != std::string::npos);  // what stays is said when it is read
    CHECK(said.find("step 4/4") != std::string::npos);
  }
}

TEST_CASE(
    "a terminal that goes away is a signal to save, once or several times, unless nohup says otherwise") {
  for (bool const ignored : {false, true}) {
    CAPTURE(ignored);
    scratch_directory const output;
    program run{finetune_llama, arguments(output.path(), {"--max_steps", ignored ? "200" : "100000"}), [=] {
                  on_one_thread();
                  std::signal(SIGHUP, ignored ? SIG_IGN : SIG_DFL);
                }};
    while (run.running() && series(output.path(), "loss").size() < 3) {
      std::this_thread::sleep_for(std::chrono::milliseconds{2});
    }
    for (int i = 0; i < 3; ++i) { run.send(SIGHUP); }
    auto const done = run.wait();
    CAPTURE(done.err);
    auto const steps = series(output.path(), "loss").size();
    CHECK(done.status == (ignored ? 0 : 7));
    CHECK(steps == (ignored ? 200 : steps));
    CHECK(fs::exists(output.path() / ("checkpoint-" + std::to_string(steps))) == !ignored);
  }
}

TEST_CASE("a pipe for metrics is refused, not waited for") {
  scratch_directory const output;
  auto const pipe = output.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  auto const done =
      program{finetune_llama,
              arguments(output.path() / "out", {"--max_steps", "1", "--metrics", pipe.string()}),
              on_one_thread}
          .wait();
  check_failure(done, exit_code::bad_input, {pipe.string(), "regular file"});
}

TEST_CASE("too little memory, wherever it is missed, is exit code 3 and a sentence") {
  if (under_sanitizer) {
    return;  // which needs all addresses
  }
  int missed = 0;
  for (rlim_t mib = 40; mib <= 800; mib += mib < 240 ? 8 : 80) {
    CAPTURE(mib);
    scratch_directory const output;
    auto const done = program{
        finetune_llama, arguments(output.path(), {"--max_steps", "1"}), [=] {
          on_one_thread();
          ::setenv("SUPEROFFLOAD_NUM_THREADS", "2", 1);
          rlimit const limit{mib << 20, mib << 20};
          ::setrlimit(RLIMIT_AS, &limit);
        }}.wait();
    CAPTURE(done.err);
    if (done.status == 127 && done.err.find("error while loading shared libraries") != std::string::npos) {
      continue;  // the program was not begun: with CUDA it is linked to large libraries
    }
    if (done.status != 0) {
      ++missed;
      check_failure(done, exit_code::cannot_fit, {});
    }
  }
  CHECK(missed > 0);
}

}  // namespace
