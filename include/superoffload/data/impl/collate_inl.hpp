// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/data/collate.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace superoffload::data {

SUPEROFFLOAD_INLINE batch collate(example_set const& examples, std::span<sequence const> sequences,
                                  collation const& options) {
  std::int64_t width = options.padding == pad_to::max_length ? options.max_length : 0;
  std::int64_t rows = 0;
  for (auto const& rows_of_sequence : sequences) {
    std::int64_t length = 0;
    for (auto const row : rows_of_sequence) { length += examples[row].length(); }
    rows += length;
    if (options.padding == pad_to::longest && !options.packing) {
      width = std::max(width, length);
    }
  }
  batch out;
  auto const most =
      static_cast<std::size_t>(std::max(rows, width * static_cast<std::int64_t>(sequences.size())));
  out.tokens.reserve(most);
  out.targets.reserve(most);
  out.positions.reserve(most);
  out.starts.push_back(0);
  std::int32_t position = 0;
  auto const append = [&](std::int32_t token, std::int32_t target) {
    out.tokens.push_back(token);
    out.targets.push_back(target);
    out.positions.push_back(position++);
  };
  auto const end_document = [&] {
    if (position > 0) {
      out.starts.push_back(static_cast<std::int32_t>(out.tokens.size()));
    }
    position = 0;
  };
  for (auto const& rows_of_sequence : sequences) {
    auto const begin = out.rows();
    for (auto const row : rows_of_sequence) {
      auto const [tokens, learnt] = examples[row];
      auto const first = out.targets.size();
      for (auto const token : tokens) { append(token, -1); }
      for (auto const& part : learnt) {
        for (auto t = static_cast<std::size_t>(std::max(part.begin, 1));
             t < static_cast<std::size_t>(part.end); ++t) {
          out.targets[first + t - 1] = tokens[t];
        }
      }
      if (options.packing) {
        end_document();
      }
    }
    auto const end = out.rows();
    while (out.rows() - begin < width) {
      if (options.learn_padding && out.rows() > begin) {
        out.targets.back() = options.pad_id;
      }
      append(options.pad_id, -1);
    }
    out.mark_padding(end);
    end_document();
  }
  return out;
}

}  // namespace superoffload::data
