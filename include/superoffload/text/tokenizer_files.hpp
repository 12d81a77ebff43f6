// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/io/model_directory.hpp>
#include <superoffload/text/added_tokens.hpp>
#include <superoffload/text/byte_pair_encoder.hpp>
#include <superoffload/text/normalizer.hpp>
#include <superoffload/text/pre_tokenizer.hpp>
#include <superoffload/text/token_decoder.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace superoffload::text {

/// The content of a model's tokenizer files, checked: ids are distinct, merges refer to tokens.
struct tokenizer_definition {
  /// By id, as spelled in the file (byte_alphabet.hpp, where the vocabulary is one of bytes); empty when
  /// there is no such id.
  std::vector<std::string> vocabulary = {};
  std::vector<merge> merges = {};              ///< by rank
  std::vector<double> scores = {};             ///< by id, of a model Unigram; empty for BPE
  bool ignore_merges = false;                  ///< a piece that is itself a token becomes that token
  bool byte_fallback = false;                  ///< as encoder_options has it
  bool fuse_unk = false;                       ///< as encoder_options has it
  std::optional<std::int32_t> unk_id = {};     ///< as encoder_options has it
  std::string continuing_prefix = {};          ///< as encoder_options has it
  std::string end_suffix = {};                 ///< as encoder_options has it
  text::normalizer normalizer = {};            ///< changes a text first
  text::pre_tokenizer pre_tokenizer = {};      ///< cuts it into pieces for byte-pair encoding
  token_decoder decoder = {};                  ///< makes text of tokens
  std::vector<added_token> added_tokens = {};  ///< searched for before the text is cut
  std::vector<std::int32_t> prefix = {};       ///< the post-processor puts this before a text
  std::vector<std::int32_t> suffix = {};       ///< ... and this after it
  /// @{
  /// The ids of bos_token, eos_token and pad_token; none where the files name no such token.
  std::optional<std::int32_t> bos_id = {}, eos_id = {}, pad_id = {};
  /// @}
};

/// Reads tokenizer.json and, where they exist, tokenizer_config.json and special_tokens_map.json. Supports
/// BPE of bytes and, as SentencePiece has it, of characters, and Unigram. A component of any other type, or a
/// setting that would change the ids and is not supported, is refused by name. Limits: 256 MiB (the other
/// two: 16 MiB), 64 levels, 2,000,000 tokens of at most 64 KiB (added tokens: 256 bytes) and as many merges.
/// \throws error(bad_input) naming file, field and what was expected.
tokenizer_definition read_tokenizer_files(io::model_directory const& model);

}  // namespace superoffload::text

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/text/impl/tokenizer_files_inl.hpp>
#endif
