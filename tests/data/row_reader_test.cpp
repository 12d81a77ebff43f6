// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/data/row_reader.hpp>

#include <doctest/doctest.h>

#include "scratch_file.hpp"

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace superoffload;
using namespace superoffload::data;

namespace {

using file_of = testing::scratch_file;

/// "line:text" of every row.
std::vector<std::string> rows_of(std::string_view content) {
  file_of const file{content};
  row_reader reader{file.path()};
  std::vector<std::string> rows;
  while (auto const read = reader.next()) {
    REQUIRE(read->origin.starts_with(file.path().string()));
    rows.push_back(concat(read->origin.substr(file.path().string().size() + 1), ":", read->text));
  }
  CHECK(!reader.next());
  return rows;
}

TEST_CASE("a row is its text and the line where it begins") {
  using list = std::vector<std::string>;
  CHECK(rows_of("\n {\"a\": 1}\n\n\n{}\n") == list{"2:{\"a\": 1}", "5:{}"});
  CHECK(rows_of("[\n{\n\n},\n\n{\"}\\\"\": [\n1]}\n]") == list{"2:{\n\n}", "6:{\"}\\\"\": [\n1]}"});
}

TEST_CASE("rows longer than what is read at once, and many of them") {
  std::string content;
  std::vector<std::string> expected;
  for (int i = 0; i < 300; ++i) {
    std::string const text =
        "{\"" + std::string(static_cast<std::size_t>(i) * 37 % 9001, 'x') + "\\\"\": {}}";
    expected.push_back(concat(i + 1, ":", text));
    content += (i == 0 ? "" : "\n") + text;
  }
  expected.push_back("301:{\"" + std::string(1 << 20, 'y') + "\":0}");
  content += "\n" + expected.back().substr(4);
  CHECK(rows_of(content) == expected);
  for (auto& c : content) {
    if (c == '\n') {
      c = ',';
    }
  }
  auto const listed = rows_of("[" + content + "]");
  REQUIRE(listed.size() == expected.size());
  for (std::size_t i = 0; i < listed.size(); ++i) {
    CHECK(listed[i].substr(1) == expected[i].substr(expected[i].find(':')));
  }
}

TEST_CASE("rows of a packed file are those of the file, with their lines") {
  // gzip -n of {"a": 1}\n\n{"b": 2}\n
  using namespace std::string_view_literals;
  CHECK(rows_of(
            "\037\213\010\000\000\000\000\000\000\003\253\126\112\124\262\122\060\254\345\342\252\126\112\002"
            "\262\214\152\271\000\347\053\324\116\023\000\000\000"sv) ==
        std::vector<std::string>{"1:{\"a\": 1}", "3:{\"b\": 2}"});
}

TEST_CASE("a packed file counts as long as it is unpacked") {
  // Its 16 MiB of blanks are 16 KiB.
  file_of const file{std::string(std::size_t{1} << 24, ' ')};
  auto const packed = concat(file.path().string(), ".gz");
  REQUIRE(std::system(concat("gzip -c '", file.path().string(), "' > '", packed, "'").c_str()) == 0);
  row_reader reader{packed, {.bytes = std::uint64_t{1} << 20}};
  CHECK_THROWS_WITH_AS(reader.next(), doctest::Contains(": more than 1048576 bytes"), error);
}

TEST_CASE("Parquet is refused with what converts it") {
  file_of const file{"PAR1PAR1"};
  CHECK_THROWS_WITH_AS(row_reader{file.path()}.next(), doctest::Contains("pandas.read_parquet"), error);
}

TEST_CASE("a table is refused with what converts it") {
  for (auto const& [name, says] :
       {std::pair{"rows.csv", "read_csv(FILE).to_json"}, {"rows.tsv", "read_csv(FILE, sep='\\t').to_json"}}) {
    file_of const file{"instruction,output\na,b\n", name};
    CHECK_THROWS_WITH_AS(row_reader{file.path()}.next(), doctest::Contains(says), error);
  }
}

TEST_CASE("an object over several lines is refused with what makes it one") {
  for (char const* const text : {"{\n \"text\": \"a\"\n}\n", "\n{ \t\r\n\"text\": \"a\"}"}) {
    file_of const file{text};
    CHECK_THROWS_WITH_AS(row_reader{file.path()}.next(), doctest::Contains("jq -c . FILE > LINES"), error);
  }
}

TEST_CASE("a percentage of the rows") {
  CHECK(rows_of_percentage(999, 100.0) == 999);
  CHECK(rows_of_percentage(999, 10.0) == 99);
  CHECK(rows_of_percentage(100, 29.0) == 29);
  CHECK(rows_of_percentage(999, 0.01) == 1);
  CHECK(rows_of_percentage(1, 50.0) == 1);
  for (double const wrong : {0.0, -1.0, 100.5, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_AS(rows_of_percentage(10, wrong), error);
  }
}

}  // namespace
