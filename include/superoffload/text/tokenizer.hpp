// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/io/model_directory.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace superoffload::text {

struct tokenizer_definition;

/// Byte-pair encoding as defined by Hugging Face's `tokenizer.json`: the same ids, for every text.
/// Immutable; copies share their tables, and any number of threads may use one.
class tokenizer {
public:
  /// \throws error(bad_input) as read_tokenizer_files() does.
  [[nodiscard]] static tokenizer load(io::model_directory const& model);

  /// Builds the tables of a definition that read_tokenizer_files() returned, or of an equally valid one.
  explicit tokenizer(tokenizer_definition const& definition);

  /// The ids of `utf8`. Special tokens written in the text are always recognised; `add_special` controls
  /// those that the post-processor puts around it, such as a beginning of text. \throws error(bad_input) when
  /// `utf8` is not valid UTF-8.
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view utf8, bool add_special = true) const;

  /// Appends the ids to `ids`, which is unchanged when an exception is thrown.
  void encode(std::string_view utf8, std::vector<std::int32_t>& ids, bool add_special = true) const;

  /// encode() without what the post-processor adds, and for each of `offsets` (bytes, ascending) the index of
  /// the first token whose first byte lies there or later.
  [[nodiscard]] std::vector<std::int32_t> encode_and_locate(std::string_view utf8,
                                                            std::span<std::size_t const> offsets,
                                                            std::vector<std::int32_t>& ids) const;

  /// The text of `ids` as the file's decoder makes it, with U+FFFD where their bytes are not valid UTF-8. Ids
  /// without a token are omitted,
  /// and so are special tokens with `skip_special`.
  [[nodiscard]] std::string decode(std::span<std::int32_t const> ids, bool skip_special = false) const;

  /// One more than the largest id: the least number of rows of an embedding.
  [[nodiscard]] std::int64_t size() const noexcept;

  /// @{
  /// The token's id; none where the tokenizer's files name no such token.
  [[nodiscard]] std::optional<std::int32_t> bos_id() const noexcept;
  [[nodiscard]] std::optional<std::int32_t> eos_id() const noexcept;
  [[nodiscard]] std::optional<std::int32_t> pad_id() const noexcept;
  /// @}

private:
  struct tables;
  std::shared_ptr<tables const> tables_;
};

}  // namespace superoffload::text

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/text/impl/tokenizer_inl.hpp>
#endif
