// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Fine-tunes any model that there is a program for: becomes finetune_<model_type>, which is beside it.
#include <superoffload/cli/command_line.hpp>
#include <superoffload/cli/program.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/model/config.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace {

namespace so = superoffload;
namespace fs = std::filesystem;

/// Can it be a part of a file's name, and no more?
bool is_plain(std::string_view type) {
  return !type.empty() && type.size() <= 64 &&
         type.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string_view::npos;
}

/// The program for models of that type. \throws error(bad_input) where there is none.
fs::path program_for(so::io::model_directory const& model) {
  auto const type = so::model::model_type_of(model);
  auto const here = fs::read_symlink("/proc/self/exe").parent_path();
  auto const program = here / ("finetune_" + type);
  if (!is_plain(type) || !fs::exists(program)) {
    so::model::read_config(model);  // refuses a type that this library does not know
    so::fail(so::exit_code::bad_input, model.path().string(), ": models of type '", so::printable(type, 40),
             "' are fine-tuned by finetune_", so::printable(type, 40), ", which is not in ", here.string(),
             "; build or install it there");
  }
  return program;
}

int finetune(int argc, char** argv) {
  // GPUs are for the other program to refuse.
  auto const command = so::cli::read_command_line(argc, argv, "Fine-tunes a language model on your data.",
                                                  {.cuda = true, .nccl = true});
  if (!command) {
    return 0;
  }
  auto program = program_for(command->training.model_source()).string();
  std::vector<char*> arguments{argv, argv + argc + 1};
  arguments.front() = program.data();
  ::execv(program.c_str(), arguments.data());
  so::fail(so::exit_code::io_failure, program, ": cannot be started: ", std::strerror(errno));
}

}  // namespace

int main(int argc, char** argv) { return so::cli::run_program("finetune", finetune, argc, argv); }
