// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cpu/resource_group.hpp>

#include <doctest/doctest.h>

#include "support/scratch_directory.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

using namespace superoffload;

TEST_CASE("threads are written to the group's tasks; the group is created if needed") {
  test::scratch_directory const mount;
  for (bool const exists : {false, true}) {
    CAPTURE(exists);
    CHECK(cpu::join_resource_group("adam", {17, 18}, mount.path().string()).empty());
  }
  std::ifstream tasks{mount.path() / "adam" / "tasks"};
  std::stringstream text;
  text << tasks.rdbuf();
  CHECK(text.str() == "17\n18\n17\n18\n");
}

TEST_CASE("a host without such groups gives a note that names the group and the reason") {
  auto const note = cpu::join_resource_group("adam", {17}, "/nowhere/resctrl");
  CHECK(note.find("'adam'") != std::string::npos);
  CHECK(note.find("/nowhere/resctrl/adam: No such file") != std::string::npos);
}

TEST_CASE("a refused write gives a note too") {
  test::scratch_directory const mount;
  std::filesystem::create_directories(mount.path() / "adam" / "tasks");  // a directory instead of the file
  CHECK(cpu::join_resource_group("adam", {17}, mount.path().string()).find("tasks: Is a directory") !=
        std::string::npos);
}

TEST_CASE("a name that leaves the mount is refused") {
  for (std::string const name : {"", "..", "../x", "a/b", ".hidden"}) {
    CHECK_THROWS_AS(cpu::join_resource_group(name, {17}, "/nowhere"), error);
  }
}
