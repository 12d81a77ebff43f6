// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>

namespace superoffload {

/// The exception that is being handled, as an `error`; exceptions of the standard library are converted.
error current_error();

}  // namespace superoffload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/core/impl/current_error_inl.hpp>
#endif
