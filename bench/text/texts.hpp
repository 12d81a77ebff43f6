// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/io/json.hpp>
#include <superoffload/text/prompt.hpp>
#include <superoffload/text/tokenizer_files.hpp>

#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace superoffload::bench {

inline constexpr std::array families{"llama3", "phi4", "qwen3", "seed_oss", "gpt_oss"};

inline text::tokenizer_definition reference(std::string const& family) {
  return text::read_tokenizer_files(std::filesystem::path{SUPEROFFLOAD_TOKENIZERS} / family);
}

/// The pattern that cuts the texts of `family`.
inline text::split_pattern pattern(std::string const& family) {
  auto const file = std::filesystem::path{SUPEROFFLOAD_TOKENIZERS} / family / "tokenizer.json";
  auto const document = io::read_json(file, {.bytes = std::size_t{64} << 20});
  auto const& regex = document["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"];
  return {regex.get<std::string>(), family};
}

/// The sample's prompts with their answers, one text a row.
inline std::vector<std::string> const& rows() {
  static std::vector<std::string> const texts = [] {
    std::vector<std::string> out;
    for (auto const& row : io::read_json(SUPEROFFLOAD_ALPACA, {.bytes = std::size_t{64} << 20})) {
      auto const [prompt, response] =
          text::render(text::prompt_template::deepspeed, row["instruction"].get<std::string>(),
                       row["input"].get<std::string>(), row["output"].get<std::string>());
      out.push_back(prompt + response);
    }
    return out;
  }();
  return texts;
}

/// One text of the sample's rows, `count` times in a row: time must grow with its length.
inline std::vector<std::string> joined(int count) {
  std::string all;
  for (int i = 0; i < count; ++i) {
    for (auto const& row : rows()) { all += row; }
  }
  return {all};
}

inline std::vector<std::string> repeated(std::string const& unit) {
  std::string all;
  while (all.size() < (std::size_t{1} << 20)) { all += unit; }
  return {all};
}

}  // namespace superoffload::bench
