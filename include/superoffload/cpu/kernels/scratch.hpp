// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace superoffload::cpu::detail {

/// Memory of the calling thread, aligned to 64 bytes, its contents left over; good until the next call. Grows
/// to the largest request and stays, so that a steady state allocates nothing.
/// Defined outside the sources of the instruction sets: what those emit must never be shared with other code.
void* thread_scratch(std::size_t bytes);

}  // namespace superoffload::cpu::detail

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/cpu/impl/dispatch_inl.hpp>
#endif
