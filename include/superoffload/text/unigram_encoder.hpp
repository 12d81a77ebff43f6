// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace superoffload::text {

/// The settings of a unigram_encoder.
struct unigram_options {
  bool byte_fallback = false;  ///< a text without token becomes tokens of its bytes, "<0x00>" to "<0xFF>"
  std::optional<std::int32_t> unk_id = {};  ///< of characters without token, and of several in a row together
};

/// Cuts a piece of text into the tokens with the highest sum of scores, as SentencePiece's model of the type
/// unigram does. Immutable; any number of threads may share it.
class unigram_encoder {
public:
  /// `tokens[id]`: at most 256 bytes, empty where the id has none. Of equal ones the last counts.
  /// `scores[id]` is the logarithm of its probability.
  unigram_encoder(std::span<std::string const> tokens, std::span<double const> scores,
                  unigram_options options);

  /// Appends the tokens of `piece` (UTF-8), and to `starts`, if there is one, the byte of `piece` where each
  /// begins. Time: the length of `piece` times that of the longest token. \throws error(bad_input) if a text
  /// has no token, and there is no `unk_id`
  void encode(std::string_view piece, std::vector<std::int32_t>& ids,
              std::vector<std::size_t>* starts = nullptr) const;

private:
  struct entry {
    std::string text;
    double score;
    std::int32_t id;
  };

  [[nodiscard]] entry const* find(std::string_view text) const;
  template <class Visit>
  void for_each_prefix(std::string_view text, Visit visit) const;
  void emit(std::string_view piece, std::size_t begin, std::size_t end, std::vector<std::int32_t>& ids,
            std::vector<std::size_t>* starts) const;

  unigram_options options_;
  std::vector<entry> entries_;                // in the order of their texts
  std::array<std::size_t, 257> firsts_{};     // where those begin whose first byte is at least this
  std::array<std::int32_t, 256> byte_ids_{};  // of "<0x00>" and so on; -1 where there is no such token
  double unknown_score_ = 0;
};

}  // namespace superoffload::text

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/text/impl/unigram_encoder_inl.hpp>
#endif
