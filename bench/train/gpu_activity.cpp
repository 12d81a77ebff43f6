// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include "gpu_activity.hpp"

#include <superoffload/core/error.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cupti.h>

namespace superoffload::bench {
namespace {

// Global, since CUPTI's callbacks take no user argument.
std::vector<gpu_activity::interval> seen;

void check(CUptiResult result, char const* call) {
  if (result != CUPTI_SUCCESS) {
    char const* text = nullptr;
    cuptiGetResultString(result, &text);
    fail(exit_code::device, call, ": ", text == nullptr ? "unknown error" : text);
  }
}

constexpr std::size_t buffer_bytes = std::size_t{8} << 20;

void CUPTIAPI lend_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, buffer_bytes));
  *bytes = *buffer == nullptr ? 0 : buffer_bytes;
  *most_records = 0;
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      auto const& k = *reinterpret_cast<CUpti_ActivityKernel10 const*>(record);
      seen.push_back({k.name, k.start, k.end, k.streamId});
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
      auto const& c = *reinterpret_cast<CUpti_ActivityMemcpy6 const*>(record);
      auto const* const name = c.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD   ? "copy to the device"
                               : c.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH ? "copy to the host"
                                                                               : "copy";
      seen.push_back({name, c.start, c.end, c.streamId});
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
      auto const& m = *reinterpret_cast<CUpti_ActivityMemset4 const*>(record);
      seen.push_back({"fill", m.start, m.end, m.streamId});
    }
  }
  std::free(buffer);
}

constexpr CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                        CUPTI_ACTIVITY_KIND_MEMSET};

}  // namespace

gpu_activity::gpu_activity() {
  seen.clear();
  check(cuptiActivityRegisterCallbacks(lend_buffer, take_buffer), "cuptiActivityRegisterCallbacks");
  for (auto const kind : kinds) { check(cuptiActivityEnable(kind), "cuptiActivityEnable"); }
}

gpu_activity::~gpu_activity() {
  for (auto const kind : kinds) { cuptiActivityDisable(kind); }
}

std::vector<gpu_activity::interval> const& gpu_activity::finish() {
  check(cuptiActivityFlushAll(0), "cuptiActivityFlushAll");
  for (auto const kind : kinds) { check(cuptiActivityDisable(kind), "cuptiActivityDisable"); }
  std::sort(seen.begin(), seen.end(), [](auto const& a, auto const& b) { return a.begin < b.begin; });
  return seen;
}

double gpu_activity::idle_share() const {
  if (seen.empty()) {
    return 1.0;
  }
  std::uint64_t idle = 0, busy_until = seen.front().begin;
  for (auto const& i : seen) {
    idle += i.begin > busy_until ? i.begin - busy_until : 0;
    busy_until = std::max(busy_until, i.end);
  }
  return static_cast<double>(idle) / static_cast<double>(busy_until - seen.front().begin);
}

void gpu_activity::write_trace(std::string const& path) const {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  expect(file != nullptr, exit_code::io_failure, "cannot write the timeline '", printable(path), "'");
  std::fputs("{\"traceEvents\": [\n", file);
  char const* between = "";
  for (auto const& i : seen) {
    std::string name = i.name.substr(0, 120);
    std::replace(name.begin(), name.end(), '"', '\'');
    std::replace(name.begin(), name.end(), '\\', '/');
    std::fprintf(file,
                 "%s{\"name\": \"%s\", \"ph\": \"X\", \"pid\": 0, \"tid\": %u, \"ts\": %.3f, \"dur\": %.3f}",
                 between, name.c_str(), i.stream, static_cast<double>(i.begin - seen.front().begin) * 1e-3,
                 static_cast<double>(i.end - i.begin) * 1e-3);
    between = ",\n";
  }
  std::fputs("\n]}\n", file);
  expect(std::fclose(file) == 0, exit_code::io_failure, "writing the timeline '", printable(path),
         "' failed");
}

}  // namespace superoffload::bench
