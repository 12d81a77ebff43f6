// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/function_ref.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <type_traits>
#include <utility>

namespace {

using superoffload::function_ref;

int called_twice(function_ref<int(int)> f) { return f(f(3)); }

int next(int i) { return i + 1; }

static_assert(std::is_trivially_copyable_v<function_ref<void()>>);
static_assert(std::is_constructible_v<function_ref<double(int)>, int (*)(int)>);
static_assert(!std::is_constructible_v<function_ref<void(int)>, void (*)(char const*)>);

TEST_CASE("a function_ref calls what it refers to, with its state") {
  int calls = 0;
  auto const counting = [&](int i) { return ++calls, 2 * i; };
  CHECK(called_twice(counting) == 12);
  CHECK(calls == 2);
  CHECK(called_twice([sum = 0](int i) mutable { return sum += i; }) == 6);
  CHECK(called_twice(&next) == 5);
}

TEST_CASE("copies of a function_ref refer to the same function, not to the copied reference") {
  int calls = 0;
  auto counting = [&] { ++calls; };
  function_ref<void()> f{counting};
  auto copy = f;
  auto other = [] {};
  f = other;
  copy();
  f();
  CHECK(calls == 1);
}

TEST_CASE("a function_ref passes arguments and results on as they are") {
  auto const kept = [](std::unique_ptr<int> p) { return p; };
  CHECK(*function_ref<std::unique_ptr<int>(std::unique_ptr<int>)>{kept}(std::make_unique<int>(7)) == 7);
  int value = 0;
  auto const same = [](int& i) -> int& { return i; };
  function_ref<int&(int&)>{same}(value) = 4;
  CHECK(value == 4);
}

}  // namespace
