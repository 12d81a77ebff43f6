// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shared parts of the conformance tests of kernels: arrays on a device, random numbers, comparison with a
// reference in double. Launches are found by argument-dependent lookup, so that any device can be tested.

#include <superoffload/core/buffer.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/core/dtype.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace superoffload::conformance {

template <class T>
inline constexpr double epsilon_of = std::numeric_limits<T>::epsilon();
template <>
inline constexpr double epsilon_of<bfloat16> = 0x1p-8;

template <class T>
T rounded(double x) {
  if constexpr (std::same_as<T, bfloat16>) {
    return bfloat16{static_cast<float>(x)};
  } else {
    return static_cast<T>(x);
  }
}

/// A stream of a device, random numbers, and a digest of all results of kernels. Equal digests mean equal
/// bits.
template <device_policy D>
struct lab {
  explicit lab(D& on) : device{on}, stream{on} {}

  D& device;
  typename D::stream stream;
  std::mt19937 random{12345};
  std::uint64_t digest = 14695981039346656037U;

  void take_in(void const* data, std::size_t bytes) {
    auto const* const byte = static_cast<unsigned char const*>(data);
    auto sum = digest;
    for (std::size_t i = 0; i < bytes; ++i) { sum = (sum ^ byte[i]) * 1099511628211U; }
    digest = sum;
  }
  template <class T>
  std::vector<T> normal(std::int64_t count, double deviation = 1) {
    std::normal_distribution<double> numbers{0, deviation};
    std::vector<T> values(static_cast<std::size_t>(count));
    std::generate(values.begin(), values.end(), [&] { return rounded<T>(numbers(random)); });
    return values;
  }
  std::vector<std::int32_t> integers(std::int64_t count, std::int32_t least, std::int32_t most) {
    std::uniform_int_distribution<std::int32_t> numbers{least, most};
    std::vector<std::int32_t> values(static_cast<std::size_t>(count));
    std::generate(values.begin(), values.end(), [&] { return numbers(random); });
    return values;
  }
};

/// Elements on the device, between guards that must not be overwritten.
template <device_policy D, class T>
class array {
public:
  array(lab<D>& in, std::vector<T> const& values)
      : lab_{in}, count_{values.size()}, memory_{in.device, (count_ + 2 * guard) * sizeof(T)} {
    std::vector<T> all(count_ + 2 * guard);
    std::memset(static_cast<void*>(all.data()), pattern, all.size() * sizeof(T));
    std::copy(values.begin(), values.end(), all.begin() + guard);
    in.stream.copy(memory_.data(), all.data(), all.size() * sizeof(T));
    in.stream.synchronize();
  }
  array(lab<D>& in, std::int64_t count) : array(in, std::vector<T>(static_cast<std::size_t>(count))) {}

  [[nodiscard]] T* data() const { return memory_.template as<T>() + guard; }

  /// Waits for the stream. \returns the contents.
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> all(count_ + 2 * guard);
    lab_.stream.copy(all.data(), memory_.data(), all.size() * sizeof(T));
    lab_.stream.synchronize();
    std::vector<unsigned char> guards(guard * sizeof(T), pattern);
    CHECK_MESSAGE(std::memcmp(all.data(), guards.data(), guards.size()) == 0, "written before the array");
    CHECK_MESSAGE(std::memcmp(all.data() + guard + count_, guards.data(), guards.size()) == 0,
                  "written behind the array");
    lab_.take_in(all.data() + guard, count_ * sizeof(T));
    return {all.begin() + guard, all.begin() + static_cast<std::ptrdiff_t>(guard + count_)};
  }

private:
  static constexpr std::size_t guard = 16;
  static constexpr unsigned char pattern = 0x5A;

  lab<D>& lab_;
  std::size_t count_;
  buffer<D> memory_;
};

inline std::vector<double> absolute(std::vector<double> values) {
  for (auto& value : values) { value = std::abs(value); }
  return values;
}

/// Checks |value - reference| <= eps(Out) |reference| + operations * eps(wide) * magnitude for every element:
/// one rounding at the end, and the rounding of `operations` operations on terms of that magnitude.
template <class Out>
void check_near(std::vector<Out> const& values, std::vector<double> const& reference,
                std::vector<double> const& magnitude, double operations, std::string const& what) {
  REQUIRE(values.size() == reference.size());
  REQUIRE(values.size() == magnitude.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    double const value = values[i];
    double const allowed =
        epsilon_of<Out> * std::abs(reference[i]) + operations * epsilon_of<wide<Out>> * magnitude[i] + 1e-37;
    if (!(std::abs(value - reference[i]) <= allowed)) {
      FAIL_CHECK(what, " of ", std::string{name_of(dtype_of<Out>)}, ": element ", i, " is ", value,
                 ", expected ", reference[i], " +- ", allowed);
      return;
    }
  }
  CHECK(true);
}

}  // namespace superoffload::conformance
