// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// A tape calls prefetch and release where an exception could not be handled.
// error: static assertion failed
#include <superoffload/zero/unit_store.hpp>

using namespace superoffload::autograd;

struct store {
  void prefetch(int, pass) {}  // not noexcept
  unit_buffers acquire(int, pass) { return {}; }
  void release(int, pass) noexcept {}
  void reduce(int) {}
};
static_assert(superoffload::zero::unit_store<store>);

int main() {}
