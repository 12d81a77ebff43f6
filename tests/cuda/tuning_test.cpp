// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/kernels.hpp>
#include <superoffload/cuda/tuning.hpp>

#include <doctest/doctest.h>

#include "support/scratch_directory.hpp"

#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace superoffload;
using cuda::tuning;

std::string text_in(std::filesystem::path const& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

bool always(tuning::algorithm const&) { return true; }

/// Chooses for a GEMM of that many tokens, and counts measurements.
struct chooser {
  tuning& of;
  int measured = 0;
  std::string family = "k 3";
  std::string processor = "a GPU";

  auto operator()(int tokens, bool (*valid)(tuning::algorithm const&) = always) {
    return of.choose({processor, family, std::to_string(tokens)}, valid, [&] {
      ++measured;
      return tuning::algorithm{static_cast<std::uint64_t>(tokens), 2, 3, 0xFFFFFFFFFFFFFFFF};
    });
  }
};

TEST_SUITE("host") {
  TEST_CASE("choices are measured once and survive as text") {
    tuning first{""};
    chooser choose{first};
    auto const choice = choose(7);
    REQUIRE(choice);
    CHECK(choose(7) == choice);
    CHECK(choose.measured == 1);
    CHECK(choose(8) != choice);

    tuning second{""};
    chooser again{second};
    second.load(first.save(), "a test");
    CHECK(second.save() == first.save());
    CHECK(again(7) == choice);
    CHECK(again.measured == 0);
  }

  TEST_CASE("a loaded choice replaces an earlier one") {
    tuning first{""}, second{""};
    chooser{first}(7);
    second.choose({"a GPU", "k 3", "7"}, always, [] { return tuning::algorithm{99}; });
    second.load(first.save(), "a test");
    CHECK(second.save() == first.save());
  }

  TEST_CASE("a kind that cannot be measured has no choice, and none is kept") {
    test::scratch_directory const directory;
    auto const file = directory.path() / "products.txt";
    tuning own{file.string()};
    chooser choose{own};
    tuning::kind const wanted{choose.processor, choose.family, "7"};
    auto const before = own.save();
    CHECK_FALSE(own.choose(wanted, always, [] { return std::optional<tuning::algorithm>{}; }));
    CHECK(own.save() == before);
    CHECK_FALSE(std::filesystem::exists(file));
    CHECK(choose(7));
    CHECK(choose.measured == 1);
  }

  TEST_CASE("a choice that is not valid is measured again") {
    tuning kept{""};
    chooser choose{kept};
    choose(7);
    choose(7, [](tuning::algorithm const&) { return false; });
    CHECK(choose.measured == 2);
  }

  TEST_CASE("a family has a limit") {
    tuning kept{""};
    chooser choose{kept};
    int const limit = static_cast<int>(tuning::family_limit);
    for (int tokens = 1; tokens <= limit; ++tokens) { CHECK(choose(tokens)); }
    CHECK(choose(limit + 1) == choose(limit));
    CHECK(choose(limit));
    CHECK(choose.measured == limit);
    choose.family = "k 30";
    CHECK(choose(1));
  }

  TEST_CASE("when settled, a kind gets the choice of its nearest neighbour, and nothing is measured") {
    tuning kept{""};
    chooser choose{kept};
    auto const small = choose(1000), large = choose(2000);
    kept.settle(true);
    CHECK(choose(1400) == small);
    CHECK(choose(1800) == large);
    CHECK(choose(9000) == large);
    CHECK(choose(1000, [](tuning::algorithm const& one) { return one[0] != 1000; }) == large);
    choose.family = "another";
    CHECK_FALSE(choose(1000));
    CHECK(choose.measured == 2);
    kept.settle(false);
    CHECK(choose(1000));
  }

  TEST_CASE("a resumed run finds the neighbours of the saved one, whatever this process measured before") {
    tuning first{""}, second{""};
    chooser choose{first}, again{second};
    choose(1000);
    first.settle(true);
    auto const borrowed = choose(1500);
    again(1400);
    again.family = "of its own";
    again(1);
    again.family = "k 3";
    second.load(first.save(), "a test");
    second.settle(true);
    CHECK(again(1500) == borrowed);
    CHECK(again(1400) == borrowed);
    again.family = "of its own";
    CHECK(again(1));
    CHECK(again.measured == 2);
  }

  TEST_CASE("a malformed text is refused completely") {
    tuning kept{""};
    chooser choose{kept};
    choose(1);
    auto const good = kept.save();
    tuning other{""};
    chooser{other}(2);
    auto const before = other.save();
    std::string bad[] = {"",
                         "{}",
                         "superoffload matrix products 1",
                         good.substr(0, good.size() - 1),
                         good + "more\n",
                         good + good.substr(0, 50) + "\n"};
    for (auto const& text : bad) {
      CAPTURE(text);
      CHECK_THROWS_AS(other.load(text, "a test"), error);
      CHECK(other.save() == before);
    }
    for (std::size_t at = 0; at < good.size(); ++at) {
      auto flipped = good;
      flipped[at] = static_cast<char>(flipped[at] ^ 1);
      CAPTURE(at);
      CHECK_THROWS_AS(other.load(flipped, "a test"), error);
    }
    CHECK(other.save() == before);
  }

  TEST_CASE("a file keeps choices between runs") {
    test::scratch_directory const scratch;
    auto const path = (scratch.path() / "cache" / "deep" / "products.txt").string();
    tuning first{path};
    chooser choose{first};
    auto const choice = choose(7);
    CHECK(text_in(path) == first.save());
    {
      tuning second{path};
      chooser again{second};
      CHECK(again(7) == choice);
      CHECK(again.measured == 0);
      again(8);
    }
    choose(9);  // the other object's choice stays in the file
    CHECK(choose(8));
    CHECK(choose.measured == 2);
    CHECK(text_in(path) == first.save());
  }

  TEST_CASE("the file and its directories are writable for this user and group at most") {
    test::scratch_directory const directory;
    auto const file = directory.path() / "cache/superoffload/products.txt";
    auto const before = ::umask(0);
    cuda::tuning own{file.string()};
    own.choose(
        {"processor", "family", "tokens"}, [](auto const&) { return true; },
        [] { return cuda::tuning::algorithm{}; });
    ::umask(before);
    using std::filesystem::perms;
    for (auto path = file; path != directory.path(); path = path.parent_path()) {
      CAPTURE(path.string());
      REQUIRE(std::filesystem::exists(path));
      CHECK((std::filesystem::status(path).permissions() & perms::others_write) == perms::none);
    }
  }

  TEST_CASE("a foreign or broken file is not changed and gives only a warning") {
    test::scratch_directory const scratch;
    auto const path = scratch.path() / "products.txt";
    for (std::string const text : {"my thesis\n", "superoffload matrix products 1\nzz\n", ""}) {
      std::ofstream{path} << text;
      tuning kept{path.string()};
      chooser choose{kept};
      CHECK(choose(7));
      CHECK(choose(7));
      CHECK(choose.measured == 1);
      CHECK(text_in(path) == text);
    }
    tuning in_no_directory{"/proc/superoffload/products.txt"};
    CHECK(chooser{in_no_directory}(7));
    tuning is_a_directory{scratch.path().string()};
    CHECK(chooser{is_a_directory}(7));
  }

  TEST_CASE("a lock that another process keeps costs only a wait and a warning") {
    test::scratch_directory const directory;
    auto const path = directory.path() / "products.txt";
    int const foreign = ::open((path.string() + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(::flock(foreign, LOCK_EX) == 0);
    tuning of{path};
    chooser choose{of};
    for (int tokens = 1; tokens <= 5; ++tokens) { CHECK(choose(tokens)); }  // waiting once
    CHECK(choose.measured == 5);
    CHECK_FALSE(std::filesystem::exists(path));
    ::close(foreign);
  }

  TEST_CASE("a kind that loaded choices omit because its family was full stays so, whatever the file has") {
    test::scratch_directory const scratch;
    auto const path = (scratch.path() / "products.txt").string();
    int const limit = static_cast<int>(tuning::family_limit);
    tuning saved{""};
    chooser choose{saved};
    for (int tokens = 1; tokens <= limit; ++tokens) { choose(tokens); }
    tuning elsewhere{path};
    CHECK(chooser{elsewhere}(limit + 1));
    tuning resumed{path};
    resumed.load(saved.save(), "a test");
    chooser again{resumed};
    CHECK(again(limit + 1) == choose(limit));
    CHECK(again.measured == 0);
  }

  TEST_CASE("a note says once that loaded choices are for another GPU, and never for this one") {
    tuning saved{""};
    chooser{saved}(7);
    auto const said = [&](std::string const& processor) {
      test::scratch_directory const scratch;
      auto const path = (scratch.path() / "stderr").string();
      std::fflush(stderr);
      int const kept = dup(2);
      REQUIRE(freopen(path.c_str(), "w", stderr) != nullptr);
      tuning resumed{""};
      resumed.load(saved.save(), "old/checkpoint-3: 'tuning'");
      chooser again{resumed};
      again.processor = processor;
      again(7);
      again(8);
      std::fflush(stderr);
      dup2(kept, 2);
      close(kept);
      return text_in(path);
    };
    CHECK(said("a GPU").empty());
    auto const note = said("another GPU");
    CHECK(note.find("old/checkpoint-3: 'tuning': chosen on another GPU or library") != std::string::npos);
    CHECK(std::count(note.begin(), note.end(), '\n') == 1);
  }
}

TEST_CASE("a GEMM runs with the algorithm that was measured before") {
  cuda::device first, second;
  auto const use = [](cuda::device& device) {
    cuda::stream stream{device};
    std::int64_t const n = 2048;
    buffer<cuda::device> const a{device, n * n * 2}, b{device, n * n * 2}, c{device, n * n * 2};
    stream.fill_zero(a.data(), a.bytes());
    stream.fill_zero(b.data(), b.bytes());
    stream.fill_zero(c.data(), c.bytes());
    for (bool const accumulate : {false, true}) {
      launch(stream, kernel::gemm<bfloat16>{.a = a.as<bfloat16>(),
                                            .b = b.as<bfloat16>(),
                                            .c = c.as<bfloat16>(),
                                            .m = n,
                                            .n = n,
                                            .k = n,
                                            .accumulate = accumulate});
    }
    stream.synchronize();
    return device.tuning().save();
  };
  auto const choices = use(first);
  CHECK(choices.find("n 2048, k 2048|2048\n") != std::string::npos);
  CHECK(choices.find(first.model()) != std::string::npos);
  second.tuning().load(choices, "a test");
  CHECK(use(second) == choices);
}

TEST_CASE("GEMMs of more tokens than are measured take the choice for so many") {
  cuda::device device;
  cuda::stream stream{device};
  std::int64_t const n = 1024, tokens = tuning::most_tokens + n;
  buffer<cuda::device> const activations{device, static_cast<std::size_t>(2 * tokens * n)},
      weight{device, n * n * 2}, bias{device, n * 2}, out{device, activations.bytes()};
  for (auto const* const b : {&activations, &weight, &bias}) { stream.fill_zero(b->data(), b->bytes()); }
  for (auto const rows : {tuning::most_tokens, tokens}) {
    launch(stream, kernel::gemm<bfloat16>{.a = activations.as<bfloat16>(),
                                          .b = weight.as<bfloat16>(),
                                          .c = out.as<bfloat16>(),
                                          .m = rows,
                                          .n = n,
                                          .k = n,
                                          .transpose_b = true,
                                          .bias = bias.as<bfloat16>()});
    launch(stream, kernel::gemm<bfloat16>{.a = activations.as<bfloat16>(),
                                          .b = activations.as<bfloat16>(),
                                          .c = weight.as<bfloat16>(),
                                          .m = n,
                                          .n = n,
                                          .k = rows,
                                          .transpose_a = true});
  }
  stream.synchronize();
  auto const choices = device.tuning().save();
  auto const lines_with = [&](std::string_view text) {
    int found = 0;
    for (auto at = choices.find(text); at != std::string::npos; at = choices.find(text, at + 1)) { ++found; }
    return found;
  };
  CHECK(lines_with("|8192\n") >= 2);
  CHECK(lines_with("|9216\n") == 0);
}

}  // namespace
