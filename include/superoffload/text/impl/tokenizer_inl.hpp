// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/text/added_tokens.hpp>
#include <superoffload/text/byte_alphabet.hpp>
#include <superoffload/text/byte_pair_encoder.hpp>
#include <superoffload/text/normalizer.hpp>
#include <superoffload/text/pre_tokenizer.hpp>
#include <superoffload/text/token_decoder.hpp>
#include <superoffload/text/tokenizer.hpp>
#include <superoffload/text/tokenizer_files.hpp>
#include <superoffload/text/unigram_encoder.hpp>
#include <superoffload/text/utf8.hpp>

#include <algorithm>
#include <limits>
#include <variant>

namespace superoffload::text {
namespace detail {

/// The tokens that are searched for after normalisation (or before it), in the form that is searched for.
SUPEROFFLOAD_INLINE std::vector<added_token> tokens_found(tokenizer_definition const& definition,
                                                          bool normalized) {
  std::vector<added_token> found;
  for (auto const& token : definition.added_tokens) {
    if (token.normalized != normalized) {
      continue;
    }
    found.push_back(token);
    if (normalized) {
      auto const form = definition.normalizer(token.content);
      expect(!form.empty(), exit_code::bad_input, "added token ", token.id,
             ": nothing is left of its content after the normalizer; expected \"normalized\": false");
      found.back().content = form;
    }
  }
  return found;
}

/// By id, what text must contain to become the token, in bytes or as it is; empty where no text can.
SUPEROFFLOAD_INLINE std::vector<std::string> spellings(tokenizer_definition const& definition) {
  if (!definition.pre_tokenizer.byte_level()) {
    return definition.vocabulary;
  }
  std::vector<std::string> bytes;
  bytes.reserve(definition.vocabulary.size());
  for (auto const& letters : definition.vocabulary) {
    bytes.push_back(from_byte_alphabet(letters).value_or(""));
  }
  return bytes;
}

using token_encoder = std::variant<byte_pair_encoder, unigram_encoder>;

SUPEROFFLOAD_INLINE token_encoder encoder_of(tokenizer_definition const& definition) {
  if (!definition.scores.empty()) {
    return unigram_encoder{definition.vocabulary,
                           definition.scores,
                           {.byte_fallback = definition.byte_fallback, .unk_id = definition.unk_id}};
  }
  return byte_pair_encoder{spellings(definition),
                           definition.merges,
                           {.ignore_merges = definition.ignore_merges,
                            .byte_level = definition.pre_tokenizer.byte_level(),
                            .byte_fallback = definition.byte_fallback,
                            .fuse_unk = definition.fuse_unk,
                            .unk_id = definition.unk_id,
                            .continuing_prefix = definition.continuing_prefix,
                            .end_suffix = definition.end_suffix}};
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
      : added{detail::tokens_found(definition, false)},
        added_normalized{detail::tokens_found(definition, true)},
        normalize{definition.normalizer},
        cut{definition.pre_tokenizer},
        encoder{detail::encoder_of(definition)},
        decode{definition.decoder},
        prefix{definition.prefix},
        suffix{definition.suffix},
        bos{definition.bos_id},
        eos{definition.eos_id},
        pad{definition.pad_id} {
    auto const set = [this](std::size_t id, std::string const& letters, bool is_special) {
      if (spelt.size() <= id) {
        spelt.resize(id + 1);
        special.resize(id + 1);
      }
      spelt[id] = letters;
      special[id] = is_special;
    };
    spelt.reserve(definition.vocabulary.size());
    for (std::size_t id = 0; id < definition.vocabulary.size(); ++id) {
      set(id, definition.vocabulary[id], false);
    }
    for (auto const& token : definition.added_tokens) {
      set(static_cast<std::size_t>(token.id), token.content, token.special);
    }
  }

  /// Appends to `starts`, if there is one, where the characters begin that the tokens begin with.
  void encode(std::string_view text, std::vector<std::int32_t>& ids,
              std::vector<std::size_t>* starts = nullptr) const {
    for (auto const& [plain, id] : added(text)) {
      auto const begin = static_cast<std::size_t>(plain.data() - text.data());
      if (id < 0) {
        encode_stretch(plain, begin, ids, starts);
        continue;
      }
      ids.push_back(id);
      if (starts != nullptr) {
        starts->push_back(begin);
      }
    }
  }

  void encode_stretch(std::string_view text, std::size_t begin, std::vector<std::int32_t>& ids,
                      std::vector<std::size_t>* starts) const {
    auto const normalized = normalize(text, starts != nullptr || cut.needs_origins());
    for (auto const& [plain, id] : added_normalized(normalized.text())) {
      auto const at = static_cast<std::size_t>(plain.data() - normalized.text().data());
      if (id < 0) {
        derived_text part{normalized.traced()};
        part.append(normalized, at, at + plain.size());
        encode_part(part, begin, ids, starts);
        continue;
      }
      ids.push_back(id);
      if (starts != nullptr) {
        starts->push_back(begin + normalized.origin(at));
      }
    }
  }

  void encode_part(derived_text& text, std::size_t begin, std::vector<std::int32_t>& ids,
                   std::vector<std::size_t>* starts) const {
    std::vector<std::size_t> in_piece;
    for (auto const piece : cut(text, begin)) {
      in_piece.clear();
      auto const plain = text.text().substr(piece.begin, piece.end - piece.begin);
      auto* const in_plain = starts != nullptr ? &in_piece : nullptr;
      std::visit([&](auto const& one) { one.encode(plain, ids, in_plain); }, encoder);
      for (auto const start : in_piece) { starts->push_back(begin + text.origin(piece.begin + start)); }
    }
  }

  void encode_and_locate(std::string_view text, std::span<std::size_t const> offsets,
                         std::vector<std::int32_t>& ids, std::vector<std::int32_t>& located) const {
    auto const first = ids.size();
    std::vector<std::size_t> starts;
    encode(text, ids, &starts);
    auto from = starts.begin();
    for (auto const offset : offsets) {
      // A normalizer may move a mark before another one, but never out of its place among the letters.
      from = std::find_if(from, starts.end(), [&](std::size_t start) { return start >= offset; });
      located.push_back(static_cast<std::int32_t>(first + static_cast<std::size_t>(from - starts.begin())));
    }
  }

  added_token_finder added;
  added_token_finder added_normalized;
  normalizer normalize;
  pre_tokenizer cut;
  detail::token_encoder encoder;
  token_decoder decode;
  std::vector<std::int32_t> prefix, suffix;
  std::optional<std::int32_t> bos, eos, pad;
  std::vector<std::string> spelt;  // tokens by id
  std::vector<bool> special;       // by id
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
  auto const before = ids.size();
  if (add_special) {
    ids.insert(ids.end(), tables_->prefix.begin(), tables_->prefix.end());
  }
  try {
    tables_->encode(utf8, ids);
  } catch (...) {  // a pattern needs too many steps
    ids.resize(before);
    throw;
  }
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
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (auto const id : ids) {
    auto const index = static_cast<std::size_t>(id);  // negative ids become huge
    if (index >= tables_->spelt.size() || tables_->spelt[index].empty() ||
        (skip_special && tables_->special[index])) {
      continue;
    }
    tokens.push_back(tables_->spelt[index]);
  }
  return to_valid_utf8(tables_->decode(std::move(tokens)));
}

SUPEROFFLOAD_INLINE std::int64_t tokenizer::size() const noexcept {
  return static_cast<std::int64_t>(tables_->spelt.size());
}
SUPEROFFLOAD_INLINE std::optional<std::int32_t> tokenizer::bos_id() const noexcept { return tables_->bos; }
SUPEROFFLOAD_INLINE std::optional<std::int32_t> tokenizer::eos_id() const noexcept { return tables_->eos; }
SUPEROFFLOAD_INLINE std::optional<std::int32_t> tokenizer::pad_id() const noexcept { return tables_->pad; }

}  // namespace superoffload::text
