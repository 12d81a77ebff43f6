// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cli/impl/row_flags_inl.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>

#include <CLI/CLI.hpp>

#include <istream>
#include <map>
#include <string>
#include <vector>

namespace superoffload::cli::detail {

/// The file of --config, in which a flag may have all names that it has on the command line.
class flag_file : public CLI::ConfigTOML {
public:
  /// \throws CLI::ConfigError for a flag that is given twice.
  [[nodiscard]] std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    auto read = CLI::ConfigTOML::from_config(input);
    auto const full_name = [](std::string const& name) {
      return name.starts_with("--") ? name : "--" + name;
    };
    bool benchmarks = false;
    for (auto const& item : read) {
      benchmarks = benchmarks || first_name(full_name(item.name), false) == "--bench_steps";
    }
    std::map<std::string, std::string> written;
    for (auto& item : read) {
      if (item.name == "++" || item.name == "--" || !item.parents.empty()) {
        continue;  // sections, which no flag has
      }
      auto const given = item.name;
      auto name = first_name(full_name(given), benchmarks);
      bool const alone = item.inputs == std::vector<std::string>{"true"};
      bool const off = item.inputs == std::vector<std::string>{"false"};
      if (name == "--deepspeed" && !alone && !off) {
        name = "--deepspeed_config";
      }
      for (auto const& flag : bare_flags) {
        if (name == flag.name && (alone || off)) {
          item.inputs = {std::string{alone ? flag.on : flag.off}};
        }
      }
      if (auto const [other, is_new] = written.emplace(name, given); !is_new) {
        throw CLI::ConfigError(
            concat("--config: ", printable(given, 40), " is given twice",
                   other->second == given ? "" : ", also as " + printable(other->second, 40)),
            CLI::ExitCodes::ConfigError);
      }
      item.name = name.substr(2);
    }
    return read;
  }
};

}  // namespace superoffload::cli::detail
