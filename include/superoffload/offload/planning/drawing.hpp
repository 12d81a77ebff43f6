// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/planning/timeline.hpp>

#include <string>

namespace superoffload::offload {

/// The step as a self-contained SVG picture: a row for each lane, what it did coloured by kind and labelled
/// with its unit, over milliseconds. Neighbours alike that are too close to be told apart are drawn as one.
std::string draw(timeline const& t, std::string const& title);

}  // namespace superoffload::offload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/planning/impl/drawing_inl.hpp>
#endif
