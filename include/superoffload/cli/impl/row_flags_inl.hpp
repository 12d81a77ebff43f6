// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cli/row_flags.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/data/row_format.hpp>
#include <superoffload/text/chat_template.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace superoffload::cli {
namespace detail {

/// Other names of flags: those that they had before, and those that transformers and DeepSpeed's example give
/// the same settings.
inline constexpr std::pair<std::string_view, std::string_view> other_names[] = {
    {"--model_name", "--model"},
    {"--model_name_or_path", "--model"},
    {"--stream_weights", "--offload_weights"},
    {"--streamed_share", "--device_updated_share"},
    {"--learning_rate", "--lr"},
    {"--lr_scheduler_type", "--lr_scheduler"},
    {"--warmup_steps", "--lr_warmup_steps"},
    {"--warmup_ratio", "--lr_warmup_ratio"},
    {"--adam_epsilon", "--adam_eps"},
    {"--logging_steps", "--log_interval"},
    {"--resume_from_checkpoint", "--resume"}};

/// Flags that DeepSpeed's example has without a value, and what they mean then.
struct bare_flag {
  std::string_view name, on, off;
};
inline constexpr bare_flag bare_flags[] = {{"--bind_cores_to_rank", "on", "off"},
                                           {"--activation_checkpointing", "every_block", "none"}};

/// The first name of a flag. `benchmarks`: --bench_steps is given, beside which --warmup_steps is that of
/// DeepSpeed's example.
SUPEROFFLOAD_INLINE std::string first_name(std::string name, bool benchmarks) {
  std::replace(name.begin() + 2, name.end(), '-', '_');
  if (benchmarks && name == "--warmup_steps") {
    return name;
  }
  auto const found = std::ranges::find(other_names, std::string_view{name},
                                       &std::pair<std::string_view, std::string_view>::first);
  return found == std::end(other_names) ? name : std::string{found->second};
}

/// A flag with named values, shown by name in --help. `others`: values that are accepted besides.
template <class Value>
CLI::Option* choice(CLI::App& app, std::string const& flag, Value& value,
                    std::vector<std::pair<std::string, Value>> const& names, std::string const& what,
                    std::vector<std::pair<std::string, Value>> const& others = {}) {
  std::string listed, usual;
  for (auto const& [name, candidate] : names) {
    listed += (listed.empty() ? "" : "|") + name;
    if (candidate == value) {
      usual = name;
    }
  }
  return app
      .add_option_function<std::string>(
          flag,
          [&value, names, others, flag, listed](std::string const& text) {
            for (auto const* const list : {&names, &others}) {
              auto const found = std::ranges::find(*list, text, &std::pair<std::string, Value>::first);
              if (found != list->end()) {
                value = found->second;
                return;
              }
            }
            fail(exit_code::bad_input, flag, " is '", printable(text, 40), "', expected ", listed);
          },
          what)
      ->type_name(listed)
      ->default_str(usual);
}

SUPEROFFLOAD_INLINE CLI::Option* on_off(CLI::App& app, std::string const& flag, bool& value,
                                        std::string const& what) {
  return choice<bool>(app, flag, value, {{"on", true}, {"off", false}}, what);
}

SUPEROFFLOAD_INLINE std::vector<std::pair<std::string, std::string>> chat_templates() {
  std::vector<std::pair<std::string, std::string>> choices{{"auto", ""}};
  for (auto const name : text::chat_template::names()) { choices.emplace_back(name, name); }
  return choices;
}

SUPEROFFLOAD_INLINE void add_format(CLI::App& app, train::training_options& o, char const* group) {
  std::vector<std::pair<std::string, data::row_format>> formats;
  for (auto const& [name, format] : data::row_formats) { formats.emplace_back(name, format); }
  choice<data::row_format>(app, "--format", o.format, formats,
                           "what the fields of the data mean; auto: by those of the first row")
      ->group(group);
  app.add_option_function<std::string>(
         "--columns", [&o](std::string const& text) { o.columns = data::parse_columns(text); },
         "fields that the data call otherwise, such as instruction=question,output=answer")
      ->type_name("FIELD=NAME,...")
      ->group(group);
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::vector<std::string> normalized(int argc, char** argv) {
  auto const is_flag = [&](int i) { return i < argc && std::string_view{argv[i]}.starts_with("--"); };
  auto const name_in = [](std::string const& argument) { return argument.substr(0, argument.find('=')); };
  bool benchmarks = false;
  for (int i = 1; i < argc; ++i) {
    benchmarks = benchmarks || (is_flag(i) && detail::first_name(name_in(argv[i]), false) == "--bench_steps");
  }
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) {  // CLI11 takes them in reverse
    std::string argument = argv[i];
    expect(!argument.empty(), exit_code::bad_input, "argument ", i,
           i > 1 ? concat(" after ", printable(argv[i - 1], 80)) : std::string{},
           " is empty, expected a value: an unset variable?");
    if (is_flag(i)) {
      auto const written = name_in(argument);
      auto name = detail::first_name(written, benchmarks);
      bool const alone = written == argument && (i + 1 == argc || argv[i + 1][0] == '-');
      if (name == "--deepspeed" && !alone) {
        name = "--deepspeed_config";  // transformers' flag, and not the mark of DeepSpeed's own
      }
      argument.replace(0, written.size(), name);
      for (auto const& flag : detail::bare_flags) {
        if (alone && name == flag.name) {
          argument += concat('=', flag.on);
        }
      }
    }
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

SUPEROFFLOAD_INLINE CLI::Option* add_follow_links(CLI::App& app, train::training_options& o) {
  return app.add_flag("--follow_links", o.follow_links,
                      "read files of the model and of data sets also where symbolic links lead out of their "
                      "directory");
}

SUPEROFFLOAD_INLINE void add_row_flags(CLI::App& app, train::training_options& o, char const* group) {
  app.add_option_function<std::vector<std::string>>(
         "--dataset",
         [&o](std::vector<std::string> const& texts) {
           o.dataset.clear();
           for (auto const& text : texts) { o.dataset.push_back(data::parse_source(text)); }
         },
         "JSON or JSON lines, maybe packed by gzip or zstd, or a directory of such files; with weights, "
         "shares of the rows of several")
      ->type_name("PATH[:WEIGHT]")
      ->expected(1, -1)
      ->take_all()
      ->group(group);
  detail::add_format(app, o, group);
  detail::choice<text::prompt_template>(
      app, "--template", o.prompt_template,
      {{"deepspeed", text::prompt_template::deepspeed}, {"alpaca", text::prompt_template::alpaca}},
      "how a row of Alpaca becomes text")
      ->group(group);
  detail::choice<std::string>(app, "--chat_template", o.chat_template, detail::chat_templates(),
                              "how a conversation becomes text; auto: as the model's own template says")
      ->group(group);
  detail::choice<text::learnt_turns>(
      app, "--learn", o.learn,
      {{"all", text::learnt_turns::all},
       {"last", text::learnt_turns::last},
       {"weighted", text::learnt_turns::weighted}},
      "which turns of the assistant are learnt; weighted: all but those of weight 0")
      ->group(group);
  detail::choice<bool>(app, "--label_mask", o.mask_prompt, {{"prompt", true}, {"none", false}},
                       "what is not to be learnt")
      ->group(group);
  detail::on_off(app, "--append_eos", o.append_eos, "end-of-text after each row")->group(group);
  app.add_option("--max_length", o.max_length, "tokens of a sequence; longer rows are cut")
      ->capture_default_str()
      ->group(group);
}

}  // namespace superoffload::cli
