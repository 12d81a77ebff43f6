// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/planning/timeline.hpp>

#include <string>

namespace superoffload::offload {

/// Draws the step as a self-contained SVG picture. Each lane is a row over milliseconds; each activity has
/// the colour of its kind and the label of its unit. Equal neighbours that would not be told apart are
/// joined.
std::string draw(timeline const& t, std::string const& title);

}  // namespace superoffload::offload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/planning/impl/drawing_inl.hpp>
#endif
