// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/data/examples.hpp>
#include <superoffload/data/split.hpp>

#include <algorithm>
#include <future>
#include <thread>

namespace superoffload::data {
namespace detail {

SUPEROFFLOAD_INLINE example_set encode_part(std::span<instruction const> rows, text_encoder const& encode,
                                            std::optional<std::int32_t> eos,
                                            encoding_options const& options) {
  example_set examples;
  auto const most = static_cast<std::size_t>(options.max_length);
  for (auto const& row : rows) {
    auto const text = text::render(options.prompt_template, row.instruction, row.input, row.output);
    auto ids = encode(text.prompt + text.response);
    if (options.append_eos) {
      ids.push_back(eos.value());
    }
    ids.resize(std::min(ids.size(), most));
    auto const masked = options.mask_prompt ? std::min(encode(text.prompt).size(), ids.size()) : 0;
    examples.add(ids, static_cast<std::int32_t>(masked));
  }
  return examples;
}

}  // namespace detail

SUPEROFFLOAD_INLINE example_set encode_examples(std::span<instruction const> rows, text_encoder const& encode,
                                                std::optional<std::int32_t> eos,
                                                encoding_options const& options) {
  expect(1 <= options.max_length && options.max_length <= 1 << 30, exit_code::bad_input,
         "max_length: ", options.max_length, ", expected from 1 to ", 1 << 30);
  expect(
      !options.append_eos || eos.has_value(), exit_code::bad_input,
      "append_eos: the tokenizer names no end-of-text token; expected eos_token in tokenizer_config.json, or "
      "append_eos off");
  auto const count = static_cast<std::int64_t>(rows.size());
  auto const cores = static_cast<std::int64_t>(std::thread::hardware_concurrency());
  auto const parts = std::clamp<std::int64_t>(options.threads > 0 ? options.threads : cores, 1,
                                              std::max<std::int64_t>(count / 16, 1));
  std::vector<std::future<example_set>> encoded;
  for (std::int64_t i = 0; i < parts; ++i) {
    auto const part = part_of(count, parts, i);
    auto const mine =
        rows.subspan(static_cast<std::size_t>(part.begin), static_cast<std::size_t>(part.size()));
    encoded.push_back(std::async(std::launch::async, [=, &encode, &options] {
      return detail::encode_part(mine, encode, eos, options);
    }));
  }
  auto examples = encoded.front().get();
  for (std::size_t i = 1; i < encoded.size(); ++i) { examples.append(encoded[i].get()); }
  expect(examples.empty() || examples.rows_without_labels() < examples.size(), exit_code::bad_input,
         "max_length: ", options.max_length, " leaves none of the ", examples.size(),
         " rows a label: the prompts fill them; expected a larger max_length, or label_mask none");
  return examples;
}

SUPEROFFLOAD_INLINE example_set encode_examples(std::span<instruction const> rows,
                                                text::tokenizer const& tokenizer,
                                                encoding_options const& options) {
  return encode_examples(
      rows, [&](std::string_view text) { return tokenizer.encode(text); }, tokenizer.eos_id(), options);
}

}  // namespace superoffload::data
