// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Malformed files, each through the whole program: one line that names file and field, exit code 2, and
// nothing written.
#include "examples/rejection.hpp"
#include "support/fault_case.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <sys/stat.h>

namespace {

using namespace superoffload;
using namespace superoffload::test;
namespace fs = std::filesystem;
using words = std::vector<std::string>;

/// A copy of the reference checkpoint, to be damaged, a data set of two rows, and a directory with earlier
/// work in it.
struct workplace {
  scratch_directory root;
  fs::path model = root.path() / "model";
  fs::path data = root.path() / "data.json";
  fs::path output = root.path() / "output";
  words flags;

  explicit workplace(std::string const& from = "llama") {
    fs::copy(models / from, model);
    write_file(data, two_rows);
    fs::create_directory(output);
    write_file(output / "earlier.txt", "work");
  }

  [[nodiscard]] outcome run() const {
    return run_on_one_thread(finetune_llama, joined({"--model",      model.string(),
                                                     "--dataset",    data.string(),
                                                     "--output_dir", output.string(),
                                                     "--metrics",    (output / "metrics.jsonl").string(),
                                                     "--device",     test_device(),
                                                     "--max_length", "64",
                                                     "--max_steps",  "1",
                                                     "--batch_size", "2",
                                                     "--label_mask", "none",
                                                     "--dtype",      "float32",
                                                     "--save_steps", "1"},
                                                    flags));
  }
  void check(words const& says) const {
    fault_case const refused{"F22"};
    auto const before = snapshot_of(output);
    check_rejected(run(), exit_code::bad_input, says);
    CHECK(snapshot_of(output) == before);
  }
};

/// Merges `patch` into a JSON file: null removes a member.
void patch_json(fs::path const& file, std::string const& patch) {
  auto document = io::json::parse(contents_of(file));
  document.merge_patch(io::json::parse(patch));
  write_file(file, document.dump());
}

// Safetensors ---------------------------------------------------------------------------------------------

struct safetensors_text {
  std::string header, data;
};

safetensors_text read_safetensors(fs::path const& file) {
  auto const bytes = contents_of(file);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  return {bytes.substr(8, length), bytes.substr(8 + length)};
}

void write_safetensors(fs::path const& file, std::string const& header, std::string const& data) {
  std::uint64_t const length = header.size();
  write_file(file, std::string{reinterpret_cast<char const*>(&length), sizeof length} + header + data);
}

void patch_header(fs::path const& file, std::string const& patch) {
  auto const [header, data] = read_safetensors(file);
  auto document = io::json::parse(header);
  document.merge_patch(io::json::parse(patch));
  write_safetensors(file, document.dump(), data);
}

TEST_CASE("the workplace itself trains: what follows is rejected for its damage alone") {
  workplace const w;
  auto const done = w.run();
  CAPTURE(done.err);
  CHECK(done.status == 0);
}

TEST_CASE("a safetensors header that contradicts itself or the configuration is rejected") {
  struct header_case {
    std::string patch;
    words says;
  };
  auto const norm = std::string{"model.norm.weight"};
  header_case const cases[] = {
      {R"({"model.norm.weight": {"dtype": "F8_E4M3"}})",
       {norm, "dtype", "expected F64, F32, BF16, F16 or U8"}},
      {R"({"model.norm.weight": {"dtype": 32}})", {norm, "dtype", "expected a string"}},
      {R"({"model.norm.weight": {"dtype": null}})", {norm, "dtype", "missing"}},
      {R"({"model.norm.weight": {"dtype": "F16"}})", {norm, "data_offsets", "256 bytes, expected 128"}},
      {R"({"model.norm.weight": {"shape": [-64]}})", {norm, "shape", "expected an integer from 0"}},
      {R"({"model.norm.weight": {"shape": [64.0]}})", {norm, "shape", "expected an integer from 0"}},
      {R"({"model.norm.weight": {"shape": ["64"]}})", {norm, "shape", "expected an integer from 0"}},
      {R"({"model.norm.weight": {"shape": 64}})", {norm, "shape", "expected an array"}},
      {R"({"model.norm.weight": {"shape": null}})", {norm, "shape", "missing"}},
      {R"({"model.norm.weight": {"shape": [4611686018427387904, 4]}})", {norm, "shape", "below 2^63"}},
      {R"({"model.norm.weight": {"shape": [1, 1, 1, 1, 1, 1, 1, 1, 64]}})", {norm, "shape", "9 dimensions"}},
      {R"({"model.norm.weight": {"shape": [63]}})", {norm, "data_offsets", "expected 252"}},
      {R"({"model.norm.weight": {"shape": [8, 8]}})",
       {"model.safetensors: tensor 'model.norm.weight'", "[8, 8], expected [64]", "config.json"}},
      {R"({"model.norm.weight": {"data_offsets": [541696]}})",
       {norm, "data_offsets", "expected begin and end"}},
      {R"({"model.norm.weight": {"data_offsets": [541952, 541696]}})", {norm, "data_offsets", "behind end"}},
      {R"({"model.norm.weight": {"data_offsets": [541440, 541696]}})", {"data_offsets", "expected 541696"}},
      {R"({"model.norm.weight": {"data_offsets": [541700, 541956]}})",
       {norm, "data_offsets", "expected 541696"}},
      {R"({"model.norm.weight": {"data_offsets": [18446744073709551000, 18446744073709551256]}})",
       {norm, "data_offsets", "expected an integer"}},
      {R"({"model.norm.weight": {"strides": [1]}})", {norm, "strides", "unknown"}},
      {R"({"model.norm.weight": null})", {"data", "541696"}},
      {R"({"model.norm.weight": 1})", {norm, "expected an object"}},
      {R"({"model.layers.1.self_attn.q_proj.weight": {"shape": [32, 128]}})",
       {"model.layers.1.self_attn.q_proj.weight", "[32, 128]", "expected [64, 64]"}},
      {R"({"extra": {"dtype": "F32", "shape": [0], "data_offsets": [541952, 541952]}})",
       {"'extra'", "does not belong"}},
      {R"({"__metadata__": {"format": 1}})", {"__metadata__", "format", "expected a string"}},
  };
  for (auto const& c : cases) {
    CAPTURE(c.patch);
    workplace const w;
    patch_header(w.model / "model.safetensors", c.patch);
    w.check(joined({"model"}, c.says));
  }
}

TEST_CASE("a safetensors file whose bytes are damaged is rejected") {
  auto const whole = read_safetensors(models / "llama" / "model.safetensors");
  auto const& header = whole.header;
  auto const& data = whole.data;
  struct file_case {
    std::string name;
    std::function<void(fs::path const& file)> damage;
    words says;
  };
  auto const with_header = [&](std::string const& text) {
    return [&, text](fs::path const& file) { write_safetensors(file, text, data); };
  };
  auto const with_length = [&](std::uint64_t length) {
    return [&, length](fs::path const& file) {
      write_file(file, std::string{reinterpret_cast<char const*>(&length), sizeof length} + header + data);
    };
  };
  auto const with_element = [&](float value) {
    return [&, value](fs::path const& file) {
      auto changed = data;
      std::memcpy(changed.data() + 541952 - sizeof value, &value, sizeof value);
      write_safetensors(file, header, changed);
    };
  };
  auto const last = std::string{"model.norm.weight"};
  file_case const cases[] = {
      {"empty",
       [](fs::path const& file) { write_file(file, ""); },
       {"0 bytes", "expected a safetensors file"}},
      {"shorter than a length", [](fs::path const& file) { write_file(file, "1234567"); }, {"7 bytes"}},
      {"length of 2^64 - 1", with_length(~std::uint64_t{0}), {"header of 18446744073709551615 bytes"}},
      {"length beyond the file", with_length(5'000'000), {"header of 5000000 bytes", "cut short"}},
      {"length of zero", with_length(0), {"header", "expected to start with '{'"}},
      {"length too short", with_length(header.size() - 100), {"header", "expected valid JSON"}},
      {"vast and hollow",
       [&](fs::path const& file) {
         with_length(90'000'000)(file);
         fs::resize_file(file, 100'000'000);
       },
       {"header of 90000000 bytes, expected at most"}},
      {"header of a list", with_header("[]"), {"header", "expected to start with '{'"}},
      {"header not JSON", with_header("{weights}"), {"header", "expected valid JSON"}},
      {"header not UTF-8", with_header("{\"\xff\": 1}"), {"header", "expected valid JSON in UTF-8"}},
      {"header with a name twice", with_header(R"({"a": {}, "a": {}})"), {"'a' appears twice"}},
      {"header too deep", with_header(R"({"a": {"shape": [[[[1]]]]}})"), {"nested deeper than 4"}},
      {"control characters in a name", with_header("{\"\\u001b[31m\\n\": {}}"), {"\\x1b[31m\\x0a", "dtype"}},
      {"a name of 600 bytes", with_header("{\"" + std::string(600, 'n') + "\": {}}"), {"name of 600 bytes"}},
      {"data cut short", [](fs::path const& file) { fs::resize_file(file, 300'000); }, {"541952"}},
      {"more data than tensors", [](fs::path const& file) { fs::resize_file(file, 544'100); }, {"541952"}},
      {"a tensor is missing",
       [&](fs::path const& file) {
         auto document = io::json::parse(header);
         document.erase(last);
         write_safetensors(file, document.dump(), data.substr(0, 541696));
       },
       {"'model.norm.weight' [64] is missing", "config.json"}},
      {"weights of bytes",
       [&](fs::path const& file) {
         write_safetensors(file, header, data.substr(0, 541696 + 64));
         patch_header(file, R"({"model.norm.weight": {"dtype": "U8", "data_offsets": [541696, 541760]}})");
       },
       {last, "U8"}},
      {"a weight is not a number",
       with_element(std::nanf("")),
       {last, "element 63", "nan", "expected finite"}},
      {"a weight is infinite",
       with_element(std::numeric_limits<float>::infinity()),
       {last, "inf", "expected finite"}},
      {"a weight beyond bf16",
       with_element(std::numeric_limits<float>::max()),
       {last, "element 63", "expected finite"}},
      {"a directory",
       [](fs::path const& file) {
         fs::remove(file);
         fs::create_directory(file);
       },
       {"expected a regular file"}},
      {"a pipe without a writer",
       [](fs::path const& file) {
         fs::remove(file);
         REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
       },
       {"expected a regular file"}},
      {"a link to itself",
       [](fs::path const& file) {
         fs::remove(file);
         fs::create_symlink(file, file);
       },
       {"model"}},
      {"pickled",
       [](fs::path const& file) { fs::rename(file, file.parent_path() / "pytorch_model.bin"); },
       {"pytorch_model.bin", "pickled", "safe_serialization"}},
      {"absent", [](fs::path const& file) { fs::remove(file); }, {"expected model.safetensors or"}},
  };
  for (auto const& c : cases) {
    CAPTURE(c.name);
    workplace const w;
    c.damage(w.model / "model.safetensors");
    w.check(joined({w.model.string()}, c.says));
  }
}

// Index ---------------------------------------------------------------------------------------------------

TEST_CASE("an index that leads elsewhere, or to nothing, is rejected") {
  struct index_case {
    std::string patch;
    words says;
  };
  index_case const cases[] = {
      {R"({"weight_map": {"model.norm.weight": "../model/shard.safetensors"}})",
       {"model.norm.weight", "next to the index"}},
      {R"({"weight_map": {"model.norm.weight": "/etc/passwd"}})",
       {"model.norm.weight", "next to the index", "/etc/passwd"}},
      {R"({"weight_map": {"model.norm.weight": ".."}})", {"model.norm.weight", "next to the index"}},
      {R"({"weight_map": {"model.norm.weight": ""}})", {"model.norm.weight", "next to the index"}},
      {R"({"weight_map": {"model.norm.weight": "pytorch_model.bin"}})", {"model.norm.weight", "pickled"}},
      {R"({"weight_map": {"model.norm.weight": "absent.safetensors"}})",
       {"absent.safetensors", "No such file"}},
      {R"({"weight_map": {"model.norm.weight": "config.json"}})", {"config.json", "no safetensors file"}},
      {R"({"weight_map": {"model.norm.weight": 7}})", {"model.norm.weight", "expected a string"}},
      {R"({"weight_map": {"model.elsewhere": "shard.safetensors"}})",
       {"model.elsewhere", "no tensor of that name"}},
      {R"({"weight_map": {"model.norm.weight": null}})", {"'model.norm.weight' [64] is missing"}},
      {R"({"weight_map": 7})", {"weight_map", "expected an object"}},
      {R"({"weight_map": null})", {"weight_map", "missing"}},
      {R"([])", {"expected"}},
      {R"({"metadata": {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": 1}}}}}}}}})",
       {"nested deeper than 8"}},
  };
  for (auto const& c : cases) {
    CAPTURE(c.patch);
    workplace const w;
    auto const header = io::json::parse(read_safetensors(w.model / "model.safetensors").header);
    io::json map = io::json::object();
    for (auto const& [name, tensor] : header.items()) {
      if (name != "__metadata__") {
        map[name] = "shard.safetensors";
      }
    }
    fs::rename(w.model / "model.safetensors", w.model / "shard.safetensors");
    auto const index = w.model / "model.safetensors.index.json";
    write_file(index, io::json{{"weight_map", map}}.dump());
    patch_json(index, c.patch);
    w.check(joined({w.model.string()}, c.says));
  }
}

TEST_CASE("a model or data set does not choose files of the user by links, unless the user says so") {
  for (std::string const name :
       {"model.safetensors", "config.json", "tokenizer.json", "generation_config.json"}) {
    CAPTURE(name);
    workplace w;
    auto const file = w.model / name;
    if (!fs::exists(file)) {
      write_file(file, "{}");
    }
    fs::rename(file, w.root.path() / "elsewhere");
    fs::create_symlink(w.root.path() / "elsewhere", file);
    w.check({file.string(), "is a symbolic link to", "elsewhere", "--follow_links"});
    w.flags = {"--follow_links"};
    auto const done = w.run();
    CAPTURE(done.err);
    CHECK(done.status == 0);
  }
  workplace w;
  fs::create_directory(w.root.path() / "set");
  fs::create_symlink(w.data, w.root.path() / "set/rows.json");
  w.data = w.root.path() / "set";
  w.check({"set/rows.json", "is a symbolic link to"});
}

// Configuration -------------------------------------------------------------------------------------------

TEST_CASE("a configuration that is out of range, contradicts itself or is not supported is rejected") {
  struct config_case {
    std::string patch;
    words says;
  };
  config_case const cases[] = {
      {R"({"model_type": null})", {"model_type", "missing"}},
      {R"({"model_type": "gpt2"})", {"model_type", "'gpt2'", "expected one of llama, "}},
      {R"({"model_type": 7})", {"model_type", "expected a string"}},
      {R"({"vocab_size": 0})", {"vocab_size", "from 1 to"}},
      {R"({"vocab_size": -5})", {"vocab_size", "from 1 to"}},
      {R"({"vocab_size": "576"})", {"vocab_size", "expected an integer"}},
      {R"({"vocab_size": 576.5})", {"vocab_size", "expected an integer"}},
      {R"({"vocab_size": 9223372036854775807})", {"vocab_size", "from 1 to"}},
      {R"({"hidden_size": 66})", {"'hidden_size' is 66", "multiple of num_attention_heads 4"}},
      {R"({"num_key_value_heads": 3})", {"num_attention_heads", "multiple of num_key_value_heads 3"}},
      {R"({"num_key_value_heads": 0})", {"num_key_value_heads", "from 1 to"}},
      {R"({"head_dim": 15})", {"head_dim", "even"}},
      {R"({"head_dim": 100000})", {"head_dim", "from 1 to 1024"}},
      {R"({"num_hidden_layers": 0})", {"num_hidden_layers", "from 1 to"}},
      {R"({"num_hidden_layers": 1000000})", {"num_hidden_layers", "from 1 to"}},
      {R"({"hidden_size": 16777216, "intermediate_size": 16777216, "num_hidden_layers": 4096, "head_dim": 64})",
       {"parameters, expected less than"}},
      {R"({"rope_theta": 0})", {"rope_theta", "expected a number from 1"}},
      {R"({"rope_theta": "10000"})", {"rope_theta", "expected a number"}},
      {R"({"rope_scaling": {"rope_type": "longrope"}})", {"rope_scaling", "short_factor", "missing"}},
      {R"({"rope_scaling": {"rope_type": null, "type": "ntk"}})", {"type", "'ntk'", "not supported"}},
      {R"({"rope_scaling": {"factor": 0.5}})", {"rope_scaling", "factor", "from 1"}},
      {R"({"rope_scaling": {"factor": null}})", {"rope_scaling", "factor", "missing"}},
      {R"({"rope_scaling": {"high_freq_factor": 1.0}})", {"high_freq_factor", "larger than low_freq_factor"}},
      {R"({"rope_scaling": {"original_max_position_embeddings": 0}})",
       {"original_max_position_embeddings", "from 1 to"}},
      {R"({"rope_scaling": "llama3"})", {"rope_scaling", "expected an object"}},
      {R"({"rms_norm_eps": 0})", {"rms_norm_eps", "above 0"}},
      {R"({"rms_norm_eps": -1})", {"rms_norm_eps", "from 0 to 1"}},
      {R"({"hidden_act": "gelu"})", {"hidden_act", "'gelu'", "expected 'silu'"}},
      {R"({"is_causal": false})", {"is_causal", "expected true"}},
      {R"({"attention_bias": "yes"})", {"attention_bias", "expected true or false"}},
      {R"({"attention_dropout": 0.1})", {"attention_dropout", "expected 0"}},
      {R"({"quantization_config": {"bits": 4}})", {"quantization_config", "not supported"}},
      {R"({"tie_word_embeddings": "yes"})", {"tie_word_embeddings", "expected true or false"}},
      {R"({"max_position_embeddings": 0})", {"max_position_embeddings", "from 1 to"}},
      {"[]", {"expected an object"}},
      // What the tensors contradict:
      {R"({"vocab_size": null})", {"model.embed_tokens.weight", "[576, 64]", "expected [32000, 64]"}},
      {R"({"attention_bias": true})", {"'model.layers.0.self_attn.q_proj.bias' [64] is missing"}},
      {R"({"mlp_bias": true})", {"'model.layers.0.mlp.gate_proj.bias' [96] is missing"}},
      {R"({"vocab_size": 700})", {"model.embed_tokens.weight", "[576, 64]", "expected [700, 64]"}},
      {R"({"vocab_size": 16777216})", {"model.embed_tokens.weight", "[576, 64]", "expected [16777216, 64]"}},
      {R"({"hidden_size": 128})", {"model.embed_tokens.weight", "[576, 64]", "expected [576, 128]"}},
      {R"({"intermediate_size": 97})", {"model.layers.0.mlp", "expected [97, 64]"}},
      {R"({"num_key_value_heads": 4})", {"model.layers.0.self_attn.k_proj.weight", "expected [64, 64]"}},
      {R"({"num_hidden_layers": 3})", {"model.layers.2.", "is missing"}},
      {R"({"num_hidden_layers": 1})", {"model.layers.1.", "does not belong"}},
  };
  for (auto const& c : cases) {
    CAPTURE(c.patch);
    workplace const w;
    patch_json(w.model / "config.json", c.patch);
    w.check(joined({w.model.string(), "config.json"}, c.says));
  }
}

TEST_CASE("a configuration that is no JSON object of a reasonable size is rejected") {
  struct text_case {
    std::string text;
    words says;
  };
  text_case const cases[] = {
      {"", {"expected valid JSON"}},
      {"{\"model_type\": \"llama\"", {"expected valid JSON"}},
      {"{\"model_type\": \"llama\", \"model_type\": \"llama\"}", {"'model_type' appears twice"}},
      {"{\"model_type\": \"ll\xff\"}", {"byte", "UTF-8"}},
      {"{\"rope_theta\": NaN}", {"expected valid JSON"}},
      {"{\"rope_theta\": 1e999}", {"1e999"}},
      {std::string(100'000, '['), {"nested deeper than 32"}},
      {std::string(2'000'000, ' '), {"2000000 bytes, expected at most"}},
      {std::string{"{}\0{}", 5}, {"zero byte"}},
  };
  for (auto const& c : cases) {
    CAPTURE(c.text.substr(0, 60));
    workplace const w;
    write_file(w.model / "config.json", c.text);
    w.check(joined({"config.json"}, c.says));
  }
  workplace const w;
  fs::remove(w.model / "config.json");
  w.check({"config.json", "No such file"});
}

TEST_CASE("an untied head that the file does not have is missing") {
  workplace const w{"llama_tied"};
  patch_json(w.model / "config.json", R"({"tie_word_embeddings": false})");
  w.check({"'lm_head.weight'", "is missing"});
}

// Tokenizer -----------------------------------------------------------------------------------------------

TEST_CASE("a tokenizer that is unknown in part, or refers to what is not there, is rejected") {
  struct tokenizer_case {
    std::string file;
    std::string patch;
    words says;
  };
  auto const* const tokenizer = "tokenizer.json";
  auto const* const config = "tokenizer_config.json";
  tokenizer_case const cases[] = {
      {tokenizer, R"({"version": "2.0"})", {"version", "\"1.0\""}},
      {tokenizer, R"({"model": null})", {"model", "missing"}},
      {tokenizer, R"({"model": {"type": "WordPiece"}})", {"model", "'WordPiece'", "expected BPE"}},
      {tokenizer, R"({"model": {"unk_token": "<absent>"}})", {"unk_token", "'<absent>'", "or null"}},
      {tokenizer, R"({"model": {"dropout": 0.1}})", {"dropout", "expected null"}},
      {tokenizer, R"({"model": {"vocab": []}})", {"vocab", "expected an object"}},
      {tokenizer, R"({"model": {"vocab": {"!": -1}}})", {"vocab", "expected an integer from 0"}},
      {tokenizer, R"({"model": {"vocab": {"!": 2000000000}}})", {"vocab", "expected an integer from 0"}},
      {tokenizer, R"({"model": {"vocab": {"!": 1}}})", {"vocab", "both have id 1"}},
      {tokenizer, R"({"model": {"vocab": {"!": "0"}}})", {"vocab", "expected an integer"}},
      {tokenizer, R"({"model": {"vocab": {"!": null}}})", {"merges", "'!' is not in model.vocab"}},
      {tokenizer, R"({"model": {"merges": ["q zzz"]}})", {"merges", "'zzz' is not in model.vocab"}},
      {tokenizer, R"({"model": {"merges": ["a b c"]}})", {"merges", "expected two tokens"}},
      {tokenizer, R"({"model": {"merges": [7]}})", {"merges", "expected two tokens"}},
      {tokenizer, R"({"model": {"merges": {}}})", {"merges", "expected an array"}},
      {tokenizer,
       R"({"normalizer": {"type": "BertNormalizer"}})",
       {"normalizer", "'BertNormalizer'", "expected NFC"}},
      {tokenizer,
       R"({"pre_tokenizer": {"type": "UnicodeScripts"}})",
       {"pre_tokenizer", "'UnicodeScripts'", "expected ByteLevel"}},
      {tokenizer,
       R"({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
           {"type": "Split", "pattern": {"Regex": "(a*)*$"}, "behavior": "Isolated", "invert": false}]}})",
       {"pre_tokenizer", "Regex"}},
      {tokenizer, R"({"decoder": {"type": "WordPiece"}})", {"decoder", "'WordPiece'", "expected ByteLevel"}},
      {tokenizer,
       R"({"post_processor": {"type": "BertProcessing"}})",
       {"post_processor", "'cls' is missing"}},
      {tokenizer, R"({"post_processor": {"type": "CtcProcessing"}})", {"post_processor", "'CtcProcessing'"}},
      {tokenizer,
       R"({"added_tokens": [{"id": 0, "content": "<new>"}]})",
       {"'<new>'", "belongs to another token"}},
      {tokenizer, R"({"added_tokens": 7})", {"added_tokens", "expected an array"}},
      {config, R"({"eos_token": "<absent>"})", {"eos_token", "'<absent>'"}},
      {config, R"({"eos_token": 7})", {"eos_token", "expected a string"}},
      {config, R"({"eos_token": null})", {"eos_token", "append_eos"}},
      {config,
       R"({"added_tokens_decoder": {"549": {"content": "<else>"}}})",
       {"added_tokens_decoder", "549"}},
      {"special_tokens_map.json", "[]", {"expected an object"}},
  };
  for (auto const& c : cases) {
    CAPTURE(c.patch);
    workplace const w;
    patch_json(w.model / c.file, c.patch);
    w.check(joined({c.file}, c.says));
  }
}

TEST_CASE("a tokenizer that is absent, or no JSON, is rejected") {
  {
    workplace const w;
    fs::remove(w.model / "tokenizer.json");
    w.check({"tokenizer.json", "No such file"});
  }
  for (char const* const name : {"tokenizer.json", "tokenizer_config.json"}) {
    workplace const w;
    fs::resize_file(w.model / name, 1000);
    w.check({name, "expected valid JSON"});
  }
}

TEST_CASE("ids beyond the model's vocabulary are rejected, not looked up") {
  workplace const w;
  auto text = contents_of(w.model / "tokenizer.json");
  auto document = io::json::parse(text);
  for (auto& token : document["added_tokens"]) {
    if (token["id"] == 549) {
      token["id"] = 900;
    }
  }
  write_file(w.model / "tokenizer.json", document.dump());
  patch_json(w.model / "tokenizer_config.json", R"({"added_tokens_decoder": null})");
  w.check({w.data.string(), "id 900", "vocab_size is 576"});
}

// Data ----------------------------------------------------------------------------------------------------

TEST_CASE("data that are malformed are rejected with file and line") {
  struct data_case {
    std::string name;
    std::string text;
    words says;
  };
  auto const good = std::string{R"({"instruction": "a", "output": "b"})"};
  data_case const cases[] = {
      {"data.json", "", {"data.json", "empty"}},
      {"data.json", "[]", {"data.json", "empty"}},
      {"data.json", "[" + good + ",\n" + good, {"data.json:2", "expected ',' or ']'", "end of the file"}},
      {"data.json", "[" + good + " " + good + "]", {"data.json:1", "expected ',' or ']'"}},
      {"data.json", "[" + good + ",\n7]", {"data.json:2", "expected an object"}},
      {"data.json", "[" + good + "]\ntrailing", {"data.json:2", "expected nothing after the list"}},
      {"data.json", "[" + good + ",\n{\"instruction\": \"a\"}]", {"data.json:2", "output", "missing"}},
      {"data.jsonl",
       good + "\n{\"instruction\": \"a\", \"output\": 7}\n",
       {"data.jsonl:2", "output", "expected a string"}},
      {"data.jsonl",
       good + "\n{\"instruction\": null, \"output\": \"b\"}\n",
       {"data.jsonl:2", "instruction"}},
      {"data.jsonl",
       good + "\n{\"instruction\": \"a\", \"input\": [], \"output\": \"b\"}",
       {"data.jsonl:2", "input"}},
      {"data.jsonl",
       good + "\n{\"instruction\": \"a\", \"output\": \"b",
       {"data.jsonl:2", "expected valid JSON"}},
      {"data.jsonl", good + "\n\n\nnot JSON\n", {"data.jsonl:4", "expected valid JSON"}},
      {"data.jsonl", good + "\n\"text\"\n", {"data.jsonl:2", "expected an object"}},
      {"data.jsonl",
       good + "\n{\"instruction\": \"\xff\xfe\", \"output\": \"b\"}\n",
       {"data.jsonl:2", "UTF-8"}},
      {"data.jsonl", good + "\n{\"instruction\": \"\\ud800\", \"output\": \"b\"}\n", {"data.jsonl:2"}},
      {"data.jsonl",
       good + "\n{\"output\": \"a\", \"output\": \"b\"}\n",
       {"data.jsonl:2", "'output' appears twice"}},
      {"data.jsonl", good + "\n" + std::string(17 << 20, 'x') + "\n", {"data.jsonl:2", "16777216 bytes"}},
      {"data.jsonl", good + "\n" + std::string(1000, '[') + "\n", {"data.jsonl:2", "nested deeper"}},
      {"data.jsonl", std::string{"\x1f\x8b\x08\x00\x00\x00\x00", 7}, {"data.jsonl", "gzip cannot unpack it"}},
      {"data.jsonl", std::string(5000, '\0'), {"data.jsonl:1", "zero byte"}},
  };
  for (std::string const flag : {"--dataset", "--eval_dataset"}) {
    for (auto const& c : cases) {
      if (flag == "--eval_dataset" && c.text.size() > 1000) {
        continue;
      }
      CAPTURE(flag);
      CAPTURE(c.text.substr(0, 80));
      workplace w;
      w.flags = {flag, write_file(w.root.path() / c.name, c.text).string()};
      w.check(c.says);
    }
  }
}

TEST_CASE("data that are no file, or leave nothing to learn, are rejected") {
  {
    workplace w;
    w.flags = {"--dataset", (w.root.path() / "absent.json").string()};
    w.check({"absent.json", "cannot be opened"});
  }
  {
    workplace w;
    w.flags = {"--dataset", w.model.string()};
    w.check({(w.model / "config.json").string() + ":1", "an object that goes over several lines"});
  }
  {
    workplace w;
    auto const pipe = w.root.path() / "pipe.jsonl";
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    w.flags = {"--dataset", pipe.string()};
    w.check({"pipe.jsonl", "is no regular file", "expected a"});
  }
  {
    workplace w;
    w.flags = {"--label_mask", "prompt", "--max_length", "8"};
    w.check({"max_length", "8", "label_mask none"});
  }
}

// Checkpoints ---------------------------------------------------------------------------------------------

/// A run of two steps with a checkpoint after each, to be resumed.
struct trained : workplace {
  trained() {
    flags = {"--max_steps", "2"};
    auto const done = run();
    CAPTURE(done.err);
    REQUIRE(done.status == 0);
    flags = {"--max_steps", "3"};
  }
  [[nodiscard]] fs::path checkpoint(int step) const {
    return output / ("checkpoint-" + std::to_string(step));
  }
  void resume(std::string const& from, words const& more = {}) {
    flags = joined({"--max_steps", "3", "--resume", from}, more);
  }
};

void flip_byte(fs::path const& file, std::size_t at) {
  auto bytes = contents_of(file);
  REQUIRE(at < bytes.size());
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  write_file(file, bytes);
}

TEST_CASE("a checkpoint that is absent, damaged or of another run is not resumed") {
  trained w;
  auto const newest = w.checkpoint(2);
  auto const intact = snapshot_of(newest);
  auto const data_file = newest / "rank-00000.bin";
  auto const manifest = newest / "manifest.json";
  REQUIRE(fs::exists(data_file));
  REQUIRE(fs::exists(manifest));

  struct damage_case {
    std::string name;
    std::function<void()> damage;
    words says;
  };
  damage_case const damages[] = {
      {"a flipped bit of weights", [&] { flip_byte(data_file, 4321); }, {data_file.string(), "checksum"}},
      {"the last byte flipped",
       [&] { flip_byte(data_file, fs::file_size(data_file) - 1); },
       {data_file.string(), "checksum"}},
      {"data cut short",
       [&] { fs::resize_file(data_file, 4000); },
       {data_file.string(), "4000 bytes, expected"}},
      {"no data", [&] { fs::remove(data_file); }, {data_file.string(), "No such file"}},
      {"data of the step before",
       [&] {
         fs::copy_file(w.checkpoint(1) / "rank-00000.bin", data_file, fs::copy_options::overwrite_existing);
       },
       {data_file.string(), "checksum"}},
      {"a flipped bit of the manifest", [&] { flip_byte(manifest, 400); }, {manifest.string(), "sha256"}},
      {"manifest cut short", [&] { fs::resize_file(manifest, 300); }, {manifest.string(), "sha256"}},
      {"empty manifest", [&] { fs::resize_file(manifest, 0); }, {manifest.string(), "manifest"}},
      {"no manifest", [&] { fs::remove(manifest); }, {manifest.string(), "No such file"}},
  };
  for (auto const& c : damages) {
    CAPTURE(c.name);
    c.damage();
    w.resume(newest.string());
    w.check(c.says);
    fs::remove_all(newest);
    fs::create_directory(newest);
    for (auto const& [name, text] : intact) { write_file(newest / name, text); }
  }

  auto const other_data =
      write_file(w.root.path() / "other.json", R"([{"instruction": "c", "output": "d"}])");
  auto const tied = (models / "llama_tied").string();
  struct other_case {
    words flags, says;
  };
  other_case const others[] = {
      {{"--dtype", "bf16"}, {"dtype 'float32'", "'bf16'"}},
      {{"--dataset", other_data.string()}, {"dataset '"}},
      {{"--seed", "9"}, {"seed '0'", "'9'"}},
      {{"--max_length", "32"}, {"max_length '64'", "'32'"}},
      {{"--packing", "on"}, {"packing 'off'"}},
      {{"--shuffle", "off"}, {"shuffle 'on'"}},
      {{"--template", "deepspeed"}, {"template"}},
      {{"--freeze", "model.norm.weight"}, {"freeze"}},
      {{"--model", tied}, {"model '"}},
  };
  for (auto const& c : others) {
    CAPTURE(c.flags.back());
    w.resume(newest.string(), c.flags);
    w.check(joined({newest.string(), "start without --resume"}, c.says));
  }

  w.resume((w.output / "checkpoint-7").string());
  w.check({"checkpoint-7", "No such file"});
  w.resume(w.model.string());
  w.check({"manifest.json", "No such file"});
  w.resume("");
  w.check({"--resume"});
}

TEST_CASE(
    "a damaged newest checkpoint: the one before is taken, and the program says so; none valid is an error") {
  trained w;
  flip_byte(w.checkpoint(2) / "rank-00000.bin", 4321);
  w.resume("auto");
  auto const done = w.run();
  CAPTURE(done.err);
  CHECK(done.status == 0);
  CHECK(done.err.find("checkpoint-2/rank-00000.bin") != std::string::npos);
  CHECK(done.err.find("resumed at step 1 from " + w.checkpoint(1).string()) != std::string::npos);

  for (int const step : {1, 2, 3}) { flip_byte(w.checkpoint(step) / "manifest.json", 200); }
  w.resume("auto");
  w.check({w.output.string(), "no checkpoint is valid", "checkpoint-3", "without --resume"});
}

}  // namespace
