// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// How the functions in impl/*_inl.hpp are defined. By default the library is header-only: the functions are
// inline, and a header includes its implementation. With SUPEROFFLOAD_COMPILED the headers only declare, and
// the program links objects that were compiled from the same files (CMake: superoffload::compiled).
#pragma once

#ifdef SUPEROFFLOAD_COMPILED
#define SUPEROFFLOAD_INLINE
#define SUPEROFFLOAD_EMITTED
#else
#define SUPEROFFLOAD_INLINE inline
/// For functions that device code calls, which nvcc compiles apart: the compiler must emit them even if no
/// host code calls them.
#define SUPEROFFLOAD_EMITTED [[gnu::used]] inline
#endif

/// For functions and lambdas of kernels, which would otherwise pass vectors in memory. Not under sanitizers,
/// whose checks make such code too long to compile.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SUPEROFFLOAD_ALWAYS_INLINE
#else
#define SUPEROFFLOAD_ALWAYS_INLINE __attribute__((always_inline))
#endif
