// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include "statistics.hpp"

#include <superoffload/core/error.hpp>
#include <superoffload/data/sampler.hpp>

#include <algorithm>
#include <array>
#include <cstdio>

namespace {

using namespace superoffload;

constexpr std::size_t shown_origins = 5;
constexpr std::int64_t bins = 12, bar = 50;

std::string percent(std::int64_t part, std::int64_t whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%",
                100.0 * static_cast<double>(part) / static_cast<double>(std::max<std::int64_t>(whole, 1)));
  return text;
}

std::string line(std::string name, std::string const& value) {
  name.resize(std::max<std::size_t>(name.size() + 1, 16), ' ');
  return name + value + "\n";
}

std::string right(std::string const& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

}  // namespace

void statistics::found_rows::add(std::string const& origin) {
  if (count < shown_origins) {
    first += concat(count == 0 ? "" : ", ", printable(origin, origin.size()));
  }
  ++count;
}

std::string statistics::found_rows::text() const {
  if (count == 0) {
    return "no row";
  }
  return concat(count, count == 1 ? " row: " : " rows: ", first, count > shown_origins ? ", ..." : "");
}

void statistics::add(data::row const& read, data::encoded_row const& encoded) {
  auto const size = static_cast<std::int64_t>(encoded.ids.size());
  rows_.add(encoded.ids, 0);
  auto const labels = encoded.label_tokens();
  learnt_ += labels;
  if (encoded.was_cut()) {
    cut_.add(read.origin);
    cut_tokens_ += encoded.uncut - size;
  }
  if (labels == 0) {
    without_labels_.add(read.origin);
  }
}

std::string statistics::histogram() const {
  auto const width = (rows_.longest() + bins - 1) / bins;
  std::array<std::int64_t, bins> counts{};
  for (std::int64_t row = 0; row < rows_.size(); ++row) {
    ++counts[static_cast<std::size_t>(std::max<std::int64_t>(rows_[row].length() - 1, 0) / width)];
  }
  auto const most = *std::ranges::max_element(counts);
  auto const digits = concat(rows_.longest()).size();
  std::string text;
  for (std::int64_t i = 0; i < bins && i * width < rows_.longest(); ++i) {
    auto const count = counts[static_cast<std::size_t>(i)];
    auto const drawn = count == 0 ? 0 : std::max<std::int64_t>(count * bar / most, 1);
    text += concat("  ", right(concat(i * width + 1), digits), " to ",
                   right(concat(std::min((i + 1) * width, rows_.longest())), digits), " ",
                   std::string(static_cast<std::size_t>(drawn), '#'), " ", count, "\n");
  }
  return text;
}

std::string statistics::packed() const {
  data::sampler sampler{rows_, {.packing = true, .max_length = max_length_}};
  std::int64_t sequences = 0;
  while (sampler.where().epoch == 0) { sequences += static_cast<std::int64_t>(sampler.next().size()); }
  return concat(percent(rows_.tokens(), sequences * max_length_), " of ", sequences, " sequences of ",
                max_length_, " tokens");
}

std::string statistics::text() const {
  std::vector<std::int64_t> lengths;
  for (std::int64_t row = 0; row < rows_.size(); ++row) { lengths.push_back(rows_[row].length()); }
  std::ranges::sort(lengths);
  auto const tokens = rows_.tokens();
  return line("rows", concat(rows_.size())) + line("tokens", concat(tokens)) +
         line("learnt", concat(learnt_, " tokens, ", percent(learnt_, tokens))) +
         line("length", concat("mean ", (tokens + rows_.size() / 2) / rows_.size(), ", median ",
                               lengths[lengths.size() / 2], ", longest ", lengths.back())) +
         histogram() + line("packed", packed()) +
         line("cut", cut_.count == 0
                         ? concat("no row is longer than ", max_length_)
                         : concat("to ", max_length_, " tokens, ", cut_tokens_, " are lost: ", cut_.text())) +
         line("nothing learnt", without_labels_.text());
}
