// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/comm/agreement.hpp>
#include <superoffload/comm/host_group.hpp>
#include <superoffload/core/error.hpp>

#include <doctest/doctest.h>

#include "comm/groups.hpp"
#include "conformance/communicator.hpp"

#include <string>
#include <vector>

namespace {

using namespace superoffload;
using conformance::require;

TEST_CASE("ranks that have the same value agree, whatever it is") {
  test::threads_of_a_process groups;
  for (int const ranks : {1, 2, 5}) {
    conformance::all_succeeded(groups.run(ranks, [](auto&, auto& group) {
      comm::expect_same(group, "nothing", "");
      comm::expect_same(group, "a word", "word");
      comm::expect_same(group, "a text", std::string(100000, 'x'));
    }));
  }
}

TEST_CASE("the texts of all ranks arrive in the order of the ranks") {
  test::threads_of_a_process groups;
  conformance::all_succeeded(groups.run(3, [](auto&, auto& group) {
    comm::host_group const ranks{group};
    require(ranks.rank() == group.rank() && ranks.ranks() == 3 && ranks.is_first() == (group.rank() == 0),
            "rank");
    auto const texts =
        comm::gather_texts(ranks, std::string(static_cast<std::size_t>(5 * group.rank()), 'x'));
    require(texts == std::vector<std::string>{"", "xxxxx", "xxxxxxxxxx"}, "texts");
    require(comm::max_over_ranks(ranks, (group.rank() + 1) % 3) == 2, "most");
    require(comm::sum_over_ranks(ranks, group.rank()) == 3, "sum");
    require(!comm::on_all_ranks(ranks, group.rank() != 1) && comm::on_all_ranks(ranks, true), "all");
    require(comm::on_any_rank(ranks, group.rank() == 1) && !comm::on_any_rank(ranks, false), "any");
  }));
}

TEST_CASE("a single rank is a group, too") {
  comm::host_group const alone;
  CHECK(comm::gather_texts(alone, "word") == std::vector<std::string>{"word"});
  CHECK(comm::max_over_ranks(alone, -3) == -3);
  CHECK(comm::on_all_ranks(alone, true));
  alone.abort("no other rank hears it");
  CHECK_THROWS_WITH_AS(comm::together(alone, [] { fail(exit_code::io_failure, "no"); }), "no", error);
}

TEST_CASE("an error on some ranks is thrown on all, as on the first of them") {
  test::threads_of_a_process groups;
  for (int const first : {0, 1}) {
    auto const outcomes = groups.run(3, [&](auto&, auto& group) {
      comm::host_group const ranks{group};
      comm::together(ranks, [] {});
      try {
        comm::together(ranks, [&] {
          if (group.rank() >= first) {
            fail(exit_code::io_failure, "disk ", group.rank(), " is full");
          }
        });
      } catch (comm::agreed_error const& e) {
        require(e.code() == exit_code::io_failure && e.is_first() == (group.rank() == 0), "another error");
        throw;
      }
    });
    for (auto const& said : outcomes) {
      CHECK(said == (first == 0 ? "disk 0 is full" : "rank 1: disk 1 is full"));
    }
  }
}

TEST_CASE("ranks that differ all get the same text with both values") {
  struct difference {
    std::string first, second, said;
  };
  auto const longer = std::string(500, 'a');
  for (auto const& d :
       std::vector<difference>{{"0.1", "0.2", "rank 0 has '0.1' (3 bytes), rank 2 has '0.2' (3 bytes)"},
                               {"", "x\n", "rank 0 has '' (0 bytes), rank 2 has 'x\\x0a' (2 bytes)"},
                               {longer + "1", longer + "2", "(501 bytes), rank 2 has 'aaa"},
                               {longer, longer + "2", "(500 bytes), rank 2 has 'aaa"}}) {
    test::threads_of_a_process groups;
    auto const outcomes = groups.run(4, [&](auto&, auto& group) {
      comm::abort_on_exception const guard{group};  // no abort precedes another rank's own reason
      try {
        comm::expect_same(group, "the learning rate", group.rank() == 2 ? d.second : d.first);
      } catch (error const& e) {
        require(e.code() == exit_code::bad_input, "another code");
        throw;
      }
    });
    CAPTURE(outcomes[0]);
    CHECK(outcomes[0].find("ranks differ in the learning rate: ") == 0);
    CHECK(outcomes[0].find(d.said) != std::string::npos);
    for (auto const& said : outcomes) { CHECK(said == outcomes[0]); }
  }
}

TEST_CASE("a condition on one rank is known to all") {
  test::threads_of_a_process groups;
  conformance::all_succeeded(groups.run(3, [](auto&, auto& group) {
    require(comm::sum_over_ranks(group, group.rank() + 1) == 6, "sum");
    require(comm::sum_over_ranks(group, 0.5 * group.rank()) == 1.5, "sum of doubles");
    require(!comm::on_any_rank(group, false), "no rank");
    require(comm::on_any_rank(group, group.rank() == 2), "one");
    require(comm::on_any_rank(group, true), "all");
  }));
}

}  // namespace
