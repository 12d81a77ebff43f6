// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/offload/planning/drawing.hpp>

#include <doctest/doctest.h>

#include <string>

namespace {

using namespace superoffload::offload;

int count(std::string const& text, std::string const& part) {
  int n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) { ++n; }
  return n;
}

TEST_CASE("a picture shows every interval in its lane, to scale, with a legend of its colours") {
  timeline t;
  t.step_time = 0.1;
  t.busy = {0.5, 0.0, 0.25, 0.0, 0.75};
  t.speculated = 3.0;
  t.intervals = {{lane::compute, activity::forward, 7, 0.0, 0.05},
                 {lane::compute, activity::backward, 7, 0.05, 0.1},
                 {lane::down, activity::gradient, 3, 0.025, 0.05},
                 {lane::cpu, activity::commit_speculate, 12, 0.05, 0.075}};
  auto const svg = draw(t, "a < b & c");
  CHECK(svg.rfind("<svg xmlns=", 0) == 0);
  CHECK(svg.substr(svg.size() - 7) == "</svg>\n");
  CHECK(svg.find("a &lt; b &amp; c") != std::string::npos);
  CHECK(svg.find("100.0 ms a step; busy: device 50 %, CPU Adam 75 %, link down 25 %, up 0 %") !=
        std::string::npos);
  CHECK(count(svg, "<title>") == 4);
  // The plot is 1440 wide from 130 on: the gradient from a quarter of it to half.
  CHECK(svg.find("<rect x=\"490.00\" y=\"168\" width=\"360.00\"") != std::string::npos);
  CHECK(svg.find("commit + speculate, unit 12: 50.000 to 75.000 ms") != std::string::npos);
  CHECK(svg.find(">12</text>") != std::string::npos);
  for (char const* shown :
       {">forward<", ">backward<", ">gradient<", ">commit + speculate<", ">CPU Adam<", ">100<"}) {
    CAPTURE(shown);
    CHECK(svg.find(shown) != std::string::npos);
  }
  CHECK(svg.find(">emit<") == std::string::npos);  // there is no such interval
}

TEST_CASE("the lane of collectives is drawn if there are any") {
  timeline t;
  t.step_time = 0.1;
  t.waited_for_ranks = 0.02;
  t.busy = {0.5, 0.0, 0.0, 0.0, 0.0, 0.25};
  t.intervals = {{lane::compute, activity::forward, 7, 0.0, 0.1}};
  CHECK(count(draw(t, ""), "ranks") == 0);
  t.intervals.push_back({lane::collective, activity::gather, 7, 0.025, 0.05});
  auto const svg = draw(t, "");
  CHECK(svg.find("; between ranks 25 %, 20.0 ms waited for</text>") != std::string::npos);
  CHECK(svg.find(">between ranks</text>") != std::string::npos);
  CHECK(svg.find("<rect x=\"490.00\" y=\"306\" width=\"360.00\"") != std::string::npos);
  CHECK(svg.find(">gather<") != std::string::npos);
}

TEST_CASE("equal neighbours too small to be told apart are drawn as one, and an empty timeline is no error") {
  timeline t;
  t.step_time = 1.0;
  for (int i = 0; i < 1000; ++i) {
    t.intervals.push_back({lane::up, activity::weights, i / 500, 1e-3 * i, 1e-3 * (i + 1)});
  }
  CHECK(count(draw(t, ""), "<title>") == 2);
  CHECK(count(draw({}, "empty"), "<title>") == 0);
}

}  // namespace
