// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/model/config.hpp>

#include <doctest/doctest.h>

#include "support/fault_case.hpp"
#include "support/scratch_directory.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

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

using members = std::vector<std::pair<std::string, std::string>>;

members const llama{{"model_type", "\"llama\""},  {"vocab_size", "64"},       {"hidden_size", "32"},
                    {"intermediate_size", "48"},  {"num_hidden_layers", "2"}, {"num_attention_heads", "4"},
                    {"num_key_value_heads", "2"}, {"rms_norm_eps", "1e-5"}};

/// A valid configuration of another family, with the fields that only it has.
members of_family(std::string const& type, members const& own) {
  auto all = llama;
  all[0].second = "\"" + type + "\"";
  all.insert(all.end(), own.begin(), own.end());
  return all;
}
members const mistral = of_family("mistral", {{"sliding_window", "16"}});
members const phi3 = of_family("phi3", {{"pad_token_id", "63"}});
members const qwen3 = of_family("qwen3", {{"use_sliding_window", "false"}, {"sliding_window", "null"}});
members const qwen2 = of_family("qwen2", {{"use_sliding_window", "true"}, {"sliding_window", "5"}});
members const qwen3_moe = of_family("qwen3_moe", {{"num_experts", "8"},
                                                  {"num_experts_per_tok", "2"},
                                                  {"moe_intermediate_size", "24"},
                                                  {"norm_topk_prob", "true"}});
members const seed_oss = of_family("seed_oss", {{"attention_bias", "true"}});
members const gpt_oss =
    of_family("gpt_oss", {{"num_local_experts", "8"},
                          {"num_experts_per_tok", "2"},
                          {"sliding_window", "16"},
                          {"layer_types", "[\"sliding_attention\", \"full_attention\"]"}});

/// The members with one replaced or added; an empty value omits it.
std::string with(std::string const& name, std::string const& value, members const& usual = llama) {
  std::string text = "{";
  bool replaced = false;
  for (auto const& [key, otherwise] : usual) {
    bool const here = key == name;
    replaced = replaced || here;
    if (here && value.empty()) {
      continue;
    }
    text += (text.size() > 1 ? ", \"" : "\"") + key + "\": " + (here ? value : otherwise);
  }
  if (!replaced) {
    text += ", \"" + name + "\": " + value;
  }
  return text + "}";
}

model::config read(std::string const& text) {
  scratch_directory const directory;
  std::ofstream{directory.path() / "config.json"} << text;
  return model::read_config(directory.path());
}

TEST_CASE("the configurations of real checkpoints are read") {
  auto const c = model::read_config(models / "llama");
  CHECK(c.vocabulary == 576);
  CHECK(c.head_dim == 16);
  CHECK(c.kv_heads == 2);
  CHECK(c.scaling.kind == model::rope_scaling::rule::llama3);
  CHECK(c.scaling.original_positions == 256);
  CHECK_FALSE(c.tied_head);
  CHECK(c.padding_token == -1);
  CHECK(c.windows.empty());
  CHECK(model::read_config(models / "llama_tied").tied_head);
  CHECK(model::read_config(models / "mistral").head_dim == 16);
  CHECK(model::read_config(models / "phi3").padding_token == 547);
  CHECK(model::read_config(models / "qwen3").rms_norm_epsilon == 1e-6);
  auto const seed = model::read_config(models / "seed_oss");
  CHECK(seed.qkv_bias);
  CHECK_FALSE(seed.output_bias);
  CHECK(seed.padding_token == 1);
  CHECK(seed.residual_dropout == 0.0);
}

TEST_CASE("missing fields have the defaults of transformers") {
  CHECK(read(with("rms_norm_eps", "")).rms_norm_epsilon == 1e-6);
  CHECK(read(with("rms_norm_eps", "", phi3)).rms_norm_epsilon == 1e-5);
  CHECK(read(with("sliding_window", "", mistral)).windows == std::vector<std::int32_t>{4096, 4096});
  auto eight = mistral;
  eight[5].second = "16";
  CHECK(read(with("num_key_value_heads", "", eight)).kv_heads == 8);
  CHECK(read(with("num_key_value_heads", "null", eight)).kv_heads == 16);
  CHECK(read(with("num_key_value_heads", "")).kv_heads == 4);
  CHECK(read(with("head_dim", "null", seed_oss)).head_dim == 8);
  CHECK(read(with("vocab_size", "64", qwen3)).head_dim == 128);
  CHECK(read(with("vocab_size", "64", gpt_oss)).head_dim == 64);
  auto const seed = read(with("vocab_size", "64", seed_oss));
  CHECK(seed.padding_token == 1);
  CHECK(seed.attention_dropout == 0.1);
  CHECK(seed.residual_dropout == 0.1);
  CHECK(read(with("pad_token_id", "null", seed_oss)).padding_token == -1);
  CHECK(read(with("pad_token_id", "7")).padding_token == 7);
  CHECK(read(with("pad_token_id", "-1")).padding_token == 63);
}

TEST_CASE("sizes that are missing have the defaults of transformers") {
  struct {
    char const* type;
    std::int64_t vocabulary, hidden, intermediate, layers, heads, kv_heads, head_dim, max_positions;
    double rope_theta;
  } const families[] = {
      {"llama", 32000, 4096, 11008, 32, 32, 32, 128, 2048, 1e4},
      {"mistral", 32000, 4096, 14336, 32, 32, 8, 128, 131072, 1e4},
      {"phi3", 32064, 3072, 8192, 32, 32, 32, 96, 4096, 1e4},
      {"qwen2", 151936, 4096, 22016, 32, 32, 32, 128, 32768, 1e4},
      {"qwen3", 151936, 4096, 22016, 32, 32, 32, 128, 32768, 1e4},
      {"qwen3_moe", 151936, 2048, 768, 24, 32, 4, 64, 32768, 1e4},
      {"seed_oss", 155136, 4096, 27648, 64, 80, 8, 128, 524288, 1e4},
      {"gpt_oss", 201088, 2880, 2880, 36, 64, 8, 64, 131072, 1.5e5},
  };
  for (auto const& f : families) {
    CAPTURE(f.type);
    auto const c = read(concat("{\"model_type\": \"", f.type, "\"}"));
    CHECK(c.vocabulary == f.vocabulary);
    CHECK(c.hidden == f.hidden);
    CHECK(c.intermediate == f.intermediate);
    CHECK(c.layers == f.layers);
    CHECK(c.heads == f.heads);
    CHECK(c.kv_heads == f.kv_heads);
    CHECK(c.head_dim == f.head_dim);
    CHECK(c.max_positions == f.max_positions);
    CHECK(c.rope_theta == f.rope_theta);
  }
  CHECK(read(R"({"model_type": "phi3"})").padding_token == 32000);
  auto const qwen = read(R"({"model_type": "qwen3_moe"})"), gpt = read(R"({"model_type": "gpt_oss"})");
  CHECK(qwen.experts == 128);
  CHECK(qwen.experts_per_token == 8);
  CHECK_FALSE(qwen.normalizes_experts);
  CHECK(gpt.experts == 128);
  CHECK(gpt.experts_per_token == 4);
  CHECK(gpt.swiglu_limit == 7.0);
  CHECK(gpt.window_of(0) == 128);
  CHECK(gpt.window_of(1) == 0);
  CHECK(gpt.scaling.kind == model::rope_scaling::rule::yarn);
  CHECK(gpt.scaling.factor == 32.0);
  CHECK(gpt.scaling.original_positions == 4096);
  CHECK_FALSE(gpt.scaling.whole_turns);
  CHECK(gpt.scaling.attention_factor == doctest::Approx(1.3465735902799727));
}

TEST_CASE("experts are read") {
  auto const qwen = read(with("vocab_size", "64", qwen3_moe));
  CHECK(qwen.experts == 8);
  CHECK(qwen.experts_per_token == 2);
  CHECK(qwen.intermediate == 24);
  CHECK(qwen.normalizes_experts);
  auto renamed = qwen3_moe;  // as transformers 5 writes it
  renamed[8].first = "num_local_experts";
  CHECK(read(with("vocab_size", "64", renamed)).experts == 8);
  CHECK(read(with("num_local_experts", "8", qwen3_moe)).experts == 8);
  auto const gpt = read(with("quantization_config", R"({"quant_method": "mxfp4"})", gpt_oss));
  CHECK(gpt.experts == 8);
  CHECK(gpt.intermediate == 48);
  CHECK(gpt.qkv_bias);
  CHECK(gpt.output_bias);
  CHECK(gpt.swiglu_limit == 7.0);
  CHECK(gpt.mxfp4_experts);
}

TEST_CASE("the weight of the load-balancing loss is read where the loss is wanted") {
  for (auto const* const family : {&qwen3_moe, &gpt_oss}) {
    CHECK(read(with("router_aux_loss_coef", "0.5", *family)).load_balancing_weight == 0.0);
    CHECK(read(with("output_router_logits", "false", *family)).load_balancing_weight == 0.0);
    CHECK(read(with("output_router_logits", "true", *family)).load_balancing_weight == 0.001);
    auto wanted = *family;
    wanted.insert(wanted.end(), {{"output_router_logits", "true"}});
    CHECK(read(with("router_aux_loss_coef", "0.5", wanted)).load_balancing_weight == 0.5);
    CHECK(read(with("router_aux_loss_coef", "0", wanted)).load_balancing_weight == 0.0);
  }
}

TEST_CASE("layers without experts are read") {
  auto const all = read(with("decoder_sparse_step", "1", qwen3_moe));
  CHECK(all.dense_layers.empty());
  CHECK(all.dense_intermediate == 0);
  CHECK(all.has_experts(0));
  CHECK(read(with("mlp_only_layers", "null", qwen3_moe)).dense_layers.empty());
  CHECK(read(with("mlp_only_layers", "[2, -1]", qwen3_moe))
            .dense_layers.empty());  // no layer has these indices
  auto const second = read(with("decoder_sparse_step", "2", qwen3_moe));
  CHECK(second.dense_layers == std::vector<bool>{true, false});
  CHECK(second.dense_intermediate == 48);
  CHECK(second.intermediate == 24);
  CHECK_FALSE(second.has_experts(0));
  CHECK(second.has_experts(1));
  CHECK(read(with("mlp_only_layers", "[1]", qwen3_moe)).dense_layers == std::vector<bool>{false, true});
  auto both = qwen3_moe;
  both.insert(both.end(), {{"mlp_only_layers", "[1]"}, {"decoder_sparse_step", "2"}});
  CHECK(read(with("vocab_size", "64", both)).dense_layers == std::vector<bool>{true, true});
  CHECK_FALSE(read(with("vocab_size", "64")).has_experts(0));
}

TEST_CASE("windows are read by layer") {
  CHECK(read(with("vocab_size", "64", gpt_oss)).windows == std::vector<std::int32_t>{16, 0});
  CHECK(read(with("layer_types", "", gpt_oss)).windows == std::vector<std::int32_t>{16, 0});
  CHECK(read(with("vocab_size", "64", mistral)).windows == std::vector<std::int32_t>{16, 16});
  CHECK(read(with("sliding_window", "null", mistral)).windows.empty());
  CHECK(read(with("sliding_window", "5", phi3)).windows == std::vector<std::int32_t>{5, 5});
  auto sliding = qwen3;
  sliding.insert(sliding.end(), {{"max_window_layers", "1"}});
  CHECK(read(with("sliding_window", "5", sliding)).windows.empty());
  sliding[8].second = "true";
  CHECK(read(with("sliding_window", "5", sliding)).windows == std::vector<std::int32_t>{0, 5});
  CHECK(read(with("sliding_window", "null", sliding)).windows.empty());
  CHECK(read(with("sliding_window", "", sliding)).windows == std::vector<std::int32_t>{0, 4096});
  CHECK(read(with("max_window_layers", "1", qwen2)).windows == std::vector<std::int32_t>{0, 5});
  CHECK(read(with("vocab_size", "64", qwen2)).windows.empty());  // from layer 28 on
  auto all = qwen3_moe;
  all.insert(all.end(), {{"use_sliding_window", "true"}, {"max_window_layers", "1"}});
  CHECK(read(with("sliding_window", "5", all)).windows == std::vector<std::int32_t>{5, 5});
  CHECK(read(with("vocab_size", "64", all)).windows == std::vector<std::int32_t>{4096, 4096});
  CHECK(read(with("sliding_window", "", gpt_oss)).windows == std::vector<std::int32_t>{128, 0});
}

TEST_CASE("a user's own family is read without a change of the library") {
  constexpr auto reads = [](io::json_field const& document, model::config& c) {
    c.swiglu_limit = document["limit"].number(0.0, 10.0);
  };
  model::family own{
      .model_type = "own", .name = "OwnForCausalLM", .head_dim = 64, .padding_token = 3, .read = reads};
  scratch_directory const directory;
  auto const read_own = [&](std::string const& text) {
    std::ofstream{directory.path() / "config.json"} << text;
    return model::read_config(directory.path(), &own);
  };
  auto const fields = of_family("own", {{"limit", "2.5"}});
  auto const c = read_own(with("rms_norm_eps", "", fields));
  CHECK(c.model_type == "own");
  CHECK(c.head_dim == 64);
  CHECK(c.padding_token == 3);
  CHECK(c.rms_norm_epsilon == 1e-6);
  CHECK(c.swiglu_limit == 2.5);
  CHECK(read_own(with("vocab_size", "64")).head_dim == 8);  // Llama, as without
  auto const refuses = [&](std::string const& text, char const* says) {
    CHECK_THROWS_WITH_AS(read_own(text), doctest::Contains(says), error);
  };
  refuses(with("limit", "11", fields), "limit");
  refuses(with("limit", "", fields), "'limit' is missing");
  refuses(with("architectures", "[\"LlamaForCausalLM\"]", fields), "'OwnForCausalLM'");
  refuses(with("quantization_config", "{}", fields), "quantization_config");
  refuses(with("model_type", "\"gpt2\"", fields), "expected one of own, llama");
  CHECK(complaint(with("limit", "1", fields)).find("'own' is not supported") != std::string::npos);

  own.model_type = "llama";  // takes precedence over the library's
  own.name = "LlamaForCausalLM";
  own.read = nullptr;
  CHECK(read_own(with("attention_bias", "true")).head_dim == 64);
}

TEST_CASE("frequencies are scaled like Llama 3.1's") {
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

TEST_CASE("dynamic scaling changes no frequency") {
  auto const c = read(with("rope_scaling", R"({"type": "dynamic", "factor": 4})"));
  CHECK(c.scaling.kind == model::rope_scaling::rule::dynamic);
  CHECK(model::inverse_frequencies(c) == model::inverse_frequencies(read(with("vocab_size", "64"))));
}

TEST_CASE("frequencies are scaled by yarn") {
  model::config c;
  c.head_dim = 64;
  c.rope_theta = 150000;
  c.scaling = {.kind = model::rope_scaling::rule::yarn,
               .factor = 32,
               .original_positions = 4096,
               .whole_turns = false};
  auto const f = model::inverse_frequencies(c);
  double const expected[][2] = {{0, 1},
                                {1, 0.689044306},
                                {8, 0.0508132748},
                                {9, 0.0317056962},
                                {10, 0.0193350011},
                                {12, 0.00679495949},
                                {15, 0.0010526021},
                                {17, 0.000129318701},
                                {18, 3.83088124e-05},
                                {31, 3.02351143e-07}};
  for (auto const& [j, value] : expected) {
    CHECK(f[static_cast<std::size_t>(j)] == doctest::Approx(value).epsilon(1e-8));
  }
  auto const text = R"({"rope_type": "yarn", "factor": 32, "truncate": false, "beta_fast": 16,
                        "original_max_position_embeddings": 1024})";
  auto const scaling = read(with("rope_scaling", text)).scaling;
  CHECK(scaling.attention_factor == doctest::Approx(1.3465735902799727));
  CHECK(scaling.fast_turns == 16.0);
  CHECK(scaling.slow_turns == 1.0);
  CHECK_FALSE(scaling.whole_turns);
}

TEST_CASE("longrope is read for every family, with original positions from either place") {
  std::string const factors = R"("short_factor": [1, 1, 2, 2], "long_factor": [1, 2, 3, 4])";
  auto const inside = R"({"rope_type": "longrope", "original_max_position_embeddings": 64, )" + factors + "}";
  auto const c = read(with("rope_scaling", inside));
  CHECK(c.scaling.kind == model::rope_scaling::rule::longrope);
  CHECK(c.scaling.original_positions == 64);
  CHECK(c.scaling.long_factors == std::vector<double>{1, 2, 3, 4});
  CHECK(c.scaling.factor == 32.0);  // of max_position_embeddings 2048
  CHECK(c.scaling.attention_factor == doctest::Approx(std::sqrt(1.0 + 5.0 / 6.0)));
  CHECK(read(with("original_max_position_embeddings", "256",
                  of_family("qwen3_moe", {{"rope_scaling", inside}, {"head_dim", "8"}})))
            .scaling.original_positions == 256);
  CHECK(read(with("rope_scaling", R"({"rope_type": "longrope", )" + factors + "}"))
            .scaling.original_positions == 2048);
}

TEST_CASE("longrope of a part of each head is read") {
  auto const list = [](char const* factor) {
    std::string all = "[";
    for (int i = 0; i < 48; ++i) { all += concat(i > 0 ? ", " : "", factor); }
    return all + "]";
  };
  auto const longrope = [&](std::string const& more) {  // as in Phi-4-mini
    return concat(
        R"({"model_type": "phi3", "hidden_size": 3072, "num_attention_heads": 24, "num_key_value_heads": 8,)",
        R"( "max_position_embeddings": 131072, "partial_rotary_factor": 0.75, "sliding_window": 262144,)",
        R"( "tie_word_embeddings": true, "rope_scaling": {"type": "longrope", "short_factor": )", list("1.5"),
        R"(, "long_factor": )", list("4"), more, "}}");
  };
  auto const c = read(longrope(""));
  CHECK(c.head_dim == 128);
  CHECK(c.rotary_dim == 96);
  CHECK(c.scaling.kind == model::rope_scaling::rule::longrope);
  CHECK(c.scaling.attention_factor == doctest::Approx(1.1902380714238083));
  CHECK(c.max_positions == 131072);
  CHECK(c.scaling.original_positions == 4096);
  auto const f = model::inverse_frequencies(c);
  REQUIRE(f.size() == 48);
  CHECK(f[0] == doctest::Approx(1 / 1.5));
  CHECK(f[24] == doctest::Approx(0.01 / 1.5));
  CHECK(model::inverse_frequencies(c, 4096)[24] == doctest::Approx(0.01 / 1.5));
  CHECK(model::inverse_frequencies(c, 4097)[24] == doctest::Approx(0.01 / 4));
  CHECK(read(longrope(R"(, "factor": 1)")).scaling.attention_factor == 1.0);
  CHECK(read(longrope(R"(, "attention_factor": 1.3)")).scaling.attention_factor == 1.3);
  CHECK_THROWS_WITH_AS(read(longrope(R"(, "partial_rotary_factor": 0.5)")),  // the one inside counts
                       doctest::Contains("48 factors, expected 32"), error);
}

TEST_CASE("rope settings are read in both layouts") {
  auto const c = read(
      with("rope_parameters", R"({"rope_theta": 5e5, "rope_type": "llama3", "factor": 8, "low_freq_factor": 1,
                                     "high_freq_factor": 4, "original_max_position_embeddings": 1024})"));
  CHECK(c.rope_theta == 5e5);
  CHECK(c.scaling.factor == 8.0);
}

TEST_CASE("biases are read") {
  auto const qwen = read(with("attention_bias", "false", qwen2));  // which transformers ignores
  CHECK(qwen.qkv_bias);
  CHECK_FALSE((qwen.output_bias || qwen.mlp_bias));
  auto const none = read(with("vocab_size", "64"));
  CHECK_FALSE((none.qkv_bias || none.output_bias || none.mlp_bias));
  for (auto const& family : {llama, qwen3, qwen3_moe}) {
    auto const c = read(with("attention_bias", "true", family));
    CHECK(c.qkv_bias);
    CHECK(c.output_bias);
    CHECK_FALSE(c.mlp_bias);
  }
  CHECK(read(with("mlp_bias", "true")).mlp_bias);
  CHECK(read(with("mlp_bias", "true", seed_oss)).mlp_bias);
  auto const gpt = read(with("attention_bias", "false", gpt_oss));
  CHECK_FALSE((gpt.qkv_bias || gpt.output_bias));
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
      {with("vocab_size", "null"), "vocab_size: expected an integer"},
      {with("vocab_size", "-1"), "vocab_size"},
      {with("vocab_size", "1e3"), "vocab_size: expected an integer"},
      {with("vocab_size", "999999999999999999999"), "vocab_size"},
      {with("hidden_size", "0"), "hidden_size"},
      {with("hidden_size", "\"32\""), "hidden_size: expected an integer"},
      {with("hidden_size", "30"), "'hidden_size' is 30, expected a multiple of num_attention_heads 4"},
      {with("num_attention_heads", "3"), "num_attention_heads"},
      {with("num_key_value_heads", "3"),
       "'num_attention_heads' is 4, expected a multiple of num_key_value_heads 3"},
      {with("num_hidden_layers", "100000"), "num_hidden_layers"},
      {with("intermediate_size", "null"), "intermediate_size"},
      {with("head_dim", "7"), "head_dim"},
      {with("rms_norm_eps", "0"), "rms_norm_eps"},
      {with("rms_norm_eps", "\"small\""), "rms_norm_eps: expected a number"},
      {with("hidden_act", "\"gelu\""), "'gelu' is not supported"},
      {with("attention_bias", "1"), "attention_bias: expected true or false"},
      {with("is_causal", "false"), "'is_causal' is false"},
      {with("per_layer_config", "{\"0\": {\"hidden_act\": \"gelu\"}}"), "per_layer_config"},
      {with("layer_types", "[\"full_attention\", \"sliding_attention\"]"),
       "layer_types[1]: transformers ignores"},
      {with("attention_dropout", "0.1"), "attention_dropout"},
      {with("tie_word_embeddings", "1"), "tie_word_embeddings"},
      {with("rope_theta", "-5"), "rope_theta"},
      {with("rope_scaling", "{\"rope_type\": \"longrope\"}"), "'short_factor' is missing"},
      {with("original_max_position_embeddings", "1",
            of_family("llama", {{"rope_scaling",
                                 "{\"type\": \"longrope\", \"short_factor\": [1, 2, 2, 1], "
                                 "\"long_factor\": [1, 2, 2, 1]}"}})),
       "original_max_position_embeddings above 1, found 1"},
      {with("rope_scaling", "{\"rope_type\": \"yarn\"}"), "'factor' is missing"},
      {with("rope_scaling", "{\"rope_type\": \"yarn\", \"factor\": 4, \"mscale\": -1}"), "mscale"},
      {with("rope_scaling", "{\"rope_type\": \"linear\"}"), "'factor' is missing"},
      {with("rope_scaling", "{\"rope_type\": \"linear\", \"factor\": null}"), "factor: expected a number"},
      {with("rope_scaling", "{\"rope_type\": \"dynamic\"}"), "'factor' is missing"},
      {with("rope_scaling", "{\"rope_type\": \"dynamic\", \"factor\": 0.5}"),
       "factor: expected a number from 1"},
      {with("head_dim", "2",
            of_family("llama", {{"rope_scaling", "{\"type\": \"dynamic\", \"factor\": 2}"}})),
       "rope_scaling.type: dynamic divides by"},
      {with("rope_scaling", "{\"rope_type\": \"ntk\", \"factor\": 2}"), "'ntk' is not supported"},
      {with("rope_scaling",
            "{\"rope_type\": \"yarn\", \"factor\": null, \"original_max_position_embeddings\": 4096}"),
       "which is 0.5, expected at least 1"},
      {with("rope_scaling", "{\"rope_type\": \"yarn\", \"factor\": 2, \"rope_theta\": 1}"),
       "rope_theta above 1"},
      {with("rope_parameters", "{\"full_attention\": {\"rope_theta\": 5}}"),
       "field 'full_attention': different"},
      {with("original_max_position_embeddings", "0",
            of_family("llama", {{"rope_scaling", "{\"rope_type\": \"yarn\", \"factor\": 2}"}})),
       "original_max_position_embeddings: expected an integer from 1"},
      {with("rope_scaling", "{\"rope_type\": \"yarn\", \"factor\": 4, \"beta_slow\": 40}"), "beta_slow 40"},
      {with("partial_rotary_factor", "0.5"), "partial_rotary_factor"},
      {with("rope_scaling", "{\"rope_type\": \"llama3\", \"factor\": 8}"), "low_freq_factor"},
      {with("rope_scaling", "[]"), "rope_scaling: expected an object"},
      {with("quantization_config", "{}"), "quantization_config"},
      {with("architectures", "[\"LlamaForSequenceClassification\"]"), "'LlamaForCausalLM'"},
      {with("num_local_experts", "8"), "'num_local_experts' does not belong to model_type 'llama'"},
      {with("pad_token_id", "64"), "pad_token_id"},
      {with("pad_token_id", "\"x\""), "pad_token_id: expected an integer"},
      {with("sliding_window", "0", mistral), "sliding_window"},
      {with("sliding_window", "\"16\"", mistral), "sliding_window: expected an integer"},
      {with("layer_types", "[]", mistral), "0 layers, expected num_hidden_layers 2"},
      {with("layer_types", "[\"sliding_attention\", \"full_attention\"]", mistral),
       "layer_types[1]: transformers ignores layer_types for model_type 'mistral', where every layer"},
      {with("attention_bias", "true", mistral), "'attention_bias' is true, but transformers ignores it"},
      {with("mlp_bias", "true", mistral), "mlp_bias"},
      {with("attention_dropout", "0.1", mistral), "attention_dropout"},
      {with("num_local_experts", "8", mistral), "'num_local_experts' does not belong"},
      {with("architectures", "[\"LlamaForCausalLM\"]", mistral), "'MistralForCausalLM'"},
      {with("pad_token_id", "", phi3), "'pad_token_id' is missing, and 32000"},
      {with("resid_pdrop", "0.1", phi3), "resid_pdrop"},
      {with("embd_pdrop", "0.1", phi3), "embd_pdrop"},
      {with("sliding_window", "0", phi3), "sliding_window"},
      {with("layer_types", "[\"sliding_attention\", \"full_attention\"]", phi3),
       "layer_types[0]: transformers ignores layer_types for model_type 'phi3', where no layer"},
      {with("rope_scaling", "{\"type\": \"linear\", \"factor\": 2}", phi3),
       "'linear' does not belong to model_type"},
      {with("rope_scaling", "{\"type\": \"yarn\", \"factor\": 2}", phi3), "'short_factor' is missing"},
      {with("rope_scaling", "{\"type\": \"longrope\", \"short_factor\": [1, 2]}", phi3),
       "short_factor: 2 factors, expected 4"},
      {with("rope_scaling", "{\"type\": \"longrope\", \"short_factor\": [1, 2, 0, 1]}", phi3),
       "short_factor[2]"},
      {with("rope_scaling", "{\"type\": \"longrope\", \"short_factor\": [1, 2, 2, 1]}", phi3),
       "'long_factor' is missing"},
      {with("partial_rotary_factor", "0.4", phi3), "0.4 of head_dim 8 is 3, expected an even number above 0"},
      {with("partial_rotary_factor", "0", phi3), "partial_rotary_factor"},
      {with("attention_bias", "true", phi3), "attention_bias"},
      {with("mlp_bias", "true", qwen3), "mlp_bias"},
      {with("num_key_value_heads", "", qwen3),
       "num_key_value_heads 32, which transformers takes where it is missing"},
      {with("mlp_bias", "true", qwen2), "mlp_bias"},
      {with("attention_dropout", "0.1", qwen2), "attention_dropout"},
      {with("num_local_experts", "8", qwen2), "'num_local_experts' does not belong"},
      {with("architectures", "[\"Qwen3ForCausalLM\"]", qwen2), "'Qwen2ForCausalLM'"},
      {with("layer_types", "[\"full_attention\"]", qwen3), "expected num_hidden_layers 2"},
      {with("layer_types", "[\"full_attention\", \"linear\"]", qwen3), "'linear' is not supported"},
      {with("layer_types", "[\"full_attention\", \"sliding_attention\"]", qwen3), "use_sliding_window"},
      {with("num_experts_per_tok", "9", qwen3_moe), "9, but there are num_experts 8"},
      {with("num_local_experts", "9", qwen3_moe), "9, but num_experts is 8"},
      {with("output_router_logits", "1", qwen3_moe), "output_router_logits: expected true or false"},
      {with("router_aux_loss_coef", "-1", of_family("gpt_oss", {{"output_router_logits", "true"}})),
       "router_aux_loss_coef: expected a number from 0"},
      {with("router_aux_loss_coef", "null", of_family("gpt_oss", {{"output_router_logits", "true"}})),
       "router_aux_loss_coef: expected a number"},
      {with("decoder_sparse_step", "3", of_family("qwen3_moe", {{"output_router_logits", "true"}})),
       "'output_router_logits' is true, but no layer has experts"},
      {with("layer_types", "[\"sliding_attention\", \"full_attention\"]", qwen3_moe), "transformers ignores"},
      {with("decoder_sparse_step", "0", qwen3_moe), "decoder_sparse_step: expected an integer from 1"},
      {with("decoder_sparse_step", "null", qwen3_moe), "decoder_sparse_step: expected an integer"},
      {with("mlp_only_layers", "1", qwen3_moe), "mlp_only_layers: expected an array"},
      {with("mlp_only_layers", "[0, true]", qwen3_moe), "mlp_only_layers[1]: expected an integer"},
      {with("moe_intermediate_size", "null", qwen3_moe), "moe_intermediate_size"},
      {with("attention_dropout", "0.1", qwen3_moe), "attention_dropout"},
      {with("residual_dropout", "1", seed_oss), "residual_dropout"},
      {with("experts_per_token", "3", gpt_oss), "but num_experts_per_tok is 2"},
      {with("sliding_window", "null", gpt_oss), "layer_types[0]: sliding_attention, but there is no window"},
      {with("swiglu_limit", "6.5", gpt_oss), "swiglu_limit: 6.5 is not supported, expected 7"},
      {with("swiglu_limit", "null", gpt_oss), "swiglu_limit: expected a number"},
      {with("swiglu_alpha", "1", gpt_oss), "swiglu_alpha: 1 is not supported, expected 1.702"},
      {with("quantization_config", "{\"quant_method\": \"awq\"}", gpt_oss), "'awq' is not supported"},
      {"{\"model_type\": \"llama\", \"model_type\": \"llama\"}", "appears twice"},
      {std::string(100, '[') + std::string(100, ']'), "nested deeper"},
      {"{\"vocab_size\": 1\xff}", "valid JSON"},
      {"{\"model_type\": \"llama\", \"vocab_size\": 16777216, \"hidden_size\": 16777216, "
       "\"intermediate_size\": "
       "16777216, \"num_hidden_layers\": 4096, \"num_attention_heads\": 1, \"head_dim\": 128}",
       "parameters"},
  };
  for (auto const& one : cases) {
    CAPTURE(one.text);
    test::fault_case const refused{"F22"};
    CHECK(complaint(one.text).find(one.expected) != std::string::npos);
  }
}

TEST_CASE("a missing file and a file that is too large are refused") {
  scratch_directory const directory;
  CHECK_THROWS_AS(model::read_config(directory.path()), error);
  std::ofstream{directory.path() / "config.json"} << std::string(2 << 20, ' ');
  CHECK_THROWS_WITH_AS(model::read_config(directory.path()), doctest::Contains("expected at most"), error);
}

TEST_CASE("a configuration is not a link out of the model's directory") {
  scratch_directory const directory;
  auto const elsewhere = std::filesystem::path{SUPEROFFLOAD_TEST_DATA} / "models/llama/config.json";
  std::filesystem::create_symlink(elsewhere, directory.path() / "config.json");
  for (auto const& read : std::initializer_list<std::function<void()>>{
           [&] { model::read_config(directory.path()); }, [&] { model::model_type_of(directory.path()); }}) {
    CHECK_THROWS_WITH_AS(read(), doctest::Contains("config.json: is a symbolic link to"), error);
  }
  CHECK(model::read_config({directory.path(), true}).model_type == "llama");
}

}  // namespace
