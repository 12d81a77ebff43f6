// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/io/fault.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/train/run/metrics.hpp>

#include <doctest/doctest.h>

#include "support/scratch_directory.hpp"

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

using namespace superoffload;

std::vector<io::json> lines_of(std::filesystem::path const& file) {
  std::vector<io::json> lines;
  std::ifstream stream{file};
  for (std::string line; std::getline(stream, line);) { lines.push_back(io::json::parse(line)); }
  return lines;
}

TEST_CASE("a step is one line of JSON with every number in full") {
  train::step_metrics m;
  m.step = 3;
  m.loss = 1.0 / 3.0;
  m.grad_norm = std::numeric_limits<double>::infinity();
  m.skipped = true;
  auto const json = io::json::parse(to_json(m));
  CHECK(json["step"] == 3);
  CHECK(json["loss"].get<double>() == 1.0 / 3.0);
  CHECK(json["grad_norm"].is_null());
  CHECK(json["skipped"] == true);
  for (char const* const name : {"lr", "step_time_ms", "tokens_per_second", "label_tokens", "model_tflops",
                                 "hardware_tflops", "host_bytes", "device_bytes"}) {
    CAPTURE(name);
    CHECK(json.contains(name));
  }
  CHECK_FALSE(json.contains("deepspeed_tflops"));
  m.deepspeed_tflops = 1.5;
  CHECK(io::json::parse(to_json(m))["deepspeed_tflops"] == 1.5);
}

TEST_CASE("a resumed run drops lines after its checkpoint, and half a line") {
  auto const file =
      std::filesystem::temp_directory_path() / ("metrics-" + std::to_string(::getpid()) + ".jsonl");
  {
    train::metrics_file metrics{{.file = file, .last_step = 0}};
    for (int step = 1; step <= 5; ++step) {
      train::step_metrics m;
      m.step = step;
      metrics.write(to_json(m));
    }
  }
  std::ofstream{file, std::ios::app} << "{\"step\": 6, \"lo";
  { train::metrics_file const metrics{{.file = file, .last_step = 3}}; }
  auto const kept = lines_of(file);
  REQUIRE(kept.size() == 3);
  CHECK(kept.back()["step"] == 3);
  { train::metrics_file const metrics{{.file = file, .last_step = 0}}; }
  CHECK(lines_of(file).empty());
  std::filesystem::remove(file);
}

/// Ends the process at operation number `at`.
long operations_left = -1;
int end_process(io::operation, std::filesystem::path const&) {
  if (operations_left >= 0 && operations_left-- == 0) {
    ::_exit(0);
  }
  return 0;
}

TEST_CASE("every line names its run, and a run that goes on leaves the lines of others") {
  test::scratch_directory const directory;
  auto const file = directory.path() / "metrics.jsonl";
  auto const write = [&](std::string const& run, std::int64_t last_step, int steps) {
    train::metrics_file metrics{{.file = file, .last_step = last_step, .run = run}};
    train::step_metrics m;
    for (m.step = last_step + 1; m.step <= last_step + steps; ++m.step) { metrics.write(to_json(m, run)); }
    metrics.write(to_json(train::evaluation_metrics{.step = m.step - 1, .loss = 0.5}, run));
  };
  auto const runs = [&] {
    std::vector<std::string> found;
    for (auto const& line : lines_of(file)) {
      found.push_back(line.value("run", std::string{"none"}) + line["step"].dump());
    }
    return found;
  };
  using names = std::vector<std::string>;
  write("a", 0, 3);
  CHECK(runs() == names{"a1", "a2", "a3", "a3"});
  write("b", 0, 1);
  write("a", 2, 1);  // goes on from step 2
  CHECK(runs() == names{"a1", "a2", "b1", "b1", "a3", "a3"});
  write("b", -1, 1);  // begins again
  CHECK(runs() == names{"a1", "a2", "a3", "a3", "b0", "b0"});
  // Lines of earlier versions name none: they are the run's.
  std::ofstream{file, std::ios::app} << R"({"step": 7, "loss": 1})" << "\n";
  write("b", 0, 1);
  CHECK(runs() == names{"a1", "a2", "a3", "a3", "b0", "b0", "b1", "b1"});
  { train::metrics_file const all{{.file = file, .last_step = -1, .run = "c", .keeps_other_runs = false}}; }
  CHECK(runs().empty());
}

TEST_CASE("lines that a power loss has torn are dropped, the others stay") {
  using namespace std::string_literals;
  test::scratch_directory const directory;
  auto const file = directory.path() / "metrics.jsonl";
  auto const line = [](int step) { return concat(R"({"step": )", step, R"(, "loss": 1})", "\n"); };
  auto const steps_after = [&](std::string const& content) {
    std::ofstream{file, std::ios::binary} << content;
    { train::metrics_file const metrics{{.file = file, .last_step = 5}}; }
    std::vector<int> steps;
    for (auto const& kept : lines_of(file)) { steps.push_back(kept["step"]); }
    return steps;
  };
  using numbers = std::vector<int>;
  std::string const zeros(30, '\0');
  CHECK(steps_after(line(1) + zeros) == numbers{1});
  CHECK(steps_after(zeros) == numbers{});
  CHECK(steps_after(zeros + line(2) + line(3)) == numbers{3});
  CHECK(steps_after(line(1) + zeros + "\n" + line(3)) == numbers{1, 3});
  CHECK(steps_after(line(1) + R"({"step": 2, )" + zeros + "1}\n" + line(3)) == numbers{1, 3});
  CHECK(steps_after(line(1) + R"({"st)" + zeros + R"(1})" + zeros + line(4)) == numbers{1});
  // Another file is none that a power loss has torn.
  for (auto const& other : {"\0\0\1\2 a program\n"s, "text\0\n"s + line(1), line(1) + "[\0\0]\n"}) {
    CAPTURE(other);
    CHECK_THROWS_WITH_AS(steps_after(other), doctest::Contains("is no file of metrics"), error);
    std::ifstream stream{file, std::ios::binary};
    CHECK(std::string{std::istreambuf_iterator<char>{stream}, {}} == other);
  }
}

TEST_CASE("a signal interrupts no reading of metrics") {
  test::scratch_directory const directory;
  auto const file = directory.path() / "metrics.jsonl";
  std::ofstream{file} << R"({"step": 1, "loss": 1})" << "\n";
  static int left = 0;
  for (int at = 0; at < 2; ++at) {
    left = at;
    io::fault.store([](io::operation, std::filesystem::path const&) { return left-- == 0 ? EINTR : 0; });
    { train::metrics_file const metrics{{.file = file, .last_step = 3}}; }
    io::fault.store(nullptr);
    CHECK(left < 0);
    CHECK(lines_of(file).size() == 1);
  }
}

TEST_CASE("if resuming is killed at any moment, the file has all lines up to the checkpoint") {
  test::scratch_directory const directory;
  auto const file = directory.path() / "metrics.jsonl";
  bool ended = false;
  for (long at = 0; !ended; ++at) {
    CAPTURE(at);
    std::filesystem::remove(file);
    {
      std::ofstream stream{file};
      for (int step = 1; step <= 5; ++step) { stream << "{\"step\": " << step << ", \"loss\": 1}\n"; }
      stream << "{\"step\": 6, \"lo";
    }
    auto const child = ::fork();
    if (child == 0) {
      operations_left = at;
      io::fault.store(&end_process);
      { train::metrics_file const metrics{{.file = file, .last_step = 3}}; }
      ::_exit(1);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    ended = WEXITSTATUS(status) == 1;
    std::ifstream stream{file};
    int found = 0;
    for (std::string line; std::getline(stream, line) && found < 3; ++found) {
      CHECK(io::json::parse(line)["step"] == found + 1);
    }
    CHECK(found == 3);
    if (ended) {
      CHECK(at > 3);
      CHECK(lines_of(file).size() == 3);
    }
  }
}

TEST_CASE("a file without metrics is not touched") {
  test::scratch_directory const directory;
  auto const file = directory.path() / "rows.jsonl";
  std::ofstream{file} << "{\"instruction\": \"a\"}\n";
  CHECK(train::has_content(file));
  CHECK_FALSE(train::has_content(directory.path() / "absent"));
  for (std::int64_t const step : {-1, 0, 7}) {
    CHECK_THROWS_WITH_AS((train::metrics_file{{.file = file, .last_step = step}}),
                         doctest::Contains("is no file of metrics"), error);
  }
  std::ifstream stream{file};
  std::string line;
  REQUIRE(std::getline(stream, line));
  CHECK(line == "{\"instruction\": \"a\"}");
}

TEST_CASE("a file that cannot be written is named") {
  CHECK_THROWS_WITH_AS((train::metrics_file{{.file = "/dev/null/metrics.jsonl", .last_step = 0}}),
                       doctest::Contains("/dev/null/metrics.jsonl"), error);
}

}  // namespace
