// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>

namespace superoffload::data::testing {

/// What `read` says of the row of origin rows.jsonl:7 that it refuses.
template <class Read>
std::string complaint_of(Read const& read) {
  try {
    read();
  } catch (error const& e) {
    CHECK(e.code() == exit_code::bad_input);
    std::string const message = e.what();
    CHECK(message.starts_with("rows.jsonl:7: "));
    return message.substr(std::min(message.size(), std::size_t{14}));
  }
  return "no error";
}

}  // namespace superoffload::data::testing
