// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace superoffload::test {

/// Sanitizers and emulators make a test at least ten times as slow. Tests with many cases that differ only in
/// numbers take fewer of them then; every path through the code stays covered.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SUPEROFFLOAD_TEST_THREADS
#endif
#if __has_feature(address_sanitizer)
#define SUPEROFFLOAD_TEST_ADDRESSES
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define SUPEROFFLOAD_TEST_THREADS
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SUPEROFFLOAD_TEST_ADDRESSES
#endif
#if defined(SUPEROFFLOAD_TEST_THREADS)
inline constexpr bool under_thread_sanitizer = true;
#else
inline constexpr bool under_thread_sanitizer = false;
#endif
#if defined(SUPEROFFLOAD_TEST_ADDRESSES)
inline constexpr bool under_address_sanitizer = true;
#else
inline constexpr bool under_address_sanitizer = false;
#endif
inline constexpr bool under_sanitizer = under_thread_sanitizer || under_address_sanitizer;
#if defined(SUPEROFFLOAD_TEST_EMULATED)  // tests/aarch64
inline constexpr bool slowed = true;
#else
inline constexpr bool slowed = under_sanitizer;
#endif

}  // namespace superoffload::test
