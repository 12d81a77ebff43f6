// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/data/encode_row.hpp>
#include <superoffload/data/examples.hpp>
#include <superoffload/data/row_notes.hpp>
#include <superoffload/data/split.hpp>

#include <algorithm>
#include <future>
#include <iterator>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

namespace superoffload::data {
namespace detail {

/// `encode` of the numbers 0 .. count-1, in their order, by several threads. The first one that fails throws.
template <class Encode>
std::vector<encoded_row> encode_in_parallel(std::int64_t count, int threads, Encode const& encode) {
  auto const cores = static_cast<std::int64_t>(std::thread::hardware_concurrency());
  auto const parts =
      std::clamp<std::int64_t>(threads > 0 ? threads : cores, 1, std::max<std::int64_t>(count / 16, 1));
  std::vector<encoded_row> encoded(static_cast<std::size_t>(count));
  std::vector<std::future<void>> running;
  for (std::int64_t i = 0; i < parts; ++i) {
    running.push_back(std::async(std::launch::async, [part = part_of(count, parts, i), &encoded, &encode] {
      for (auto k = part.begin; k < part.end; ++k) { encoded[static_cast<std::size_t>(k)] = encode(k); }
    }));
  }
  for (auto& part : running) { part.get(); }
  return encoded;
}

SUPEROFFLOAD_INLINE void add_row(example_set& examples, encoded_row const& one) {
  std::vector<token_range> learnt;
  for (auto const& part : one.learnt) {
    learnt.push_back({static_cast<std::int32_t>(part.begin), static_cast<std::int32_t>(part.end)});
  }
  examples.add(one.ids, learnt);
}

/// The rows of one file after the other.
class shard_reader {
public:
  shard_reader(std::span<std::filesystem::path const> files, row_limits const& limits)
      : files_{files}, limits_{limits} {}

  std::optional<row> next() {
    std::optional<row> found;
    while (!found && (reader_ || !files_.empty())) {
      if (!reader_) {
        reader_.emplace(files_.front(), limits_);
        files_ = files_.subspan(1);
      }
      found = reader_->next();
      if (!found) {
        reader_.reset();
      }
    }
    expect(!found || rows_++ < limits_.rows, exit_code::bad_input, found ? found->origin : "", ": more than ",
           limits_.rows, " rows in all files; expected fewer");
    return found;
  }

private:
  std::span<std::filesystem::path const> files_;
  row_limits limits_;
  std::optional<row_reader> reader_;
  std::size_t rows_ = 0;
};

/// The rows that are encoded together: enough for all threads, little memory.
inline constexpr std::size_t rows_at_once = 4096, bytes_at_once = std::size_t{32} << 20;

}  // namespace detail

SUPEROFFLOAD_INLINE row_format format_of(std::span<std::filesystem::path const> files,
                                         reading_options const& options) {
  if (options.format != row_format::automatic) {
    return options.format;
  }
  row_reader reader{files.front(), options.limits};
  return format_of(reader.next().value(), options.columns, options.limits.depth);
}

SUPEROFFLOAD_INLINE std::size_t count_rows(std::span<std::filesystem::path const> files,
                                           reading_options const& options) {
  std::size_t rows = 0;
  for (detail::shard_reader reader{files, options.limits}; reader.next();) { ++rows; }
  return rows_of_percentage(rows, options.percentage);
}

SUPEROFFLOAD_INLINE void encode_rows(std::span<std::filesystem::path const> files,
                                     reading_options const& reading, row_encoder const& encoder,
                                     row_use const& use) {
  auto const format = format_of(files, reading);
  auto left = reading.first;
  if (reading.percentage != 100.0) {
    left = std::min(left, count_rows(files, reading));
  }
  detail::shard_reader reader{files, reading.limits};
  std::vector<row> rows;
  bool more = true;
  while (more) {
    rows.clear();
    for (std::size_t bytes = 0;
         more && rows.size() < detail::rows_at_once && bytes < detail::bytes_at_once;) {
      auto next = left > 0 ? reader.next() : std::nullopt;
      more = next.has_value();
      if (next) {
        --left;
        bytes += next->text.size();
        rows.push_back(std::move(*next));
      }
    }
    auto const encoded = detail::encode_in_parallel(
        static_cast<std::int64_t>(rows.size()), encoder.options().threads, [&](std::int64_t i) {
          return encode_row(rows[static_cast<std::size_t>(i)], format, reading.columns, reading.limits.depth,
                            encoder);
        });
    for (std::size_t i = 0; i < rows.size(); ++i) { use(rows[i], encoded[i]); }
  }
}

SUPEROFFLOAD_INLINE example_set read_examples(std::span<std::filesystem::path const> files,
                                              reading_options const& reading, row_encoder const& encoder,
                                              std::vector<std::string>* notes) {
  example_set examples;
  row_notes found;
  encode_rows(files, reading, encoder, [&](row const& read, encoded_row const& encoded) {
    detail::add_row(examples, encoded);
    found.add(read, encoded);
  });
  found.expect_labels(encoder.options().max_length);
  if (notes != nullptr) {
    auto lines = found.lines();
    std::ranges::move(lines, std::back_inserter(*notes));
  }
  return examples;
}

SUPEROFFLOAD_INLINE example_set encode_examples(std::span<instruction const> rows, text_encoder const& encode,
                                                std::optional<std::int32_t> eos,
                                                encoding_options const& options) {
  row_encoder const encoder{encode, eos, options};
  example_set examples;
  row_notes found;
  while (!rows.empty()) {
    auto const some = rows.first(std::min(rows.size(), detail::rows_at_once));
    rows = rows.subspan(some.size());
    auto const encoded = detail::encode_in_parallel(
        static_cast<std::int64_t>(some.size()), options.threads, [&](std::int64_t i) {
          auto const& one = some[static_cast<std::size_t>(i)];
          return encoder.encode(
              text::render(options.prompt_template, one.instruction, one.input, one.output));
        });
    for (auto const& one : encoded) {
      found.add({{}, concat("row ", examples.size() + 1)}, one);
      detail::add_row(examples, one);
    }
  }
  found.expect_labels(options.max_length);
  return examples;
}

SUPEROFFLOAD_INLINE example_set encode_examples(std::span<instruction const> rows,
                                                text::tokenizer const& tokenizer,
                                                encoding_options const& options) {
  return encode_examples(
      rows, [&](std::string_view text) { return tokenizer.encode(text); }, tokenizer.eos_id(), options);
}

}  // namespace superoffload::data
