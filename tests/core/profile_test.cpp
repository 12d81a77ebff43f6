// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/profile.hpp>

#include <doctest/doctest.h>

#include "support/recording_listener.hpp"

#include <string>
#include <thread>
#include <type_traits>
#include <vector>

using namespace superoffload;

TEST_CASE("a listener gets each thread's ranges in order, and none before or after it is set") {
  test::recording_listener heard;
  { profile::range const before{"before"}; }
  profile::listen(&heard);
  {
    profile::range const step{"step"};
    profile::begin("forward of ", std::string{"head"});
    profile::end();
    std::thread{[] { profile::range const other{"elsewhere"}; }}.join();
  }
  profile::listen(nullptr);
  { profile::range const after{"after"}; }
  CHECK(heard.of_this_thread() == std::vector<std::string>{"step", "  forward of head"});
  CHECK(heard.of_others() == std::vector<std::string>{"elsewhere"});
  CHECK(heard.balanced());
}

TEST_CASE("a session of the policy that does nothing takes no memory") {
  struct holder {
    [[no_unique_address]] profile::none::session session;
    int number;
  };
  CHECK(sizeof(holder) == sizeof(int));
}
