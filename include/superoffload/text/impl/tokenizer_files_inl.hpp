// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/io/file.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/text/impl/tokenizer_document_inl.hpp>
#include <superoffload/text/impl/tokenizer_steps_inl.hpp>
#include <superoffload/text/tokenizer_files.hpp>

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <unordered_map>

namespace superoffload::text {
namespace detail {

inline constexpr io::json_limits tokenizer_limits{
    .bytes = std::size_t{256} << 20, .depth = 64, .commas = 10'000'000};
inline constexpr io::json_limits config_limits{
    .bytes = std::size_t{16} << 20, .depth = 64, .commas = 1'000'000};
inline constexpr std::size_t longest_token = std::size_t{64} << 10;
inline constexpr std::size_t longest_added_token = 256;
inline constexpr std::size_t longest_unigram = 256;  // its encoder takes time in proportion

SUPEROFFLOAD_INLINE std::int32_t token_id(json_field const& field) {
  return static_cast<std::int32_t>(field.integer(0, most_tokens - 1));
}

class reader {
public:
  explicit reader(io::model_directory const& directory)
      : file_{directory.file("tokenizer.json")}, document_{json_, file_.string()} {
    auto const text = io::read_file(file_, tokenizer_limits.bytes);
    auto const origin = io::shown(file_);
    tokenizer_builder builder{json_, origin, tokenizer_limits.depth};
    builder.ids.reserve(std::min(text.size() / 64, static_cast<std::size_t>(most_tokens)));
    io::detail::parse_into(builder, text, origin, tokenizer_limits);
    ids_ = std::move(builder.ids);
    entries_ = std::move(builder.merges);
  }

  tokenizer_definition read(io::model_directory const& directory) {
    document_.require_object();
    if (document_.has("version") && document_["version"].text() != "1.0") {
      refuse(document_["version"], "\"1.0\"");
    }
    tokenizer_definition tokenizer;
    tokenizer.normalizer = read_normalizer(document_);
    read_model(tokenizer);
    bool const letters =
        !tokenizer.scores.empty() || !tokenizer.continuing_prefix.empty() || !tokenizer.end_suffix.empty();
    tokenizer.pre_tokenizer = read_pre_tokenizer(document_, letters);
    tokenizer.decoder = read_decoder(document_);
    read_added_tokens(tokenizer);
    read_config(directory, tokenizer);
    read_post_processor(tokenizer);
    for (auto const& [id, token] : added_) { tokenizer.added_tokens.push_back(token); }
    return tokenizer;
  }

private:
  // --- model
  // -----------------------------------------------------------------------------------------------------

  void read_model(tokenizer_definition& tokenizer) {
    auto const model = document_["model"];
    if (model["type"].text() == "Unigram") {
      read_unigram(model, tokenizer);
      return;
    }
    if (model["type"].text() != "BPE") {
      refuse_type(model, "BPE or Unigram");
    }
    if (model.has("dropout") && model["dropout"].raw() != 0) {
      refuse(model["dropout"], "null (this setting is not supported)");
    }
    auto const affix = [&](std::string const& key) { return model.has(key) ? step_text(model[key]) : ""; };
    tokenizer.continuing_prefix = affix("continuing_subword_prefix");
    tokenizer.end_suffix = affix("end_of_word_suffix");
    tokenizer.ignore_merges = flag(model, "ignore_merges");
    tokenizer.byte_fallback = flag(model, "byte_fallback");
    tokenizer.fuse_unk = flag(model, "fuse_unk");
    read_vocabulary(model["vocab"], tokenizer.vocabulary);
    read_merges(model["merges"], tokenizer);
    if (model.has("unk_token")) {
      auto const unknown = model["unk_token"];
      auto const found = ids_.find(unknown.text());
      expect(found != ids_.end(), exit_code::bad_input, unknown.where(), ": no token '",
             printable(unknown.text(), 60), "'; expected one of model.vocab, or null");
      tokenizer.unk_id = found->second;
    }
  }

  /// Of equal tokens the last counts, as in Hugging Face tokenizers.
  void read_unigram(json_field const& model, tokenizer_definition& tokenizer) {
    auto const list = model["vocab"];
    list.require_array();
    auto const size = list.raw().size();
    expect(size > 0 && size <= static_cast<std::size_t>(most_tokens), exit_code::bad_input, list.where(),
           ": ", size, " tokens, expected 1 to ", most_tokens);
    for (std::size_t i = 0; i < size; ++i) {
      auto const pair = list[i];
      pair.require_array();
      expect(pair.raw().size() == 2, exit_code::bad_input, pair.where(), ": expected a token and its score");
      auto const& token = pair[0].text();
      expect(token.size() <= longest_unigram, exit_code::bad_input, pair.where(), ": token of ", token.size(),
             " bytes, expected at most ", longest_unigram);
      tokenizer.vocabulary.push_back(token);
      tokenizer.scores.push_back(pair[1].number(-1e30, 1e30));
      ids_.insert_or_assign(token, static_cast<std::int32_t>(i));
    }
    tokenizer.byte_fallback = flag(model, "byte_fallback");
    if (model.has("unk_id")) {
      tokenizer.unk_id =
          static_cast<std::int32_t>(model["unk_id"].integer(0, static_cast<std::int64_t>(size) - 1));
    }
  }

  void read_vocabulary(json_field const& field, std::vector<std::string>& vocabulary) const {
    field.require_object();
    vocabulary.reserve(ids_.size());
    for (auto const& [token, id] : ids_) {
      if (token.empty() || token.size() > longest_token) {
        fail(exit_code::bad_input, field.where(), ": token '", printable(token, 60), "' of ", token.size(),
             " bytes, expected 1 to ", longest_token);
      }
      auto const index = static_cast<std::size_t>(id);
      if (vocabulary.size() <= index) {
        vocabulary.resize(index + 1);
      }
      if (!vocabulary[index].empty()) {
        fail(exit_code::bad_input, field.where(), ": tokens '", printable(vocabulary[index], 60), "' and '",
             printable(token, 60), "' both have id ", id, "; expected distinct ids");
      }
      vocabulary[index] = token;
    }
  }

  /// A pair that is listed again has its last rank, as in Hugging Face tokenizers.
  void read_merges(json_field const& field, tokenizer_definition& tokenizer) const {
    field.require_array();
    auto& merges = tokenizer.merges;
    std::unordered_map<std::uint64_t, std::size_t> seen;
    seen.reserve(entries_.size());
    merges.reserve(entries_.size());
    std::string joined;
    for (auto const& [left, right] : entries_) {
      // The token of the right side has the prefix of those that do not begin a word.
      auto const prefix = tokenizer.continuing_prefix.size();
      expect(right.size() >= prefix, exit_code::bad_input, field.where(), "[", merges.size(), "]: token '",
             printable(right, 60), "'; expected one with model.continuing_subword_prefix");
      joined.assign(left).append(right, prefix);
      merge const found{id_in_merge(left, merges.size()), id_in_merge(right, merges.size()),
                        id_in_merge(joined, merges.size())};
      auto const pair = std::uint64_t{static_cast<std::uint32_t>(found.left)} << 32 |
                        static_cast<std::uint32_t>(found.right);
      if (auto const [entry, is_new] = seen.emplace(pair, merges.size()); !is_new) {
        merges[entry->second].left = -1;
        entry->second = merges.size();
      }
      merges.push_back(found);
    }
    std::erase_if(merges, [](merge const& one) { return one.left < 0; });
  }

  std::int32_t id_in_merge(std::string_view token, std::size_t rank) const {
    auto const found = ids_.find(token);
    if (found == ids_.end()) {
      fail(exit_code::bad_input, document_.origin(), ": model.merges[", rank, "]: token '",
           printable(token, 60), "' is not in model.vocab; expected both sides and the merged token there");
    }
    return found->second;
  }

  // --- what is put around a text
  // ---------------------------------------------------------------------------------

  void read_post_processor(tokenizer_definition& tokenizer) const {
    if (!document_.has("post_processor")) {
      return;
    }
    bool surrounds = false;
    for_each_component(
        document_["post_processor"], "processors", [&](json_field const& component, std::string const& type) {
          if (type == "ByteLevel") {
            return;
          }  // changes offsets, never ids
          bool const pair = type == "RobertaProcessing" || type == "BertProcessing";
          if ((type != "TemplateProcessing" && !pair) || surrounds) {
            refuse_type(component,
                        "ByteLevel, at most one of TemplateProcessing, RobertaProcessing and BertProcessing, "
                        "or a Sequence of them");
          }
          if (pair) {
            tokenizer.prefix = {surrounding_token(component["cls"], tokenizer)};
            tokenizer.suffix = {surrounding_token(component["sep"], tokenizer)};
          } else {
            read_template(component, tokenizer);
          }
          surrounds = true;
        });
  }

  /// The id of ["token", id].
  std::int32_t surrounding_token(json_field const& field, tokenizer_definition const& tokenizer) const {
    field.require_array();
    expect(field.raw().size() == 2, exit_code::bad_input, field.where(), ": expected a token and its id");
    return known_id(field[1], tokenizer);
  }

  std::int32_t known_id(json_field const& field, tokenizer_definition const& tokenizer) const {
    auto const id = token_id(field);
    expect(has_token(tokenizer, id), exit_code::bad_input, field.where(), ": no token has id ", id,
           "; expected an id of model.vocab or added_tokens");
    return id;
  }

  void read_template(json_field const& component, tokenizer_definition& tokenizer) const {
    auto const pieces = component["single"];
    pieces.require_array();
    auto* side = &tokenizer.prefix;
    for (std::size_t i = 0; i < pieces.raw().size(); ++i) {
      auto const piece = pieces[i];
      if (piece.has("Sequence")) {
        if (piece["Sequence"]["id"].text() != "A" || side == &tokenizer.suffix) {
          refuse(piece["Sequence"]["id"], "sequence \"A\" exactly once");
        }
        side = &tokenizer.suffix;
        continue;
      }
      auto const ids = component["special_tokens"][piece["SpecialToken"]["id"].text()]["ids"];
      ids.require_array();
      for (std::size_t k = 0; k < ids.raw().size(); ++k) { side->push_back(known_id(ids[k], tokenizer)); }
    }
    expect(side == &tokenizer.suffix, exit_code::bad_input, pieces.where(),
           ": expected sequence \"A\" exactly once");
  }

  bool has_token(tokenizer_definition const& tokenizer, std::int32_t id) const {
    auto const index = static_cast<std::size_t>(id);
    return (index < tokenizer.vocabulary.size() && !tokenizer.vocabulary[index].empty()) ||
           added_.contains(id);
  }

  // --- added and special tokens
  // ----------------------------------------------------------------------------------

  static added_token read_added_token(json_field const& field, std::int32_t id) {
    added_token token{field["content"].text(), id};
    expect(!token.content.empty() && token.content.size() <= longest_added_token, exit_code::bad_input,
           field.where(), ".content: ", token.content.size(), " bytes, expected 1 to ", longest_added_token);
    token.single_word = flag(field, "single_word");
    token.lstrip = flag(field, "lstrip");
    token.rstrip = flag(field, "rstrip");
    token.special = flag(field, "special");
    token.normalized = flag(field, "normalized", !token.special);
    return token;
  }

  /// Adds a token, or gives a known one new flags; equal contents must have one id.
  void enter_added_token(added_token const& token, json_field const& field,
                         tokenizer_definition const& tokenizer) {
    auto const [entry, is_new] = ids_.emplace(token.content, token.id);
    expect(entry->second == token.id, exit_code::bad_input, field.where(), ": token '",
           printable(token.content, 60), "' has id ", token.id, " here and ", entry->second,
           " elsewhere; expected one id");
    expect(!is_new || !has_token(tokenizer, token.id), exit_code::bad_input, field.where(), ": id ", token.id,
           " of '", printable(token.content, 60), "' belongs to another token; expected distinct ids");
    added_.insert_or_assign(token.id, token);
  }

  void read_added_tokens(tokenizer_definition const& tokenizer) {
    if (!document_.has("added_tokens")) {
      return;
    }
    auto const list = document_["added_tokens"];
    list.require_array();
    for (std::size_t i = 0; i < list.raw().size(); ++i) {
      auto const token = read_added_token(list[i], token_id(list[i]["id"]));
      expect(!added_.contains(token.id), exit_code::bad_input, list[i].where(), ".id: ", token.id,
             " is listed before; expected distinct ids");
      enter_added_token(token, list[i], tokenizer);
    }
  }

  /// added_tokens_decoder of tokenizer_config.json: its flags override those of tokenizer.json, and its new
  /// tokens are added.
  void read_added_tokens_decoder(json_field const& list, tokenizer_definition const& tokenizer) {
    list.require_object();
    for (auto const& [key, value] : list.raw().items()) {
      std::int32_t id = -1;
      auto const [end, failure] = std::from_chars(key.data(), key.data() + key.size(), id);
      expect(failure == std::errc{} && end == key.data() + key.size() && id >= 0 && id < most_tokens,
             exit_code::bad_input, list.where(), ": field '", printable(key, 60),
             "': expected an id from 0 to ", most_tokens - 1);
      enter_added_token(read_added_token(list[key], id), list[key], tokenizer);
    }
  }

  void read_config(io::model_directory const& directory, tokenizer_definition& tokenizer) {
    auto const optional_file = [&](char const* name) {
      auto const file = directory.file(name);
      return std::pair{file.string(),
                       directory.has(name) ? io::read_json(file, config_limits) : io::json::object()};
    };
    auto const [config_name, config_json] = optional_file("tokenizer_config.json");
    auto const [map_name, map_json] = optional_file("special_tokens_map.json");
    json_field const config{config_json, config_name};
    json_field const map{map_json, map_name};
    map.require_object();
    // Only what tokenizer.json says counts. transformers lets the configuration overrule it in some classes.
    bool const prepends = tokenizer.normalizer.prepends() || tokenizer.pre_tokenizer.prepends();
    if (config.has("add_prefix_space") && flag(config, "add_prefix_space") != prepends) {
      refuse(config["add_prefix_space"], prepends ? "true, as tokenizer.json has it" : "false");
    }
    bool const has_decoder = config.has("added_tokens_decoder");
    if (has_decoder) {
      read_added_tokens_decoder(config["added_tokens_decoder"], tokenizer);
    }
    // special_tokens_map.json is obsolete: it counts only if the configuration does not list the added
    // tokens.
    auto const special = [&](std::string const& name) {
      return special_token(!has_decoder && map.has(name) ? map : config, name);
    };
    tokenizer.bos_id = special("bos_token");
    tokenizer.eos_id = special("eos_token");
    tokenizer.pad_id = special("pad_token");
  }

  /// Accepts "<s>" and {"content": "<s>", ...}.
  std::optional<std::int32_t> special_token(json_field const& owner, std::string const& name) const {
    if (!owner.has(name)) {
      return std::nullopt;
    }
    auto const field = owner[name];
    auto const content = field.raw().is_object() ? field["content"].text() : field.text();
    auto const found = ids_.find(content);
    expect(found != ids_.end(), exit_code::bad_input, field.where(), ": no token '", printable(content, 60),
           "'; expected one of model.vocab or added_tokens");
    return found->second;
  }

  std::filesystem::path file_;
  io::json json_;
  json_field document_;
  id_map ids_;                                                // of vocabulary and added tokens
  std::vector<std::pair<std::string, std::string>> entries_;  // model.merges
  std::map<std::int32_t, added_token> added_;
};

}  // namespace detail

SUPEROFFLOAD_INLINE tokenizer_definition read_tokenizer_files(io::model_directory const& model) {
  return detail::reader{model}.read(model);
}

}  // namespace superoffload::text
