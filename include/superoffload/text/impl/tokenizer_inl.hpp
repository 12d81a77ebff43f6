// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/text/added_tokens.hpp>
#include <superoffload/text/byte_alphabet.hpp>
#include <superoffload/text/byte_pair_encoder.hpp>
#include <superoffload/text/normalization.hpp>
#include <superoffload/text/split_pattern.hpp>
#include <superoffload/text/tokenizer.hpp>
#include <superoffload/text/tokenizer_files.hpp>
#include <superoffload/text/utf8.hpp>

#include <limits>

namespace superoffload::text {
namespace detail {

/// The tokens that are searched for after normalisation (or before it), in the form that is searched for.
SUPEROFFLOAD_INLINE std::vector<added_token> tokens_found(std::vector<added_token> const& tokens,
                                                          bool normalized, bool nfc) {
  std::vector<added_token> found;
  for (auto const& token : tokens) {
    if (token.normalized != normalized) {
      continue;
    }
    found.push_back(token);
    if (normalized && nfc) {
      found.back().content = to_nfc(token.content);
    }
  }
  return found;
}

/// By id, the bytes that text must contain to become the token; empty where no text can.
SUPEROFFLOAD_INLINE std::vector<std::string> spellings(std::vector<std::string> const& vocabulary) {
  std::vector<std::string> bytes;
  bytes.reserve(vocabulary.size());
  for (auto const& letters : vocabulary) { bytes.push_back(from_byte_alphabet(letters).value_or("")); }
  return bytes;
}

}  // namespace detail

struct tokenizer::tables {
  explicit tables(tokenizer_definition const& definition)
      : added{detail::tokens_found(definition.added_tokens, false, definition.nfc)},
        added_normalized{detail::tokens_found(definition.added_tokens, true, definition.nfc)},
        split{definition.split},
        encoder{detail::spellings(definition.vocabulary), definition.merges, definition.ignore_merges},
        nfc{definition.nfc},
        prefix{definition.prefix},
        suffix{definition.suffix},
        bos{definition.bos_id},
        eos{definition.eos_id},
        pad{definition.pad_id} {
    auto const set = [this](std::int32_t id, std::string const& letters, bool is_special) {
      auto const index = static_cast<std::size_t>(id);
      if (decoded.size() <= index) {
        decoded.resize(index + 1);
        special.resize(index + 1);
      }
      decoded[index] = from_byte_alphabet(letters).value_or(letters);
      special[index] = is_special;
    };
    for (std::size_t id = 0; id < definition.vocabulary.size(); ++id) {
      set(static_cast<std::int32_t>(id), definition.vocabulary[id], false);
    }
    for (auto const& token : definition.added_tokens) { set(token.id, token.content, token.special); }
  }

  void encode(std::string_view text, std::vector<std::int32_t>& ids) const {
    for (auto const& [plain, id] : added(text)) {
      if (id >= 0) {
        ids.push_back(id);
      } else if (nfc && !is_plainly_nfc(plain)) {
        encode_normalized(to_nfc(plain), ids);
      } else {
        encode_normalized(plain, ids);
      }
    }
  }

  void encode_normalized(std::string_view text, std::vector<std::int32_t>& ids) const {
    for (auto const& [plain, id] : added_normalized(text)) {
      if (id >= 0) {
        ids.push_back(id);
        continue;
      }
      for (auto const piece : split(plain)) { encoder.encode(piece, ids); }
    }
  }

  added_token_finder added;
  added_token_finder added_normalized;
  split_pattern split;
  byte_pair_encoder encoder;
  bool nfc;
  std::vector<std::int32_t> prefix, suffix;
  std::optional<std::int32_t> bos, eos, pad;
  std::vector<std::string> decoded;  // bytes by id
  std::vector<bool> special;         // by id
};

SUPEROFFLOAD_INLINE tokenizer::tokenizer(tokenizer_definition const& definition)
    : tables_{std::make_shared<tables const>(definition)} {}

SUPEROFFLOAD_INLINE tokenizer tokenizer::load(std::filesystem::path const& model_directory) {
  return tokenizer{read_tokenizer_files(model_directory)};
}

SUPEROFFLOAD_INLINE std::vector<std::int32_t> tokenizer::encode(std::string_view utf8,
                                                                bool add_special) const {
  std::vector<std::int32_t> ids;
  encode(utf8, ids, add_special);
  return ids;
}

SUPEROFFLOAD_INLINE void tokenizer::encode(std::string_view utf8, std::vector<std::int32_t>& ids,
                                           bool add_special) const {
  expect(utf8.size() <= std::numeric_limits<std::int32_t>::max(), exit_code::bad_input, "text of ",
         utf8.size(), " bytes; expected less than 2 GiB: split it");
  auto const invalid = find_invalid_utf8(utf8);
  expect(invalid == utf8.npos, exit_code::bad_input, "text: byte ", invalid, ": expected valid UTF-8");
  if (add_special) {
    ids.insert(ids.end(), tables_->prefix.begin(), tables_->prefix.end());
  }
  tables_->encode(utf8, ids);
  if (add_special) {
    ids.insert(ids.end(), tables_->suffix.begin(), tables_->suffix.end());
  }
}

SUPEROFFLOAD_INLINE std::string tokenizer::decode(std::span<std::int32_t const> ids,
                                                  bool skip_special) const {
  std::string bytes;
  for (auto const id : ids) {
    auto const index = static_cast<std::size_t>(id);  // negative ids become huge
    if (index >= tables_->decoded.size() || (skip_special && tables_->special[index])) {
      continue;
    }
    bytes += tables_->decoded[index];
  }
  return to_valid_utf8(bytes);
}

SUPEROFFLOAD_INLINE std::int64_t tokenizer::size() const noexcept {
  return static_cast<std::int64_t>(tables_->decoded.size());
}
SUPEROFFLOAD_INLINE std::optional<std::int32_t> tokenizer::bos_id() const noexcept { return tables_->bos; }
SUPEROFFLOAD_INLINE std::optional<std::int32_t> tokenizer::eos_id() const noexcept { return tables_->eos; }
SUPEROFFLOAD_INLINE std::optional<std::int32_t> tokenizer::pad_id() const noexcept { return tables_->pad; }

}  // namespace superoffload::text
