// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/model/config.hpp>

#include <doctest/doctest.h>

#include "support/scratch_directory.hpp"

#include <filesystem>
#include <fstream>
#include <string>

namespace {

using namespace superoffload;

std::filesystem::path const models = std::filesystem::path{SUPEROFFLOAD_TEST_DATA} / "models";

using test::scratch_directory;

std::string complaint(std::string const& text) {
  scratch_directory const directory;
  std::ofstream{directory.path() / "config.json"} << text;
  try {
    model::read_config(directory.path());
  } catch (error const& e) {
    CHECK(e.code() == exit_code::bad_input);
    CHECK(std::string{e.what()}.find('\n') == std::string::npos);
    CHECK(std::string{e.what()}.find("config.json") != std::string::npos);
    return e.what();
  }
  return "no complaint";
}

/// A correct configuration with one member replaced.
std::string with(std::string const& name, std::string const& value) {
  std::string const members[][2] = {{"model_type", "\"llama\""},  {"vocab_size", "64"},
                                    {"hidden_size", "32"},        {"intermediate_size", "48"},
                                    {"num_hidden_layers", "2"},   {"num_attention_heads", "4"},
                                    {"num_key_value_heads", "2"}, {"rms_norm_eps", "1e-5"}};
  std::string text = "{";
  bool replaced = false;
  for (auto const& [key, usual] : members) {
    bool const here = key == name;
    replaced = replaced || here;
    if (here && value.empty()) {
      continue;
    }
    text += (text.size() > 1 ? ", \"" : "\"") + key + "\": " + (here ? value : usual);
  }
  if (!replaced) {
    text += ", \"" + name + "\": " + value;
  }
  return text + "}";
}

TEST_CASE("the configurations of real checkpoints are read") {
  auto const c = model::read_config(models / "llama");
  CHECK(c.vocabulary == 576);
  CHECK(c.head_dim == 16);
  CHECK(c.kv_heads == 2);
  CHECK(c.scaling.kind == model::rope_scaling::rule::llama3);
  CHECK(c.scaling.original_positions == 256);
  CHECK_FALSE(c.tied_head);
  CHECK(model::read_config(models / "llama_tied").tied_head);
}

TEST_CASE("frequencies are stretched as Llama 3.1 does") {
  model::config c;
  c.head_dim = 128;
  c.rope_theta = 5e5;
  c.scaling = {model::rope_scaling::rule::llama3, 8.0, 1.0, 4.0, 8192};
  auto const f = model::inverse_frequencies(c);
  CHECK(f[0] == doctest::Approx(1.0));
  CHECK(f[28] == doctest::Approx(0.00321144599).epsilon(1e-8));
  CHECK(f[29] == doctest::Approx(0.00216657076).epsilon(1e-8));
  CHECK(f[30] == doctest::Approx(0.00137189357).epsilon(1e-8));
  CHECK(f[34] == doctest::Approx(0.000178507813).epsilon(1e-8));
  CHECK(f[35] == doctest::Approx(9.55621235e-05).epsilon(1e-8));
  CHECK(f[63] == doctest::Approx(3.06892599e-07).epsilon(1e-8));
}

TEST_CASE("rope settings are read in both layouts") {
  scratch_directory const directory;
  std::ofstream{directory.path() / "config.json"} << with(
      "rope_parameters", R"({"rope_theta": 5e5, "rope_type": "llama3", "factor": 8, "low_freq_factor": 1,
                                     "high_freq_factor": 4, "original_max_position_embeddings": 1024})");
  auto const c = model::read_config(directory.path());
  CHECK(c.rope_theta == 5e5);
  CHECK(c.scaling.factor == 8.0);
}

TEST_CASE("a wrong configuration is refused in one line that names the field") {
  struct {
    std::string text, expected;
  } const cases[] = {
      {"", "valid JSON"},
      {"[]", "expected an object"},
      {with("model_type", ""), "model_type"},
      {with("model_type", "\"gpt2\""), "'gpt2' is not supported"},
      {with("model_type", "7"), "model_type: expected a string"},
      {with("vocab_size", ""), "'vocab_size' is missing"},
      {with("vocab_size", "-1"), "vocab_size"},
      {with("vocab_size", "1e3"), "vocab_size: expected an integer"},
      {with("vocab_size", "999999999999999999999"), "vocab_size"},
      {with("hidden_size", "0"), "hidden_size"},
      {with("hidden_size", "\"32\""), "hidden_size: expected an integer"},
      {with("hidden_size", "30"), "must be a multiple of num_attention_heads"},
      {with("num_attention_heads", "3"), "num_attention_heads"},
      {with("num_key_value_heads", "3"), "must be a multiple of num_key_value_heads"},
      {with("num_hidden_layers", "100000"), "num_hidden_layers"},
      {with("intermediate_size", "null"), "intermediate_size"},
      {with("head_dim", "7"), "head_dim"},
      {with("rms_norm_eps", "0"), "rms_norm_eps"},
      {with("rms_norm_eps", "\"small\""), "rms_norm_eps: expected a number"},
      {with("hidden_act", "\"gelu\""), "'gelu' is not supported"},
      {with("attention_bias", "true"), "attention_bias"},
      {with("mlp_bias", "true"), "mlp_bias"},
      {with("attention_dropout", "0.1"), "attention_dropout"},
      {with("tie_word_embeddings", "1"), "tie_word_embeddings"},
      {with("rope_theta", "-5"), "rope_theta"},
      {with("rope_scaling", "{\"rope_type\": \"yarn\"}"), "'yarn' is not supported"},
      {with("rope_scaling", "{\"rope_type\": \"llama3\", \"factor\": 8}"), "low_freq_factor"},
      {with("rope_scaling", "[]"), "rope_scaling: expected an object"},
      {with("quantization_config", "{}"), "quantization_config"},
      {"{\"model_type\": \"llama\", \"model_type\": \"llama\"}", "appears twice"},
      {std::string(100, '[') + std::string(100, ']'), "nested deeper"},
      {"{\"vocab_size\": 1\xff}", "valid JSON"},
      {"{\"model_type\": \"llama\", \"vocab_size\": 16777216, \"hidden_size\": 16777216, "
       "\"intermediate_size\": "
       "16777216, \"num_hidden_layers\": 4096, \"num_attention_heads\": 1, \"head_dim\": 128}",
       "parameters"},
  };
  for (auto const& [text, expected] : cases) {
    CAPTURE(text);
    CHECK(complaint(text).find(expected) != std::string::npos);
  }
}

TEST_CASE("no file and a file too large are refused") {
  scratch_directory const directory;
  CHECK_THROWS_AS(model::read_config(directory.path()), error);
  std::ofstream{directory.path() / "config.json"} << std::string(2 << 20, ' ');
  CHECK_THROWS_WITH_AS(model::read_config(directory.path()), doctest::Contains("expected at most"), error);
}

}  // namespace
