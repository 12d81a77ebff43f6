// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace superoffload::data {

/// A data set: a file, or a directory of shards.
struct source {
  std::filesystem::path path;    ///< as given; files_of() checks it
  std::optional<double> weight;  ///< its share of an epoch's rows, relative to the other data sets'
};

/// Parses PATH or PATH:WEIGHT. What follows the last colon is a weight if it is a number and no file has the
/// whole name. \throws error(bad_input) for a weight that is not above 0
source parse_source(std::string_view text);

/// The files of a data set: `path` itself, or of a directory those whose names end in .json or .jsonl, and
/// then .gz or .zst if they are packed, in the order of their names. Names that begin with a dot do not
/// count. Those of Parquet files do, so that the reader refuses them and none is left out silently. Links of
/// the files in a directory are followed as io::expect_inside() says, or with `follow_links` wherever they
/// lead; `path` itself may be any link.
/// \throws error(bad_input) for a directory without any, one that cannot be read, or a link out of it
std::vector<std::filesystem::path> files_of(std::filesystem::path const& path, bool follow_links = false);

}  // namespace superoffload::data

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/data/impl/source_inl.hpp>
#endif
