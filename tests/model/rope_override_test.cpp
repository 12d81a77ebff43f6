// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/model/rope_override.hpp>

#include <doctest/doctest.h>

#include "support/scratch_directory.hpp"

#include <cstdint>
#include <fstream>
#include <string>

namespace {

using namespace superoffload;
using rule = model::rope_scaling::rule;

/// A model for 64 positions, with more fields.
class small_llama {
public:
  explicit small_llama(std::string const& more = "") { write(R"("max_position_embeddings": 64)" + more); }
  void write(std::string const& more) const {
    std::ofstream{directory_.path() / "config.json"}
        << R"({"model_type": "llama", "vocab_size": 64, "hidden_size": 64, "intermediate_size": 48,)"
        << R"( "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, )" << more << "}";
  }
  [[nodiscard]] io::model_directory plain() const { return directory_.path(); }
  [[nodiscard]] io::model_directory scaled(std::string const& scaling, std::int64_t wanted = 1) const {
    return {directory_.path(), false, model::rope_fields(plain(), scaling, wanted)};
  }
  [[nodiscard]] std::string complaint(std::string const& scaling) const {
    try {
      model::read_config(scaled(scaling));
    } catch (error const& e) {
      CHECK(e.code() == exit_code::bad_input);
      return e.what();
    }
    return "no complaint";
  }

private:
  test::scratch_directory directory_;
};

TEST_CASE("a model with other rope scaling is the one whose config.json says so") {
  small_llama const m;
  for (std::string const type : {"yarn", "linear"}) {
    CAPTURE(type);
    auto const directory = m.scaled(type + ":4");
    auto const scaled = model::read_config(directory);
    CHECK(scaled.max_positions == 256);
    CHECK(scaled.scaling.factor == 4.0);
    // What an export has is read in the same way.
    small_llama const exported;
    std::ofstream{exported.plain().path() / "config.json"} << directory.config();
    auto const again = model::read_config(exported.plain());
    CHECK(again.max_positions == 256);
    CHECK(model::inverse_frequencies(again) == model::inverse_frequencies(scaled));
    CHECK(again.scaling.original_positions == (type == "yarn" ? 64 : 256));
    CHECK(model::inverse_frequencies(scaled) != model::inverse_frequencies(model::read_config(m.plain())));
  }
  CHECK(model::read_config(m.scaled("yarn:4")).scaling.kind == rule::yarn);
  CHECK(model::read_config(m.scaled("yarn:1.5")).max_positions == 96);
}

TEST_CASE("an object replaces the scaling that a model has") {
  small_llama const m{R"(, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,)"
                      R"( "high_freq_factor": 4.0, "original_max_position_embeddings": 8})"};
  auto const yarn = model::read_config(
      m.scaled(R"({"rope_type": "yarn", "factor": 10, "original_max_position_embeddings": 32})"));
  CHECK(yarn.scaling.kind == rule::yarn);
  CHECK(yarn.scaling.original_positions == 32);
  CHECK(yarn.max_positions == 320);
  auto const llama3 = model::read_config(
      m.scaled(R"({"rope_type": "llama3", "factor": 16, "low_freq_factor": 1, "high_freq_factor": 4,)"
               R"( "original_max_position_embeddings": 8})"));
  CHECK(llama3.scaling.factor == 16.0);
  CHECK(llama3.max_positions == 128);
  auto const none = model::read_config(m.scaled(R"({"rope_type": "default"})", 128));
  CHECK(none.scaling.kind == rule::none);
  CHECK(none.max_positions == 64);
  CHECK(m.complaint("yarn:4").find(
            "the model's rope scaling is 'llama3'; expected llama3:FACTOR or a JSON object") !=
        std::string::npos);
  auto const shorter = model::read_config(m.scaled("llama3:16"));
  CHECK(model::inverse_frequencies(shorter) == model::inverse_frequencies(llama3));
  CHECK(shorter.max_positions == 128);
}

TEST_CASE("a flag that its own export gets again changes nothing") {
  for (std::string const scaling : {"yarn:4", "linear:4"}) {
    CAPTURE(scaling);
    small_llama const m;
    auto const once = m.scaled(scaling).config();
    std::ofstream{m.plain().path() / "config.json"} << once;
    CHECK(model::read_config(m.scaled(scaling)).max_positions == 256);
    CHECK(model::inverse_frequencies(model::read_config(m.scaled(scaling))) ==
          model::inverse_frequencies(model::read_config(m.plain())));
    CHECK(model::read_config(m.scaled(scaling.substr(0, scaling.find(':')) + ":8")).max_positions == 512);
  }
}

TEST_CASE("another factor has an attention factor of its own") {
  small_llama const m{R"(, "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.5,)"
                      R"( "original_max_position_embeddings": 16})"};
  small_llama const plain;
  auto const eight = model::read_config(m.scaled("yarn:8"));
  CHECK(eight.max_positions == 128);
  CHECK(eight.scaling.original_positions == 16);
  CHECK(eight.scaling.attention_factor ==
        model::read_config(plain.scaled("yarn:8")).scaling.attention_factor);
  // Fewer than the model has, as transformers allow with this factor.
  CHECK(model::read_config(m.scaled("yarn:2")).max_positions == 32);
}

TEST_CASE("rope_parameters, as transformers 5 writes them, keep the model's theta") {
  small_llama const m{R"(, "rope_parameters": {"rope_type": "default", "rope_theta": 5000.0})"};
  auto const directory = m.scaled("linear:2");
  auto const scaled = model::read_config(directory);
  CHECK(scaled.rope_theta == 5000.0);
  CHECK(scaled.scaling.kind == rule::linear);
  auto const text = io::parse_json(directory.config(), "config.json");
  CHECK_FALSE(text.contains("rope_scaling"));
  CHECK(text["rope_parameters"]["rope_theta"] == 5000.0);
  CHECK(model::read_config(m.scaled(R"({"type": "linear", "factor": 2, "rope_theta": 7000})")).rope_theta ==
        7000.0);
}

TEST_CASE("what is no rope scaling is refused") {
  small_llama const m;
  for (std::string const scaling : {"yarn: 4", "yarn:0x4", "yarn:1e7", "yarn:nan", "yarn", "yarn:", "yarn:x",
                                    "yarn:.5", "yarn:inf", "yarn:4x", "dynamic:8", ":4", "", "4"}) {
    CAPTURE(scaling);
    CHECK(m.complaint(scaling).find("expected yarn:FACTOR, linear:FACTOR or llama3:FACTOR") !=
          std::string::npos);
  }
  CHECK(m.complaint("llama3:8").find("'default'; expected yarn:FACTOR, linear:FACTOR or a JSON object") !=
        std::string::npos);
  CHECK(m.complaint(R"({"rope_type": "llama3", "factor": 2, "low_freq_factor": 1, "high_freq_factor": 4})") ==
        "--rope_scaling: field 'original_max_position_embeddings' is missing, which llama3 needs");
  CHECK(m.complaint("{").starts_with("--rope_scaling: "));
  CHECK(m.complaint(R"({"factor": 2})") == "--rope_scaling: field 'rope_type' is missing");
  CHECK(m.complaint(R"({"rope_type": "yarn", "factor": "2"})").starts_with("--rope_scaling: factor: "));
  CHECK(m.complaint(R"({"rope_type": "linear", "factor": 0.5})").starts_with("--rope_scaling: factor: "));
  CHECK(m.complaint(R"({"rope_type": "none"})")
            .find("config.json with --rope_scaling: rope_scaling.rope_type") != std::string::npos);
  CHECK(m.complaint(R"({"rope_type": "llama3", "factor": 2, "original_max_position_embeddings": 8})")
            .find("low_freq_factor") != std::string::npos);
  m.write(R"("max_position_embeddings": 64, "rope_scaling": {"rope_type": "dynamic", "factor": 2})");
  CHECK(m.complaint("yarn:2") ==
        "--rope_scaling is yarn:2, but the model's rope scaling is 'dynamic'; expected a JSON "
        "object, which replaces it");
  m.write(R"("max_position_embeddings": 64, "original_max_position_embeddings": 16)");
  CHECK(m.complaint(R"({"rope_type": "yarn", "factor": 2, "original_max_position_embeddings": 32})")
            .find("is 32, but config.json has 16") != std::string::npos);
  m.write(R"("max_position_embeddings": 64, "rope_parameters": {"full_attention": {"rope_theta": 5e6}})");
  CHECK(m.complaint("yarn:2").find("'full_attention': different settings") != std::string::npos);
  test::scratch_directory const phi;
  std::ofstream{phi.path() / "config.json"} << R"({"model_type": "phi3", "max_position_embeddings": 64})";
  CHECK_THROWS_WITH_AS(static_cast<void>(model::rope_fields(phi.path(), "yarn:4", 1)),
                       "--rope_scaling: rope scaling 'yarn' is not supported for model_type 'phi3', expected "
                       "'longrope' with short_factor and long_factor",
                       error);
  m.write(R"("hidden_act": "silu")");
  CHECK(m.complaint("yarn:2").find("'max_position_embeddings' is missing") != std::string::npos);
}

}  // namespace
