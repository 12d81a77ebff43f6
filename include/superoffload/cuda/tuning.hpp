// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace superoffload::cuda {

/// The algorithm for each kind of GEMM. It is measured at a kind's first use and then kept: in memory, in a
/// file for later runs, and as text for checkpoints. With the same choices a run gives the same bits. Any
/// number of threads may use one object, and any number of processes one file.
class tuning {
public:
  /// cuBLASLt's representation of an algorithm. It is valid for one version of the library only, so a kind
  /// names the version, too.
  using algorithm = std::array<std::uint64_t, 8>;

  /// A kind of GEMM: everything that decides which algorithm is best. `processor` is GPU and library,
  /// `family` leaves out the number of tokens. No text may contain control characters or '|'.
  struct kind {
    std::string processor;  ///< GPU and version of cuBLASLt
    std::string family;     ///< types, sizes and flags, but for the number of tokens
    std::string tokens;     ///< the number of tokens, as text
  };

  /// Members of one family that are measured. Later ones take the choice of the nearest number of tokens:
  /// when each batch has a length of its own, no kind runs often enough to be worth a measurement.
  static constexpr std::size_t family_limit = 8;

  /// GEMMs of more tokens take the choice for so many, measured on a part of their operands: each of them
  /// fills any GPU, in the same way.
  static constexpr std::int64_t most_tokens = 8192;

  /// `path` of the file, "" for no file.
  explicit tuning(std::string path = default_path());

  /// SUPEROFFLOAD_TUNING if it is set ("" means no file), else superoffload/products.txt in XDG_CACHE_HOME or
  /// ~/.cache; "" when there is no home directory either.
  static std::string default_path();

  /// The choice for a kind: the one kept, if `valid` accepts it, else the result of `measure`, which is kept
  /// if there is one. When its family is full, nothing is measured: the kind gets and keeps the choice of the
  /// nearest number of tokens that `valid` accepts, if there is one. The file is read at the first call and
  /// written, under a lock, after each measurement. Errors of the file give a warning on standard error and
  /// never end the run.
  std::optional<algorithm> choose(kind const& of, std::function<bool(algorithm const&)> const& valid,
                                  std::function<std::optional<algorithm>()> const& measure);

  /// When settled, all families are full, so that no step waits for a measurement.
  void settle(bool settled);

  /// All choices as lines of text.
  [[nodiscard]] std::string save() const;

  /// Adds the choices in `text`; they replace own choices for the same families, so that a resumed run finds
  /// the neighbours that the saved one had. If there are some, but none for the processor of the first GEMM
  /// that is measured later, a note on standard error says so, once. Unless the text is what `save` gave,
  /// throws `error` (bad_input), with `source` in the message, and changes nothing.
  void load(std::string_view text, std::string_view source);

private:
  using table = std::map<std::string, algorithm, std::less<>>;

  static std::string text_of(table const& choices);
  static table table_of(std::string_view text, std::string_view source);
  void read_file();
  void write_file();
  void warn(std::string_view reason);
  void note_foreign(std::string_view processor);
  [[nodiscard]] std::optional<algorithm> nearest(std::string const& family_prefix, std::string_view tokens,
                                                 std::function<bool(algorithm const&)> const& valid) const;
  [[nodiscard]] bool full(std::string_view family_prefix) const;

  mutable std::mutex mutex_;
  table choices_;
  std::string path_;
  bool settled_ = false;
  table loaded_;  ///< the choices from load(), for the note
  std::string loaded_from_;
};

}  // namespace superoffload::cuda

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/cuda/impl/tuning_inl.hpp>
#endif
