// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cpu/cores.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <unistd.h>

using namespace superoffload;

namespace {
/// A directory that looks like mounted control groups.
class groups {
public:
  groups()
      : root_{std::filesystem::temp_directory_path() / ("superoffload_groups_" + std::to_string(getpid()))} {}
  groups(groups const&) = delete;
  groups& operator=(groups const&) = delete;
  ~groups() { std::filesystem::remove_all(root_); }

  void write(std::string const& path, std::string const& text) const {
    auto const file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream{file} << text;
  }
  [[nodiscard]] std::string root() const { return root_.string(); }

private:
  std::filesystem::path root_;
};

constexpr int unlimited = std::numeric_limits<int>::max();
TEST_CASE("the optimizer gets a share of the cores, at least one, but never all of several") {
  CHECK(cpu::optimizer_threads(0.9, 16) == 14);
  CHECK(cpu::optimizer_threads(0.8, 5) == 4);  // .8 * 5 is a little below 4
  CHECK(cpu::optimizer_threads(1.0, 16) == 15);
  CHECK(cpu::optimizer_threads(0.01, 16) == 1);
  CHECK(cpu::optimizer_threads(1.0, 2) == 1);
  CHECK(cpu::optimizer_threads(1.0, 1) == 1);
}

}  // namespace

TEST_CASE("the lowest quota of a group and its ancestors counts") {
  groups const mounted;
  CHECK(cpu::cores_by_quota("0::/a/b\n", mounted.root()) == unlimited);
  mounted.write("a/b/cpu.max", "max 100000\n");
  CHECK(cpu::cores_by_quota("0::/a/b\n", mounted.root()) == unlimited);
  mounted.write("a/cpu.max", "250000 100000\n");
  CHECK(cpu::cores_by_quota("0::/a/b\n", mounted.root()) == 3);
  mounted.write("cpu.max", "50000 100000\n");
  CHECK(cpu::cores_by_quota("0::/a/b\n", mounted.root()) == 1);
  CHECK(cpu::cores_by_quota("0::/\n", mounted.root()) == 1);
}

TEST_CASE("quotas of version 1 of control groups count, too") {
  groups const mounted;
  mounted.write("cpu/job/cpu.cfs_quota_us", "400000\n");
  mounted.write("cpu/job/cpu.cfs_period_us", "100000\n");
  mounted.write("cpu/cpu.cfs_quota_us", "-1\n");
  mounted.write("cpu/cpu.cfs_period_us", "100000\n");
  CHECK(cpu::cores_by_quota("5:memory:/job\n4:cpu,cpuacct:/job\n", mounted.root()) == 4);
  CHECK(cpu::cores_by_quota("5:cpuset:/job\n", mounted.root()) == unlimited);
}

TEST_CASE("invalid text in a control group limits nothing") {
  groups const mounted;
  for (auto const* const text : {"", "\n", "0 100000", "-5 100000", "100000", "100000 0", "x y"}) {
    mounted.write("cpu.max", text);
    CHECK(cpu::cores_by_quota("0::/\n", mounted.root()) == unlimited);
  }
  CHECK(cpu::cores_by_quota("", mounted.root()) == unlimited);
  CHECK(cpu::cores_by_quota("no colons\n1:one\n\n", mounted.root()) == unlimited);
}

TEST_CASE("SUPEROFFLOAD_NUM_THREADS decides, and is read strictly") {
  auto const* const before = std::getenv("SUPEROFFLOAD_NUM_THREADS");
  std::string const saved{before == nullptr ? "" : before};
  setenv("SUPEROFFLOAD_NUM_THREADS", "7", 1);
  CHECK(cpu::default_threads() == 7);
  for (auto const* const wrong :
       {"", "0", "-1", "+2", " 2", "2 ", "2x", "two", "4097", "99999999999999999999"}) {
    setenv("SUPEROFFLOAD_NUM_THREADS", wrong, 1);
    try {
      static_cast<void>(cpu::default_threads());
      FAIL("accepted '", wrong, "'");
    } catch (error const& e) {
      CHECK(e.code() == exit_code::bad_input);
      CHECK(std::string{e.what()}.find("SUPEROFFLOAD_NUM_THREADS") != std::string::npos);
    }
  }
  unsetenv("SUPEROFFLOAD_NUM_THREADS");
  CHECK(cpu::default_threads() == cpu::usable_cores());
  CHECK(cpu::usable_cores() >= 1);
  if (before != nullptr) {
    setenv("SUPEROFFLOAD_NUM_THREADS", saved.c_str(), 1);
  }
}
