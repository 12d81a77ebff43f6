// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace superoffload {

/// A number of bytes for people, in the largest unit of which there is one, such as "1.50 GiB".
std::string bytes_text(std::size_t bytes, int decimals = 2);

}  // namespace superoffload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/core/impl/bytes_text_inl.hpp>
#endif
