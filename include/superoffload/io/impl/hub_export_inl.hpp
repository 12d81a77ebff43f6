// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/io/directory.hpp>
#include <superoffload/io/hub_export.hpp>
#include <superoffload/io/impl/model_directory_inl.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/io/model_directory.hpp>
#include <superoffload/io/safetensors.hpp>

#include <algorithm>
#include <system_error>

namespace superoffload::io {
namespace detail {

namespace fs = std::filesystem;

inline constexpr std::uint64_t most_kept_bytes = std::uint64_t{256} << 20;
inline constexpr auto marker_name = "superoffload_export.json";
inline constexpr std::size_t most_marker_bytes = 4096;

SUPEROFFLOAD_INLINE bool is_written(std::string_view name) {
  return is_companion(name) || name == "config.json" || name == marker_name ||
         name == "model.safetensors.index.json" ||
         (name.starts_with("model") && name.ends_with(".safetensors"));
}

/// Absolute, without links or a separator at the end.
SUPEROFFLOAD_INLINE fs::path resolved(fs::path const& path) {
  std::error_code failure;
  auto whole = fs::weakly_canonical(path, failure);
  expect(!failure && !path.empty(), exit_code::bad_input, shown(path),
         ": expected the name of a directory to write");
  whole = whole.has_filename() ? whole : whole.parent_path();
  return whole;
}

SUPEROFFLOAD_INLINE void expect_export(fs::path const& directory) {
  std::error_code failure;
  expect(fs::is_directory(directory, failure), exit_code::bad_input, shown(directory),
         ": is a file, expected the name of a directory to write");
  auto const names = list_directory(directory);
  for (auto const& name : names) {
    expect(is_written(name) && fs::is_regular_file(fs::symlink_status(directory / name, failure)),
           exit_code::bad_input, shown(directory / name),
           ": is nothing that an export writes, so the directory is not replaced; export to another one");
  }
  expect(
      names.empty() || std::ranges::find(names, marker_name) != names.end(), exit_code::bad_input,
      shown(directory), ": has no ", marker_name,
      ", so it may be a model that nothing here has exported, and is not replaced; move it away, or export "
      "to another directory");
}

SUPEROFFLOAD_INLINE void expect_replaceable(fs::path const& destination, fs::path const& model) {
  std::error_code failure;
  expect(!fs::equivalent(destination, model, failure), exit_code::bad_input, shown(destination),
         ": is the model that is read; export to another directory");
  if (fs::exists(destination, failure)) {
    expect_export(destination);
  }
}

/// config.json with the element type of the export and without its quantisation field; other fields and their
/// order are unchanged.
SUPEROFFLOAD_INLINE std::string config_with_type(std::string const& text, std::string const& origin,
                                                 dtype type) {
  auto config = ordered_object(text, origin);
  config.erase("quantization_config");
  auto const name = type == dtype::bf16 ? "bfloat16" : "float32";
  // transformers 5 writes "dtype"; it reads "torch_dtype", too.
  bool const has_new_name = config.contains("dtype");
  if (has_new_name) {
    config["dtype"] = name;
  }
  if (config.contains("torch_dtype") || !has_new_name) {
    config["torch_dtype"] = name;
  }
  return config.dump(2) + "\n";
}

/// How many tensors each file holds: filled greedily, in order.
SUPEROFFLOAD_INLINE std::vector<std::size_t> tensors_per_shard(std::span<tensor_declaration const> tensors,
                                                               std::uint64_t most) {
  std::vector<std::size_t> counts;
  std::uint64_t used = 0;
  for (auto const& tensor : tensors) {
    auto const bytes = tensor.bytes();
    if (counts.empty() || (used > 0 && (used > most || bytes > most - used))) {
      counts.push_back(0);
      used = 0;
    }
    ++counts.back();
    used += bytes;
  }
  return counts.empty() ? std::vector<std::size_t>{0} : counts;
}

SUPEROFFLOAD_INLINE std::string shard_name(std::size_t shard, std::size_t shards) {
  if (shards == 1) {
    return "model.safetensors";
  }
  auto const five_digits = [](std::size_t number) {
    auto const digits = std::to_string(number);
    return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
  };
  return concat("model-", five_digits(shard + 1), "-of-", five_digits(shards), ".safetensors");
}

SUPEROFFLOAD_INLINE void write_shard(fs::path const& path, std::span<tensor_declaration const> tensors,
                                     std::size_t number_of_first, export_source const& source) {
  safetensors_writer writer{path, tensors};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    auto const width = size_of(tensors[i].type);
    auto const bytes = tensors[i].bytes();
    for (std::uint64_t done = 0; done < bytes;) {
      auto const piece = writer.next(std::min<std::uint64_t>(safetensors_writer::most_bytes, bytes - done));
      source(number_of_first + i, done / width, piece);
      writer.commit();
      done += piece.size();
    }
  }
  writer.finish();
}

SUPEROFFLOAD_INLINE void write_weights(fs::path const& directory, std::span<tensor_declaration const> tensors,
                                       export_source const& source, std::uint64_t max_shard_bytes) {
  auto const counts = tensors_per_shard(tensors, max_shard_bytes);
  json weight_map = json::object();
  std::uint64_t total = 0;
  std::size_t first = 0;
  for (std::size_t shard = 0; shard < counts.size(); ++shard) {
    auto const name = shard_name(shard, counts.size());
    auto const inside = tensors.subspan(first, counts[shard]);
    write_shard(directory / name, inside, first, source);
    for (auto const& tensor : inside) {
      expect(weight_map.emplace(tensor.name, name).second, exit_code::bad_input, shown(directory / name),
             ": tensor '", printable(tensor.name), "' is declared twice; expected each name once");
      total += tensor.bytes();
    }
    first += counts[shard];
  }
  if (counts.size() > 1) {
    json const whole{{"metadata", {{"total_size", total}}}, {"weight_map", std::move(weight_map)}};
    write_new_file(directory / "model.safetensors.index.json", whole.dump(2) + "\n");
  }
}

SUPEROFFLOAD_INLINE std::string staging_prefix_of(fs::path const& destination) {
  return concat(".", destination.filename().native(), ".tmp-");
}

/// Removes what killed exports to the same directory left behind.
SUPEROFFLOAD_INLINE void remove_export_leftovers(fs::path const& destination) {
  restore_replaced(destination);
  for (auto const& name : list_directory(destination.parent_path())) {
    if (is_suffixed(name, staging_prefix_of(destination))) {
      remove_tree(destination.parent_path() / name);
    }
  }
}

}  // namespace detail

SUPEROFFLOAD_INLINE model_files model_files::read(model_directory const& directory) {
  model_files files{directory.path(), directory.config(), {}};
  for (auto const& name : directory.companions()) {
    files.others.emplace_back(
        name, read_file(directory.file(name),
                        detail::most_kept_bytes - std::min(detail::most_kept_bytes, files.bytes())));
  }
  return files;
}

SUPEROFFLOAD_INLINE std::uint64_t model_files::bytes() const noexcept {
  std::uint64_t sum = config.size();
  for (auto const& [name, content] : others) { sum += content.size(); }
  return sum;
}

SUPEROFFLOAD_INLINE void hub_export(model_files const& model, std::filesystem::path const& destination,
                                    std::span<export_tensor const> tensors, export_source const& source,
                                    export_options options) {
  expect(options.type == dtype::f32 || options.type == dtype::bf16, exit_code::bad_input, shown(destination),
         ": export as ", name_of(options.type), ", expected F32 or BF16");
  auto const config =
      detail::config_with_type(model.config, shown(model.directory / "config.json"), options.type);
  std::vector<tensor_declaration> declared;
  for (auto const& tensor : tensors) { declared.push_back({tensor.name, options.type, tensor.shape}); }

  auto const target = detail::resolved(destination);
  make_directories(target.parent_path());
  detail::remove_export_leftovers(target);
  detail::expect_replaceable(target, model.directory);

  staging_directory const staged{target.parent_path() /
                                 (detail::staging_prefix_of(target) + random_suffix())};
  write_new_file(staged.path() / detail::marker_name, json{{"run", options.run}}.dump() + "\n");
  write_new_file(staged.path() / "config.json", config);
  for (auto const& [name, content] : model.others) { write_new_file(staged.path() / name, content); }
  detail::write_weights(staged.path(), declared, source, options.max_shard_bytes);
  sync_directory(staged.path());
  replace_directory(staged.path(), target);
}

SUPEROFFLOAD_INLINE void expect_exportable(model_directory const& model,
                                           std::filesystem::path const& destination) {
  auto const target = detail::resolved(destination);
  for (auto const& name : model.companions()) { (void)model.file(name); }
  detail::expect_replaceable(target, model.path());
  make_directories(target.parent_path());
  // Created and removed at once: a permission bit would not show a read-only file system.
  staging_directory const probe{target.parent_path() / (detail::staging_prefix_of(target) + random_suffix())};
}

SUPEROFFLOAD_INLINE std::optional<std::string> exported_run(std::filesystem::path const& directory) {
  auto const marker = directory / detail::marker_name;
  std::error_code failure;
  if (!std::filesystem::exists(std::filesystem::symlink_status(marker, failure))) {
    return std::nullopt;
  }
  try {
    auto const document = read_json(marker, {.bytes = detail::most_marker_bytes});
    return json_field{document, shown(marker)}["run"].text();
  } catch (error const& e) {
    if (e.code() != exit_code::bad_input) {
      throw;
    }
    return std::string{};
  }
}

SUPEROFFLOAD_INLINE void remove_export(std::filesystem::path const& directory) {
  detail::expect_export(directory);
  auto const target = detail::resolved(directory);
  auto const aside = target.parent_path() / (detail::staging_prefix_of(target) + random_suffix());
  rename_path(target, aside);
  sync_directory(target.parent_path());
  remove_tree(aside);
}

}  // namespace superoffload::io
