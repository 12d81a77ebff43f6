// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/io/json.hpp>
#include <superoffload/text/utf8.hpp>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace superoffload::text {

/// The texts that tests/data/tokenizers/make.py encodes, each a function of its number.
class random_texts {
public:
  random_texts() {
    auto const file = std::filesystem::path{SUPEROFFLOAD_TEST_DATA} / "tokenizers" / "random_texts.json";
    pieces_ = io::read_json(file)["pieces"].get<std::vector<std::string>>();
  }

  [[nodiscard]] std::string operator()(std::uint64_t number) const {
    auto state = number;
    auto const draw = [&state](std::uint64_t end) {
      auto z = state += 0x9e3779b97f4a7c15;
      z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
      z = (z ^ z >> 27) * 0x94d049bb133111eb;
      return ((z ^ z >> 31) >> 11) % end;
    };
    std::string text;
    for (auto left = 1 + draw(24); left > 0; --left) {
      if (draw(4) != 0) {
        text += pieces_[draw(pieces_.size())];
        continue;
      }
      auto const c = static_cast<char32_t>(draw(2) != 0 ? draw(0x3000) : draw(0x110000));
      append_utf8(text, c >= 0xd800 && c <= 0xdfff ? U'x' : c);
    }
    return text;
  }

private:
  std::vector<std::string> pieces_;
};

/// FNV-1a, as make.py has it.
inline std::uint32_t digest(std::string_view bytes) {
  std::uint32_t value = 0x811c9dc5;
  for (char const byte : bytes) { value = (value ^ static_cast<unsigned char>(byte)) * 0x01000193; }
  return value;
}

/// That of ids.
inline std::uint32_t digest(std::span<std::int32_t const> ids) {
  std::string text;
  for (auto const id : ids) { text += std::to_string(id) + ' '; }
  return digest(text);
}

}  // namespace superoffload::text
