// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/agreement.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/data/fingerprint.hpp>
#include <superoffload/data/source.hpp>
#include <superoffload/io/directory.hpp>
#include <superoffload/train/run/shared_run.hpp>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace superoffload::train {
namespace detail {

namespace fs = std::filesystem;

SUPEROFFLOAD_INLINE std::string content_of(fs::path const& file) {
  std::error_code failure;
  if (file.empty() || !fs::is_regular_file(file, failure)) {
    return "no such file";
  }
  auto const print = data::fingerprint_of(file);
  return concat(print.bytes, " bytes, FNV-1a ", print.fnv1a);
}

/// Of a file, or of the shards in a directory.
SUPEROFFLOAD_INLINE std::string content_of_set(fs::path const& path, bool follow_links) {
  std::error_code failure;
  if (!fs::is_directory(path, failure)) {
    return content_of(path);
  }
  auto const print = data::fingerprint_of(data::files_of(path, follow_links));
  return concat(print.bytes, " bytes, FNV-1a ", print.fnv1a);
}

SUPEROFFLOAD_INLINE std::string weights_in(fs::path const& model) {
  std::string text;
  for (auto const& name : io::list_directory(model)) {
    if (fs::path{name}.extension() == ".safetensors") {
      std::error_code failure;
      text += concat(text.empty() ? "" : ", ", name, " of ", fs::file_size(model / name, failure), " bytes");
    }
  }
  return text;
}

}  // namespace detail

SUPEROFFLOAD_INLINE void expect_same_options(comm::host_group const& ranks, training_options const& o,
                                             std::string const& element_type) {
  if (ranks.ranks() == 1) {
    return;
  }
  comm::expect_same(ranks, "--dtype", element_type);
  for (auto const& [name, value] : shared_settings(o)) { comm::expect_same(ranks, name, value); }
  std::vector<std::pair<char const*, std::string>> files;
  // A rank that cannot read its files fails all ranks.
  comm::together(ranks, [&] {
    auto const model = o.model_source();
    files = {{"the model's config.json", detail::content_of(model.file("config.json"))},
             {"the model's tokenizer.json", detail::content_of(model.file("tokenizer.json"))},
             {"the model's weights", detail::weights_in(o.model)},
             {"the held-out data", detail::content_of_set(o.eval_dataset, o.follow_links)}};
    for (auto const& set : o.dataset) {
      files.emplace_back("the data set", detail::content_of_set(set.path, o.follow_links));
    }
  });
  for (auto const& [name, value] : files) { comm::expect_same(ranks, name, value); }
}

}  // namespace superoffload::train
