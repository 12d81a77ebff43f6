// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/io/checksum.hpp>
#include <superoffload/io/directory.hpp>
#include <superoffload/io/hub.hpp>
#include <superoffload/io/safetensors.hpp>
#include <superoffload/io/train_checkpoint.hpp>

#include <doctest/doctest.h>

#include "failure.hpp"
#include "scratch_directory.hpp"
#include "support/fault_case.hpp"

#include <map>

using namespace superoffload;
using namespace superoffload::io;
using namespace superoffload::io::testing;

namespace {

namespace fs = std::filesystem;

/// The name of a file without its extension, and a part of the message about it.
using expectations = std::map<std::string, std::string>;

/// Calls `read` with every file under tests/data/malformed/`kind`, and checks that each has an expectation
/// and that its message contains it.
template <class Read>
void check_all(std::string_view kind, expectations const& expected, Read read) {
  auto const directory = fs::path{SUPEROFFLOAD_TEST_DATA} / "malformed" / kind;
  auto const files = list_directory(directory);
  CHECK(files.size() == expected.size());
  for (auto const& name : files) {
    CAPTURE(name);
    test::fault_case const refused{"F22"};
    auto const expectation = expected.find(fs::path{name}.stem());
    REQUIRE(expectation != expected.end());
    auto const failure = failure_of([&] { read(directory / name); });
    check_failure(failure, exit_code::bad_input, expectation->second);
    CHECK(std::string_view{failure.what()}.starts_with("/"));  // the file
  }
}

/// The two shards that the indexes refer to: x-1 with tensor a, x-2 with tensor b.
void write_shards(fs::path const& directory) {
  for (auto const& [shard, tensor] : {std::pair{"x-1.safetensors", "a"}, std::pair{"x-2.safetensors", "b"}}) {
    std::vector<tensor_declaration> const declared{{tensor, dtype::f32, {0}}};
    safetensors_writer{directory / shard, declared}.finish();
  }
}

/// With a correct digest: the content itself is malformed.
void write_manifest(fs::path const& directory, std::string const& manifest) {
  auto const content = concat("\",\n\"manifest\":", manifest, "}\n");
  write_text(directory / "manifest.json",
             concat("{\"sha256\":\"", sha256_hex(std::as_bytes(std::span{content})), content));
}

}  // namespace

TEST_CASE("the intact originals of the malformed files can be read") {
  auto const corpus = fs::path{SUPEROFFLOAD_TEST_DATA}.parent_path() / "fuzz/corpus";
  CHECK(safetensors_file::open(corpus / "safetensors/every_type.safetensors").tensors().size() == 6);
  CHECK(safetensors_file::open(corpus / "safetensors/none.safetensors").tensors().empty());
  scratch_directory const directory;
  write_shards(directory.path());
  fs::copy_file(corpus / "index/two_shards.json", directory / "model.safetensors.index.json");
  CHECK(hub_checkpoint::open(directory.path()).names() == std::vector<std::string>{"a", "b"});
  write_text(directory / "rank-00000.bin", std::string(4099, '\0'));
  write_manifest(directory.path(), contents_of(corpus / "manifest/valid.json"));
  auto const reader = checkpoint_reader::open(directory.path());
  reader.verify();
  CHECK(reader.names() == std::vector<std::string>{"a", "b"});
}

TEST_CASE("malformed safetensors files") {
  expectations const expected{
      {"byte_order_mark", "expected to start with '{'"},
      {"comma_at_end", "expected valid JSON in UTF-8"},
      {"comment", "expected valid JSON in UTF-8"},
      {"control_character", "expected valid JSON in UTF-8"},
      {"data_cut_short", ": 7 bytes of data, expected 8 as the header says; the file is cut short"},
      {"data_missing", ": 0 bytes of data, expected 8"},
      {"data_too_long", ": 9 bytes of data, expected 8 as the header says; the file is too long"},
      {"data_without_tensors", ": 1 bytes of data, expected 0"},
      {"dtype_lower_case", "header: w.dtype: expected F64"},
      {"dtype_missing", "header: w: field 'dtype' is missing"},
      {"dtype_number", "header: w.dtype: expected a string"},
      {"dtype_sub_byte", "header: w.dtype: expected F64"},
      {"dtype_twice", "field 'dtype' appears twice"},
      {"dtype_unknown", R"(header: w.dtype: expected F64, F32, BF16, F16 or U8, found "F8_E4M3")"},
      {"empty", ": 0 bytes, expected a safetensors file"},
      {"header_is_list", "expected to start with '{'"},
      {"header_length_above_format", "header of 100000001 bytes, expected at most 100000000"},
      {"header_length_above_limit", "header of 33554433 bytes, expected at most 33554432"},
      {"header_length_all_ones", "header of 18446744073709551615 bytes, expected at most 100000000"},
      {"header_length_beyond_file", "header of 3 bytes in a file of 10"},
      {"header_length_zero", "header: expected to start with '{'"},
      {"header_truncated", "header: byte"},
      {"hole_at_begin", "header: a.data_offsets: begins at 1, expected 0"},
      {"hole_between", "header: b.data_offsets: begins at 5, expected 4"},
      {"html_page", "this is no safetensors file"},
      {"invalid_utf8", "expected valid JSON in UTF-8"},
      {"leading_space", "expected to start with '{'"},
      {"lone_surrogate", "expected valid JSON in UTF-8"},
      {"metadata_is_list", "header: __metadata__: expected an object"},
      {"metadata_nested", "header: __metadata__.format: expected a string"},
      {"metadata_number", "header: __metadata__.format: expected a string"},
      {"metadata_twice", "field '__metadata__' appears twice"},
      {"name_too_long", "name of 513 bytes, expected at most 512"},
      {"name_twice", "field 'w' appears twice"},
      {"offsets_missing", "header: w: field 'data_offsets' is missing"},
      {"offsets_negative", "header: w.data_offsets[0]: expected an integer"},
      {"offsets_object", "header: w.data_offsets: expected an array"},
      {"offsets_one", "header: w.data_offsets: 1 numbers"},
      {"offsets_overflow", "header: w.data_offsets[1]: expected an integer"},
      {"offsets_reversed", "header: w.data_offsets: begin 8 is behind end 0"},
      {"offsets_string", "header: w.data_offsets[0]: expected an integer"},
      {"offsets_three", "header: w.data_offsets: 3 numbers"},
      {"overlap", "header: b.data_offsets: begins at 3, expected 4"},
      {"same_span", "data_offsets: begins at 0, expected 4"},
      {"seven_bytes", ": 7 bytes, expected a safetensors file"},
      {"shape_bytes_overflow", "header: w.shape: expected a product below 2^63"},
      {"shape_exponent", "header: w.shape[0]: expected an integer from 0"},
      {"shape_float", "header: w.shape[0]: expected an integer from 0"},
      {"shape_missing", "header: w: field 'shape' is missing"},
      {"shape_negative", "header: w.shape[0]: expected an integer from 0"},
      {"shape_negative_zero", "header: w.shape[0]: expected an integer from 0"},
      {"shape_nine_dimensions", "header: w.shape: 9 dimensions, expected at most 8"},
      {"shape_product_overflows", "header: w.shape: expected a product below 2^63"},
      {"shape_product_wraps_to_8_bytes", "header: w.shape[1]: expected an integer from 0"},
      {"shape_string", "header: w.shape: expected an array"},
      {"shape_too_large_for_63_bits", "header: w.shape[0]: expected an integer from 0"},
      {"shape_too_large_for_64_bits", "header: w.shape[0]: expected an integer from 0"},
      {"shape_true", "header: w.shape[0]: expected an integer from 0"},
      {"size_is_not_dtype", "header: w.data_offsets: 8 bytes, expected 4"},
      {"size_is_not_shape", "header: w.data_offsets: 8 bytes, expected 12"},
      {"tensor_is_list", "header: w: expected an object, found array"},
      {"tensor_is_null", "header: w: expected an object, found null"},
      {"terminal_escape_in_name", R"(header: \x1b[2J: field )"},
      {"text_after_header", "expected valid JSON in UTF-8"},
      {"too_deep", "nested deeper than 4"},
      {"unknown_field", "header: w: field 'stride' is unknown"},
      {"zero_bytes_after_header", "expected valid JSON in UTF-8"},
      {"zip_archive", "of 67324752 bytes"},
  };
  check_all("safetensors", expected, [](fs::path const& path) { safetensors_file::open(path); });
}

TEST_CASE("malformed indexes") {
  expectations const expected{
      {"empty", "byte 1: expected valid JSON in UTF-8, found the end of the text"},
      {"invalid_utf8", "expected valid JSON in UTF-8"},
      {"list", "expected an object"},
      {"metadata_list", "metadata: expected an object"},
      {"shard_absent", "x-9.safetensors: cannot be opened: No such file"},
      {"shard_absolute",
       R"(weight_map.a: expected the name of a file next to the index, found "/etc/passwd")"},
      {"shard_backslash", "weight_map.a: expected the name of a file next to the index"},
      {"shard_dot", "weight_map.a: expected the name of a file next to the index"},
      {"shard_dot_dot", "weight_map.a: expected the name of a file next to the index"},
      {"shard_empty", "weight_map.a: expected the name of a file next to the index"},
      {"shard_is_the_index", "this is no safetensors file"},
      {"shard_name_too_long", "cannot be opened: File name too long"},
      {"shard_null", "weight_map.a: expected a string"},
      {"shard_number", "weight_map.a: expected a string"},
      {"shard_parent", "weight_map.a: expected the name of a file next to the index"},
      {"shard_pickled", "pickled weights, which can run code"},
      {"shard_subdirectory", "weight_map.a: expected the name of a file next to the index"},
      {"shard_zero_byte", "weight_map.a: expected the name of a file next to the index"},
      {"tensor_in_another_shard", "x-2.safetensors has no tensor of that name"},
      {"tensor_in_no_shard", "weight_map.nothing: "},
      {"tensor_twice", "field 'a' appears twice"},
      {"terminal_escape", "weight_map.a: expected the name of a file next to the index"},
      {"too_deep", "nested deeper than 8"},
      {"truncated", "expected valid JSON in UTF-8, found the end of the text"},
      {"weight_map_list", "weight_map: expected an object"},
      {"weight_map_missing", "field 'weight_map' is missing"},
      {"weight_map_null", "weight_map: expected an object"},
      {"weight_map_twice", "field 'weight_map' appears twice"},
  };
  scratch_directory const directory;
  write_shards(directory.path());
  check_all("index", expected, [&](fs::path const& path) {
    fs::copy_file(path, directory / "model.safetensors.index.json", fs::copy_options::overwrite_existing);
    hub_checkpoint::open(directory.path());
  });
}

TEST_CASE("malformed manifests of training checkpoints") {
  expectations const expected{
      {"blob_bytes_huge", "manifest.files[0].blobs[0].bytes: expected an integer from 0"},
      {"blob_bytes_negative", "manifest.files[0].blobs[0].bytes: expected an integer from 0"},
      {"blob_bytes_without_checksums",
       "manifest.files[0].blobs[0].crc32c: 8 digits, expected 8 for each of 268435456 chunks"},
      {"blob_name_long", "manifest.files[0].blobs[0].name: 513 bytes"},
      {"blob_name_number", "manifest.files[0].blobs[0].name: expected a string"},
      {"blob_number", "manifest.files[0].blobs[0]: expected an object"},
      {"blob_twice", R"(manifest.files[0].blobs[1].name: "a" appears twice)"},
      {"blobs_missing", "manifest.files[0]: field 'blobs' is missing"},
      {"blobs_number", "manifest.files[0].blobs: expected an array"},
      {"checksum_not_hexadecimal", "manifest.files[0].blobs[0].crc32c: checksum 0"},
      {"checksum_number", "manifest.files[0].blobs[0].crc32c: expected a string"},
      {"checksum_short", "manifest.files[0].blobs[0].crc32c: 7 digits"},
      {"chunk_bytes_missing", "manifest: field 'chunk_bytes' is missing"},
      {"chunk_bytes_zero", "manifest.chunk_bytes: expected 1048576"},
      {"data_shorter", "rank-00000.bin: 4099 bytes, expected 4100 as the manifest says"},
      {"file_absolute", "manifest.files[0].name: expected 'rank-00000.bin'"},
      {"file_bytes_missing", "manifest.files[0]: field 'bytes' is missing"},
      {"file_bytes_other", "manifest.files[0].bytes: 4100, expected 4099 as the blobs say"},
      {"file_path", R"(manifest.files[0].name: expected 'rank-00000.bin', found "../rank-00000.bin")"},
      {"files_missing", "manifest: field 'files' is missing"},
      {"files_none", "manifest.files: 0 files"},
      {"files_object", "manifest.files: expected an array"},
      {"format_missing", "manifest: field 'format' is missing"},
      {"format_of_others", "manifest.format: expected"},
      {"kept_narrower", "manifest.files[0].blobs[0].kept: 2 for a chunk of 5 bytes, expected 4"},
      {"kept_number", "manifest.files[0].blobs[0].kept: expected a string"},
      {"kept_one", "manifest.files[0].blobs[0].kept: expected 0, 2, 3 or 4 for each of 1 chunks"},
      {"kept_short", "manifest.files[0].blobs[0].kept: expected 0, 2, 3 or 4 for each of 1 chunks"},
      {"list", "manifest: expected an object"},
      {"state_missing", "manifest: field 'state' is missing"},
      {"state_object", "manifest.state: expected a string"},
      {"step_float", "manifest.step: expected an integer"},
      {"step_missing", "manifest: field 'step' is missing"},
      {"step_negative", "manifest.step: expected an integer from 0"},
      {"step_too_large", "manifest.step: expected an integer"},
      {"step_twice", "field 'step' appears twice"},
      {"too_deep", "nested deeper than 8"},
      {"truncated", "expected valid JSON"},
      {"version_missing", "manifest: field 'version' is missing"},
      {"version_of_the_future", "manifest.version: 3, expected 1 to 2"},
      {"version_string", "manifest.version: expected an integer"},
      {"world_size_huge", "manifest.world_size: expected an integer from 1 to 65536"},
      {"world_size_missing", "manifest: field 'world_size' is missing"},
      {"world_size_other", "manifest.files: 1 files, expected one for each of 2 ranks"},
      {"world_size_zero", "manifest.world_size: expected an integer from 1"},
  };
  scratch_directory const directory;
  write_text(directory / "rank-00000.bin", std::string(4099, '\0'));
  check_all("checkpoint", expected, [&](fs::path const& path) {
    write_manifest(directory.path(), contents_of(path));
    checkpoint_reader::open(directory.path());
  });
}
