// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace superoffload::text {

// The steps of a decoder, as tokenizer.json names them. Each makes tokens of tokens.

struct byte_level_decoding {};  ///< letters of the byte alphabet become bytes
/// Runs of "<0x00>" to "<0xFF>" become the characters that their bytes are.
struct byte_fallback_decoding {};
struct fuse_decoding {};  ///< all tokens become one
/// The step Replace of a decoder.
struct replace_decoding {
  std::string pattern;  ///< is replaced wherever it stands
  std::string content;  ///< ... by this
};
/// The step Strip of a decoder.
struct strip_decoding {
  std::string character;  ///< is removed from the begin and the end of each token
  std::size_t start = 0;  ///< at most so often at the begin
  std::size_t stop = 0;   ///< ... and at the end
};
/// The step Metaspace of a decoder.
struct metaspace_decoding {
  std::string replacement;  ///< becomes a space
  bool prepended = true;    ///< but nothing in the first token
};
/// The step BPEDecoder.
struct suffix_decoding {
  std::string suffix;  ///< of the last token of a word: becomes a space, but nothing in the last token of all
};

/// One step.
using decoding_step = std::variant<byte_level_decoding, byte_fallback_decoding, fuse_decoding,
                                   replace_decoding, strip_decoding, metaspace_decoding, suffix_decoding>;

/// Makes text of tokens.
class token_decoder {
public:
  token_decoder() = default;  ///< joins tokens with spaces, as where tokenizer.json has no decoder
  /// Takes the steps in this order and joins what is left.
  explicit token_decoder(std::vector<decoding_step> steps) : steps_{std::move(steps)}, joins_{false} {}

  /// The bytes of `tokens`, which are spelt as in the file. They need not be valid UTF-8. Thread-safe.
  [[nodiscard]] std::string operator()(std::vector<std::string> tokens) const;

private:
  std::vector<decoding_step> steps_;
  bool joins_ = true;
};

}  // namespace superoffload::text

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/text/impl/token_decoder_inl.hpp>
#endif
