// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/io/file.hpp>
#include <superoffload/io/impl/json_builder_inl.hpp>
#include <superoffload/io/json.hpp>

namespace superoffload::io {

SUPEROFFLOAD_INLINE json parse_json(std::string_view text, std::string const& origin, json_limits limits) {
  json document;
  detail::strict_builder builder{document, origin, limits.depth};
  detail::parse_into(builder, text, origin, limits);
  return document;
}

SUPEROFFLOAD_INLINE json read_json(std::filesystem::path const& file, json_limits limits) {
  return parse_json(read_file(file, limits.bytes), shown(file), limits);
}

}  // namespace superoffload::io
