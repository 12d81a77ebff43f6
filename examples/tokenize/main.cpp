// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// tokenize --model DIR [--no_special] < texts.jsonl: one JSON string a line in, one JSON list of ids a line
// out. tokenize --model DIR --dataset ROWS: the rows of a data set as the fine-tuners see them.
#include <superoffload/cli/program.hpp>
#include <superoffload/cli/row_flags.hpp>
#include <superoffload/cli/unknown_flags.hpp>
#include <superoffload/core/creation_mode.hpp>
#include <superoffload/core/log.hpp>
#include <superoffload/core/system_call.hpp>
#include <superoffload/data/examples.hpp>
#include <superoffload/data/row_notes.hpp>
#include <superoffload/data/source.hpp>
#include <superoffload/io/file.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/text/tokenizer.hpp>
#include <superoffload/train/options.hpp>
#include <superoffload/train/run/run_data.hpp>

#include <CLI/CLI.hpp>

#include "show.hpp"
#include "statistics.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace superoffload;

constexpr std::size_t longest_line = std::size_t{16} << 20;

/// The next line without its end; nothing at the end of the input.
std::optional<std::string> read_line(std::streambuf& in, std::string const& where) {
  using traits = std::streambuf::traits_type;
  std::string line;
  auto c = in.sbumpc();
  if (c == traits::eof()) {
    return std::nullopt;
  }
  for (; c != traits::eof() && c != '\n'; c = in.sbumpc()) {
    expect(line.size() < longest_line, exit_code::bad_input, where, ": longer than ", longest_line,
           " bytes; expected shorter lines");
    line += traits::to_char_type(c);
  }
  return line;
}

/// Lines to a file, or to standard output.
class line_writer {
public:
  explicit line_writer(std::filesystem::path const& path)
      : name_{path.empty() ? "standard output" : io::shown(path)} {
    if (!path.empty()) {
      int const descriptor = uninterrupted(
          [&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, new_file_mode); });
      opened_.reset(descriptor < 0 ? nullptr : ::fdopen(descriptor, "wb"));
      expect_call(opened_ != nullptr, exit_code::io_failure, name_, ": cannot be written");
    }
  }

  void write(std::string const& line) {
    expect_call(std::fwrite(line.data(), 1, line.size(), file()) == line.size(), exit_code::io_failure, name_,
                ": writing failed");
  }
  void flush() { expect_call(std::fflush(file()) == 0, exit_code::io_failure, name_, ": writing failed"); }

private:
  struct closing {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  [[nodiscard]] std::FILE* file() const noexcept { return opened_ ? opened_.get() : stdout; }

  std::string name_;
  std::unique_ptr<std::FILE, closing> opened_;
};

/// "[1,2]"
template <class Numbers>
std::string list_of(Numbers const& numbers) {
  std::string out = "[";
  for (auto const number : numbers) { out += out.size() == 1 ? concat(number) : concat(',', number); }
  return out + "]";
}

void tokenize_lines(text::tokenizer const& tokenizer, bool add_special) {
  line_writer out{{}};
  std::vector<std::int32_t> ids;
  for (std::size_t number = 1;; ++number) {
    auto const where = concat("line ", number);
    auto const line = read_line(*std::cin.rdbuf(), where);
    if (!line) {
      break;
    }
    auto const document = io::parse_json(*line, where, {.bytes = longest_line, .depth = 1});
    ids.clear();
    tokenizer.encode(io::json_field{document, where}.text(), ids, add_special);
    out.write(list_of(ids) + "\n");
  }
  out.flush();
}

/// What is to be done with the rows of a data set.
struct wishes {
  std::filesystem::path output;
  std::int64_t show = 0;  ///< rows
  bool stats = false;
  [[nodiscard]] bool ids() const { return !output.empty() || (show == 0 && !stats); }
};

/// An object: ids, and a mask that is 1 where an id is learnt.
std::string ids_and_mask(data::encoded_row const& one) {
  std::vector<int> mask(one.ids.size());
  for (auto const& learnt : one.learnt) {
    for (auto i = learnt.begin; i < learnt.end; ++i) { mask[static_cast<std::size_t>(i)] = 1; }
  }
  return concat("{\"ids\": ", list_of(one.ids), ", \"mask\": ", list_of(mask), "}\n");
}

void expect_apart(std::vector<std::filesystem::path> const& files, std::filesystem::path const& output) {
  for (auto const& file : files) {
    std::error_code absent;
    expect(!std::filesystem::equivalent(file, output, absent), exit_code::bad_input, "--output is '",
           io::shown(output), "', which is the data set; expected another file");
  }
}

void tokenize_rows(text::tokenizer const& tokenizer, train::training_options const& options,
                   wishes const& wanted) {
  std::vector<std::vector<std::filesystem::path>> sets;
  for (auto const& set : options.dataset) {
    sets.push_back(data::files_of(set.path, options.follow_links));
    expect_apart(sets.back(), wanted.output);
  }
  line_writer out{wanted.output}, screen{{}};
  statistics counted{options.max_length};
  bool const colours = output_has_colours();
  std::int64_t shown = 0;
  data::row_notes found;
  auto const use = [&](data::row const& read, data::encoded_row const& one) {
    if (wanted.ids()) {
      out.write(ids_and_mask(one));
    }
    if (shown < wanted.show) {
      ++shown;
      screen.write(shown_row(read, one, tokenizer, colours));
    }
    if (wanted.stats) {
      counted.add(read, one);
    }
    found.add(read, one);
  };
  std::string formats;
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    auto reading = train::reading_of(options);
    reading.format = data::format_of(sets[i], reading);
    formats += concat(i == 0 ? "" : "\n", io::shown(options.dataset[i].path), ": rows of format ",
                      data::name_of(reading.format));
    auto const encoding = train::encoding_of(options, tokenizer, {reading.format});
    if (notes.empty()) {
      notes = train::notes_on(encoding, tokenizer);
    }
    data::row_encoder const encoder{tokenizer, encoding};
    if (!wanted.ids() && !wanted.stats) {
      reading.first = static_cast<std::size_t>(wanted.show - shown);
    }
    data::encode_rows(sets[i], reading, encoder, use);
  }
  if (wanted.stats) {
    screen.write(counted.text());
  }
  out.flush();
  screen.flush();
  if (options.format == data::row_format::automatic) {
    log(log_level::info, formats);
  }
  std::ranges::move(found.lines(), std::back_inserter(notes));
  for (auto const& note : notes) { log_line(log_level::note, note); }
}

int tokenize(int argc, char** argv) {
  CLI::App app{
      "Turns texts into token ids: one JSON string a line in, one JSON list of ids a line out. With "
      "--dataset, "
      "turns its rows into ids and a mask of what is learnt, as the fine-tuners do.",
      "tokenize"};
  app.set_version_flag("--version", cli::version_line("tokenize"), "Print the version and exit");
  constexpr char const* rows = "Rows of a data set";
  train::training_options options;
  auto const usual_length = std::exchange(options.max_length, std::int64_t{1} << 24);  // all of a row
  wishes wanted;
  bool no_special = false;
  app.add_option("--model", options.model, "directory with tokenizer.json")->type_name("DIR")->required();
  auto const* const texts = app.add_flag("--no_special,--no-special", no_special,
                                         "leave out what the post-processor adds to a text, such as a BOS");
  cli::add_follow_links(app, options);
  cli::add_row_flags(app, options, rows);
  app.add_option("--output", wanted.output, "where the ids go, instead of standard output")
      ->type_name("FILE")
      ->group(rows);
  app.add_option("--show", wanted.show, "print so many rows, with what is learnt in colour or [[marked]]")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40).description(""))
      ->type_name("N")
      ->group(rows);
  app.add_flag("--stats", wanted.stats, "print lengths, the share that is learnt, and which rows are cut")
      ->group(rows);
  try {
    app.parse(cli::normalized(argc, argv));
  } catch (CLI::Success const& asked) { return app.exit(asked); } catch (CLI::ParseError const& e) {
    fail(exit_code::bad_input, cli::refusal_of(app, e));
  }
  for (auto const* const option : app.get_options()) {
    expect(option->get_group() != rows || option->count() == 0 || !options.dataset.empty(),
           exit_code::bad_input, option->get_name(), " needs --dataset, whose rows it is about");
  }
  if ((wanted.stats || wanted.show > 0) && app.count("--max_length") == 0) {
    options.max_length = usual_length;
  }
  expect(texts->count() == 0 || options.dataset.empty(), exit_code::bad_input,
         "--no_special is for texts from standard input; expected it without --dataset");
  std::ios::sync_with_stdio(false);
  auto const tokenizer = text::tokenizer::load(options.model_source());
  if (options.dataset.empty()) {
    tokenize_lines(tokenizer, !no_special);
  } else {
    tokenize_rows(tokenizer, options, wanted);
  }
  return static_cast<int>(exit_code::ok);
}

}  // namespace

int main(int argc, char** argv) {
  return cli::run_program(
      "tokenize", [](int count, char** arguments) { return tokenize(count, arguments); }, argc, argv);
}
