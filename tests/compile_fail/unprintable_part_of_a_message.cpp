// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// A message is made of texts and numbers: a pointer would print a meaningless address.
// error: no matching function for call to .append
#include <superoffload/core/error.hpp>

int main() {
  int const value = 1;
  superoffload::fail(superoffload::exit_code::bad_input, "the value is ", &value);
}
