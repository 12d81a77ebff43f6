// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/data/encode_row.hpp>
#include <superoffload/data/impl/row_fields_inl.hpp>
#include <superoffload/data/messages.hpp>
#include <superoffload/data/sharegpt.hpp>
#include <superoffload/io/json.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace superoffload::data {
namespace detail {

/// list[i], without the path that only a message needs.
SUPEROFFLOAD_INLINE std::int64_t integer_at(io::json_field const& list, std::size_t i, std::int64_t least,
                                            std::int64_t most) {
  auto const& value = list.raw()[i];
  if (value.is_number_integer()) {
    auto const number = value.get<std::int64_t>();
    if (least <= number && number <= most) {
      return number;
    }
  }
  return list[i].integer(least, most);
}

SUPEROFFLOAD_INLINE std::vector<std::int32_t> ids_of(io::json_field const& list, std::int64_t vocabulary) {
  list.require_array();
  std::vector<std::int32_t> ids(list.raw().size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<std::int32_t>(integer_at(list, i, 0, vocabulary - 1));
  }
  expect(!ids.empty(), exit_code::bad_input, list.where(), ": expected at least one id, found none");
  return ids;
}

SUPEROFFLOAD_INLINE void require_size(io::json_field const& list, std::size_t size) {
  list.require_array();
  expect(list.raw().size() == size, exit_code::bad_input, list.where(), ": ", list.raw().size(),
         " elements, expected ", size, " as in input_ids");
}

/// The ids that are no padding, which is at the beginning or the end.
SUPEROFFLOAD_INLINE range attended(io::json_field const& mask, std::size_t size) {
  require_size(mask, size);
  range found{static_cast<std::int64_t>(size), 0};
  std::int64_t ones = 0;
  for (std::size_t i = 0; i < size; ++i) {
    if (integer_at(mask, i, 0, 1) == 1) {
      auto const at = static_cast<std::int64_t>(i);
      found = {std::min(found.begin, at), at + 1};
      ++ones;
    }
  }
  expect(ones > 0 && found.size() == ones, exit_code::bad_input, mask.where(),
         ": expected ones without a gap, and zeros only for padding before or behind them");
  return found;
}

/// The ranges whose label is not -100.
SUPEROFFLOAD_INLINE std::vector<range> labelled(io::json_field const& labels,
                                                std::vector<std::int32_t> const& ids) {
  constexpr std::int64_t ignored = -100;
  require_size(labels, ids.size());
  std::vector<range> learnt;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    auto const label = integer_at(labels, i, ignored, std::numeric_limits<std::int32_t>::max());
    expect(label == ignored || label == ids[i], exit_code::bad_input, labels[i].where(), ": expected ",
           ids[i], " as in input_ids, or -100 where nothing is learnt, found ", label);
    auto const at = static_cast<std::int64_t>(i);
    if (label == ignored) {
      continue;
    }
    if (learnt.empty() || learnt.back().end < at) {
      learnt.push_back({at, at});
    }
    learnt.back().end = at + 1;
  }
  return learnt;
}

SUPEROFFLOAD_INLINE encoded_row encode_tokenized(row_fields const& fields, row_encoder const& encoder) {
  auto ids = ids_of(fields["input_ids"], encoder.options().vocabulary);
  auto const all = range{0, static_cast<std::int64_t>(ids.size())};
  auto const kept = fields.has("attention_mask") ? attended(fields["attention_mask"], ids.size()) : all;
  auto learnt = fields.has("labels") ? labelled(fields["labels"], ids) : std::vector<range>{all};
  ids.resize(static_cast<std::size_t>(kept.end));
  ids.erase(ids.begin(), ids.begin() + kept.begin);
  for (auto& one : learnt) {
    one = {std::clamp(one.begin, kept.begin, kept.end) - kept.begin,
           std::clamp(one.end, kept.begin, kept.end) - kept.begin};
  }
  std::erase_if(learnt, [](range const one) { return one.size() == 0; });
  return encoder.cut(std::move(ids), std::move(learnt));
}

SUPEROFFLOAD_INLINE text::prompt alpaca_prompt(row_fields const& fields, text::prompt_template form) {
  if (fields.has("history")) {
    auto const history = fields["history"];
    history.require_array();
    expect(history.raw().empty(), exit_code::bad_input, history.where(), ": ", history.raw().size(),
           " earlier turns, expected none: a row of Alpaca is one turn; write conversations as messages");
  }
  auto const instruction = fields["instruction"];
  return text::render(form, instruction.text(), fields.text_or_empty("input"), fields["output"].text(),
                      fields.text_or_empty("system"));
}

}  // namespace detail

SUPEROFFLOAD_INLINE encoded_row encode_row(row const& one, row_format format, column_names const& columns,
                                           int depth, row_encoder const& encoder) {
  if (format == row_format::messages) {  // which parses the row by itself: it needs the order of the members
    return encode_messages(one.text, one.origin, columns, encoder);
  }
  auto const document = io::parse_json(one.text, one.origin, {one.text.size(), depth});
  detail::row_fields const fields{document, one.origin, columns};
  encoded_row encoded;
  switch (format) {
    case row_format::alpaca:
      return encoder.encode(detail::alpaca_prompt(fields, encoder.options().prompt_template));
    case row_format::prompt_completion:
      encoded = encoder.encode(text::prompt{fields["prompt"].text(), fields["completion"].text()});
      break;
    case row_format::text:
      encoded = encoder.encode_text(fields["text"].text());
      break;
    case row_format::tokenized:
      return detail::encode_tokenized(fields, encoder);
    case row_format::sharegpt:
      return encode_messages(messages_of_sharegpt(one, columns, depth), one.origin, {}, encoder);
    case row_format::messages:
    case row_format::automatic:
      break;
  }
  expect(format != row_format::automatic, exit_code::internal, one.origin, ": a row without a format");
  expect(!encoded.ids.empty(), exit_code::bad_input, one.origin, ": the row is empty: it makes no token");
  return encoded;
}

}  // namespace superoffload::data
