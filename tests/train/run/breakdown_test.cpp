// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/io/json.hpp>
#include <superoffload/train/run/breakdown.hpp>
#include <superoffload/train/run/step_trace.hpp>

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

namespace {

using namespace superoffload;
using train::break_down;

std::vector<track> const tracks{{resource::device, "device"},       {resource::waiting, "waits"},
                                {resource::link_up, "weights"},     {resource::link_up, "state"},
                                {resource::cpu_adam, "CPU Adam 0"}, {resource::cpu_adam, "CPU Adam 1"},
                                {resource::link_down, "never used"}};
std::vector<std::string> const units{"embedding", "layer 0"};

/// From 10 s to 14 s.
recording seen() {
  return {.begin = 10.0,
          .end = 14.0,
          .spans = {{0, "forward of ", 0, 10.0, 11.0},
                    {0, "forward of ", 1, 11.5, 12.5},
                    {1, "wait of ", 1, 11.0, 11.25},
                    {1, "wait of ", 1, 12.5, 12.75},
                    {1, "wait of ", 0, 9.0, 10.5},     // half a second of it was before
                    {2, "weights of ", 0, 9.0, 11.0},  // the same
                    {3, "state of ", 1, 10.5, 12.0},   // overlaps the other for half a second
                    {4, "speculative update of ", 1, 10.0, 12.0}},
          .going_on = {{5, "speculative update of ", 1, 13.0, 14.0}}};
}

double share(train::breakdown const& b, resource r) { return b.busy[static_cast<std::size_t>(r)]; }

TEST_CASE("a resource is busy if any of its streams is, CPU Adam as the mean of its threads") {
  auto const b = break_down(seen(), tracks, 2);
  CHECK(b.seconds == 4.0);
  CHECK(share(b, resource::device) == 0.5);
  CHECK(share(b, resource::link_up) == 0.5);
  CHECK(share(b, resource::link_down) == 0.0);
  CHECK(share(b, resource::cpu_adam) == doctest::Approx((2.0 + 1.0) / 2 / 4));
  CHECK(b.waits == std::vector<double>{0.5, 0.5});
  CHECK(b.waited() == 1.0);
  auto const line = describe(b, units);
  CHECK(line.find("device 50 %") != std::string::npos);
  CHECK(line.find("waited for weights 1000.0 ms of 4000.0 ms, longest for embedding 500.0 ms") !=
        std::string::npos);
}

TEST_CASE("an empty recording causes no division by zero") {
  auto const b = break_down({}, tracks, 2);
  for (double const busy : b.busy) { CHECK(busy == 0.0); }
  CHECK(b.waited() == 0.0);
}

TEST_CASE("a timeline is JSON with a named row for the steps and each track") {
  train::step_trace trace{units};
  auto first = seen();
  auto second = seen();
  second.begin = 14.0;
  second.end = 16.0;
  second.spans = {{0, "backward of ", 1, 14.0, 15.0}};
  second.going_on = {{4, "update of ", 0, 15.0, 16.0}};
  trace.add(7, first);
  trace.add(8, second);
  CHECK(trace.steps() == 2);
  auto const json = io::json::parse(trace.json(tracks));
  std::map<int, std::string> rows;
  std::map<std::string, int> slices;
  for (auto const& event : json["traceEvents"]) {
    if (event["name"] == "thread_name") {
      rows[event["tid"]] = event["args"]["name"];
    } else if (event["ph"] == "X") {
      ++slices[event["name"]];
      CHECK(event["dur"].get<double>() >= 0.0);
    }
  }
  CHECK(rows.size() == tracks.size() + 1);
  CHECK(rows[0] == "steps");
  CHECK(rows[5] == "CPU Adam 0");
  CHECK(slices ==
        std::map<std::string, int>{{"step 7", 1},
                                   {"step 8", 1},
                                   {"forward of embedding", 1},
                                   {"forward of layer 0", 1},
                                   {"wait of embedding", 1},
                                   {"wait of layer 0", 2},
                                   {"weights of embedding", 1},
                                   {"state of layer 0", 1},
                                   {"speculative update of layer 0", 1},  // not the one that still ran
                                   {"backward of layer 0", 1},
                                   {"update of embedding", 1}});  // but that of the last step
  for (auto const& event : json["traceEvents"]) {
    if (event["name"] == "backward of layer 0") {
      CHECK(event["ts"].get<double>() == 14e6);
      CHECK(event["dur"].get<double>() == 1e6);
    }
  }
}

}  // namespace
