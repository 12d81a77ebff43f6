// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cudnn/attention.hpp>

#include <doctest/doctest.h>

namespace {

using namespace superoffload;

bool contains(std::string const& text, std::string const& part) {
  CAPTURE(text);
  return text.find(part) != std::string::npos;
}

kernel::attention_shape shape_of(std::int32_t heads, std::int32_t kv_heads, std::int32_t head_dim,
                                 std::int32_t window = 0) {
  return {.starts = nullptr,
          .documents = 1,
          .rows = 256,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = head_dim,
          .longest = 256,
          .window = window,
          .scale = 0.125};
}

TEST_SUITE("host") {
  TEST_CASE("versions that compute attention wrongly, or not at all, are refused by name") {
    CHECK(cudnn::refusal_of(91300).empty());
    CHECK(cudnn::refusal_of(91301).empty());
    CHECK(cudnn::refusal_of(91401).empty());
    CHECK(cudnn::refusal_of(91900).empty());
    CHECK(contains(cudnn::refusal_of(91400), "cuDNN 9.14.0 is wrong for windows"));
    CHECK(contains(cudnn::refusal_of(91001), "cuDNN 9.10.1 computes attention wrongly"));
    CHECK(contains(cudnn::refusal_of(91000), "cuDNN 9.10.0 computes attention wrongly"));
    CHECK(contains(cudnn::refusal_of(91200), "cuDNN 9.12.0 is too old; expected 9.13.0 or newer"));
    CHECK(contains(cudnn::refusal_of(8907), "another major version"));
    CHECK(contains(cudnn::refusal_of(100000), "cuDNN 10.0.0 is of another major version"));
  }

  TEST_CASE("cuDNN has the models' attention on Hopper, and names what it does not support") {
    for (std::int32_t const head_dim : {64, 80, 96, 128, 256}) {
      for (std::int32_t const window : {0, 128}) {
        CHECK(cudnn::refusal_of(shape_of(32, 8, head_dim, window), false, 90) == "");
        CHECK(cudnn::refusal_of(shape_of(64, 8, head_dim, window), true, 90) == "");
      }
    }
    CHECK(contains(cudnn::refusal_of(shape_of(8, 8, 100), false, 90), "multiple of 8"));
    CHECK(contains(cudnn::refusal_of(shape_of(8, 8, 264), false, 90), "256"));
    CHECK(contains(cudnn::refusal_of(shape_of(8, 3, 64), false, 90), "8 and 3 heads of 64"));
    CHECK(contains(cudnn::refusal_of(shape_of(8, 8, 128), false, 75), "on this GPU"));
  }

  TEST_CASE("a batch that cuDNN does not compute is refused with the limit that it exceeds") {
    auto const refusal = [](std::int64_t documents, std::int32_t longest, std::int32_t heads,
                            std::int64_t rows = 0) {
      auto s = shape_of(heads, 8, 128);
      s.documents = documents;
      s.longest = longest;
      s.rows = rows > 0 ? rows : documents * longest;
      return cudnn::refusal_of(s, cudnn::attention::settings{});
    };
    CHECK(refusal(1, 32768, 32) == "");
    CHECK(refusal(4, 2048, 32) == "");
    CHECK(refusal(1024, 16, 32) == "");
    CHECK(contains(
        refusal(1, 32768, 64),
        "a document of 32768 tokens with 8 query heads to one of keys: cuDNN's deterministic backward "
        "would take 16516 MiB, expected at most 9216"));
    CHECK(contains(refusal(3000, 4, 32), "a batch of 3000 documents: cuDNN is given at most 1024"));
    CHECK(contains(refusal(900, 8192, 32, 16000), "pieces, expected at most 32"));
    CHECK(contains(refusal(1, 0, 32), "no tokens"));
  }
}

}  // namespace
