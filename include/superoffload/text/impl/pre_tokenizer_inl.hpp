// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/text/character_sets.hpp>
#include <superoffload/text/pre_tokenizer.hpp>
#include <superoffload/text/utf8.hpp>
#include <superoffload/text/word_character.hpp>

#include <algorithm>

namespace superoffload::text {
namespace detail {

/// A part of a text that a pattern matches, or that lies between two matches.
struct split_part {
  byte_range range;
  bool matches;
};

SUPEROFFLOAD_INLINE std::vector<split_part> parts_of(split_pattern const& pattern, std::string_view text) {
  std::vector<split_part> parts;
  std::size_t at = 0;
  for (auto const piece : pattern(text)) {
    parts.push_back({{at, at + piece.size()}, true});
    at += piece.size();
  }
  return parts;
}

SUPEROFFLOAD_INLINE std::vector<split_part> parts_of(regular_expression const& pattern,
                                                     std::string_view text) {
  std::vector<split_part> parts;
  std::size_t done = 0;
  for (auto const match : pattern.matches(text)) {
    if (done != match.begin) {
      parts.push_back({{done, match.begin}, false});
    }
    parts.push_back({match, true});
    done = match.end;
  }
  if (done != text.size()) {
    parts.push_back({{done, text.size()}, false});
  }
  return parts;
}

/// 1: matches by itself; 2 and 3: matches together with its neighbours of the same number; 0: does not match.
SUPEROFFLOAD_INLINE int kind_of(split_class which, char32_t c) {
  static code_point_table const punctuation{punctuation_ranges};
  static code_point_table const digits{number_ranges};
  switch (which) {
    case split_class::digit:
      return digits[c] ? 1 : 0;
    case split_class::punctuation:
      return punctuation[c] ? 1 : 0;
    case split_class::white_space:
      return is_white_space(c) ? 1 : 0;
    default:
      return is_word_character(c) ? 2 : is_white_space(c) ? 0 : 3;
  }
}

SUPEROFFLOAD_INLINE std::vector<split_part> parts_of(split_class which, std::string_view text) {
  std::vector<split_part> parts;
  int last = -1;
  for (std::size_t at = 0; at < text.size();) {
    auto const step = first_step(text.substr(at));
    auto const kind = kind_of(which, step.code_point);
    if (kind == last && kind != 1) {
      parts.back().range.end += step.length;
    } else {
      parts.push_back({{at, at + step.length}, kind != 0});
    }
    last = kind;
    at += step.length;
  }
  return parts;
}

/// The pieces that a behaviour makes of parts.
SUPEROFFLOAD_INLINE std::vector<byte_range> joined(std::vector<split_part> parts, split_behavior behavior) {
  bool const backward = behavior == split_behavior::merged_with_next;
  if (backward) {
    std::ranges::reverse(parts);
  }
  std::vector<byte_range> pieces;
  bool before = false;  // whether the last part matches
  for (auto const& [range, matches] : parts) {
    if (behavior == split_behavior::removed && matches) {
      continue;
    }
    bool join = false;
    if (behavior == split_behavior::contiguous) {
      join = matches == before;
    } else if (backward || behavior == split_behavior::merged_with_previous) {
      join = matches && !before;
    }
    if (join && !pieces.empty()) {
      (backward ? pieces.back().begin : pieces.back().end) = backward ? range.begin : range.end;
    } else {
      pieces.push_back(range);
    }
    before = matches;
  }
  if (backward) {
    std::ranges::reverse(pieces);
  }
  return pieces;
}

/// Cuts text into pieces, step by step.
class cutter {
public:
  cutter(derived_text& text, std::size_t begin)
      : text_{text}, begin_{begin}, pieces_{{0, text.text().size()}} {}

  void operator()(split_step const& step) {
    std::vector<byte_range> next;
    for (auto const whole : pieces_) {
      auto const text = text_.text().substr(whole.begin, whole.end - whole.begin);
      auto parts = std::visit([&](auto const& pattern) { return parts_of(pattern, text); }, step.pattern);
      for (auto& part : parts) { part.matches = part.matches != step.invert; }
      for (auto const piece : joined(std::move(parts), step.behavior)) {
        next.push_back({whole.begin + piece.begin, whole.begin + piece.end});
      }
    }
    pieces_ = std::move(next);
    drop_empty();
  }

  void operator()(metaspace_step const& step) {
    auto const& mark = step.replacement;
    rewrite([&](derived_text& out, byte_range piece) {
      auto const text = text_.text().substr(piece.begin, piece.end - piece.begin);
      bool const begins = text.starts_with(' ') || text.starts_with(mark);
      bool const wanted =
          step.scheme == metaspace_step::prepend::always ||
          (step.scheme == metaspace_step::prepend::first && begin_ + text_.origin(piece.begin) == 0);
      if (wanted && !begins) {
        out.append(mark, text_.origin(piece.begin));
      }
      for (auto at = piece.begin; at < piece.end;) {
        auto const space = std::min(text_.text().find(' ', at), piece.end);
        out.append(text_, at, space);
        if (space < piece.end) {
          out.append(mark, text_.origin(space));
        }
        at = space + 1;
      }
    });
    if (step.split) {
      split_before(mark);
    }
  }

  void operator()(prefix_space_step) {
    rewrite([&](derived_text& out, byte_range piece) {
      if (text_.text()[piece.begin] != ' ') {
        out.append(" ", text_.origin(piece.begin));
      }
      out.append(text_, piece.begin, piece.end);
    });
  }

  void operator()(byte_alphabet_step) {
    rewrite([&](derived_text& out, byte_range piece) { out.append_letters(text_, piece.begin, piece.end); });
  }

  std::vector<byte_range> pieces() && {
    drop_empty();
    return std::move(pieces_);
  }

private:
  void drop_empty() {
    std::erase_if(pieces_, [](byte_range piece) { return piece.begin == piece.end; });
  }

  /// Makes the text anew of what `append` makes of each piece.
  template <class Append>
  void rewrite(Append append) {
    drop_empty();
    derived_text out{text_.traced()};
    for (auto& piece : pieces_) {
      auto const begin = out.text().size();
      append(out, piece);
      piece = {begin, out.text().size()};
    }
    text_ = std::move(out);
  }

  /// A piece begins with each `mark`; the first of several in a row has the same right as the others.
  void split_before(std::string_view mark) {
    std::vector<byte_range> next;
    for (auto const [begin, end] : pieces_) {
      std::vector<split_part> parts;
      for (auto at = begin; at < end;) {
        if (text_.text().substr(at, end - at).starts_with(mark)) {
          parts.push_back({{at, at + mark.size()}, true});
        } else {
          parts.push_back({{at, std::min(text_.text().find(mark, at), end)}, false});
        }
        at = parts.back().range.end;
      }
      auto const pieces = joined(std::move(parts), split_behavior::merged_with_next);
      next.insert(next.end(), pieces.begin(), pieces.end());
    }
    pieces_ = std::move(next);
  }

  derived_text& text_;
  std::size_t begin_;
  std::vector<byte_range> pieces_;
};

}  // namespace detail

SUPEROFFLOAD_INLINE std::vector<byte_range> pre_tokenizer::operator()(derived_text& text,
                                                                      std::size_t begin) const {
  detail::cutter cut{text, begin};
  for (auto const& step : steps_) { std::visit(cut, step); }
  return std::move(cut).pieces();
}

SUPEROFFLOAD_INLINE std::vector<std::string> pre_tokenizer::pieces(std::string_view text) const {
  derived_text derived{text, true};
  std::vector<std::string> found;
  for (auto const [begin, end] : operator()(derived, 0)) {
    found.emplace_back(derived.text().substr(begin, end - begin));
  }
  return found;
}

SUPEROFFLOAD_INLINE bool pre_tokenizer::needs_origins() const noexcept {
  return std::ranges::any_of(steps_, [](auto const& step) {
    auto const* const metaspace = std::get_if<metaspace_step>(&step);
    return metaspace != nullptr && metaspace->scheme == metaspace_step::prepend::first;
  });
}

SUPEROFFLOAD_INLINE bool pre_tokenizer::prepends() const noexcept {
  return std::ranges::any_of(steps_, [](auto const& step) {
    auto const* const metaspace = std::get_if<metaspace_step>(&step);
    return std::holds_alternative<prefix_space_step>(step) ||
           (metaspace != nullptr && metaspace->scheme != metaspace_step::prepend::never);
  });
}

}  // namespace superoffload::text
