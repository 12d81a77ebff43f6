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

#include <algorithm>
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

SUPEROFFLOAD_INLINE void expect_text(std::string_view utf8) {
  expect(utf8.size() <= std::numeric_limits<std::int32_t>::max(), exit_code::bad_input, "text of ",
         utf8.size(), " bytes; expected less than 2 GiB: split it");
  auto const invalid = find_invalid_utf8(utf8);
  expect(invalid == utf8.npos, exit_code::bad_input, "text: byte ", invalid, ": expected valid UTF-8");
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

  /// Appends to `starts`, if there is one, where in the text the tokens begin.
  void encode_normalized(std::string_view text, std::vector<std::int32_t>& ids,
                         std::vector<std::size_t>* starts = nullptr) const {
    auto const offset = [&](std::string_view part) {
      return static_cast<std::size_t>(part.data() - text.data());
    };
    for (auto const& [plain, id] : added_normalized(text)) {
      if (id >= 0) {
        ids.push_back(id);
        if (starts != nullptr) {
          starts->push_back(offset(plain));
        }
        continue;
      }
      for (auto const piece : split(plain)) {
        auto const first = ids.size();
        encoder.encode(piece, ids);
        if (starts != nullptr) {
          auto start = offset(piece);
          for (auto i = first; i < ids.size(); ++i) {
            starts->push_back(start);
            start += decoded[static_cast<std::size_t>(ids[i])].size();
          }
        }
      }
    }
  }

  void encode_and_locate(std::string_view text, std::span<std::size_t const> offsets,
                         std::vector<std::int32_t>& ids, std::vector<std::int32_t>& located) const {
    auto const next = [&] { return located.size() < offsets.size() ? offsets[located.size()] : text.npos; };
    auto const locate = [&](std::size_t index) { located.push_back(static_cast<std::int32_t>(index)); };
    std::vector<std::size_t> starts;  // of the tokens of a stretch, in its normalised form
    for (auto const& [plain, id] : added(text)) {
      auto const begin = static_cast<std::size_t>(plain.data() - text.data());
      auto const end = begin + plain.size();
      while (next() <= begin) { locate(ids.size()); }
      if (id >= 0) {
        ids.push_back(id);
        continue;
      }
      auto const first = ids.size();
      bool const normalise = nfc && !is_plainly_nfc(plain);
      starts.clear();
      encode_normalized(normalise ? to_nfc(plain) : std::string{plain}, ids, &starts);
      std::size_t done = begin;
      std::size_t normalised = 0;  // bytes that [begin, done) has when normalised
      while (next() < end) {
        auto const part = text.substr(done, next() - done);
        normalised += normalise ? to_nfc(part).size() : part.size();
        done = next();
        auto const found = std::ranges::lower_bound(starts, normalised);
        locate(first + static_cast<std::size_t>(found - starts.begin()));
      }
    }
    while (located.size() < offsets.size()) { locate(ids.size()); }
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

SUPEROFFLOAD_INLINE tokenizer tokenizer::load(io::model_directory const& model) {
  return tokenizer{read_tokenizer_files(model)};
}

SUPEROFFLOAD_INLINE std::vector<std::int32_t> tokenizer::encode(std::string_view utf8,
                                                                bool add_special) const {
  std::vector<std::int32_t> ids;
  encode(utf8, ids, add_special);
  return ids;
}

SUPEROFFLOAD_INLINE void tokenizer::encode(std::string_view utf8, std::vector<std::int32_t>& ids,
                                           bool add_special) const {
  detail::expect_text(utf8);
  if (add_special) {
    ids.insert(ids.end(), tables_->prefix.begin(), tables_->prefix.end());
  }
  tables_->encode(utf8, ids);
  if (add_special) {
    ids.insert(ids.end(), tables_->suffix.begin(), tables_->suffix.end());
  }
}

SUPEROFFLOAD_INLINE std::vector<std::int32_t> tokenizer::encode_and_locate(
    std::string_view utf8, std::span<std::size_t const> offsets, std::vector<std::int32_t>& ids) const {
  detail::expect_text(utf8);
  std::vector<std::int32_t> located;
  located.reserve(offsets.size());
  tables_->encode_and_locate(utf8, offsets, ids, located);
  return located;
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
