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

/// Which algorithm each kind of matrix product runs with. It is measured at a kind's first use and then kept,
/// in memory, in a file from run to run, and as text that can go with a checkpoint: with the same choices a
/// run gives the same bits. Any number of threads may use it, and any number of processes one file.
class tuning {
public:
  /// What cuBLASLt calls an algorithm. It means something to one version of the library only, so a kind names
  /// that too.
  using algorithm = std::array<std::uint64_t, 8>;

  /// A kind of product: everything that decides which algorithm is best. `processor` is GPU and library,
  /// `family` leaves out the number of tokens; none has control characters or '|' in it.
  struct kind {
    std::string processor;
    std::string family;
    std::string tokens;
  };

  /// Members of one family that are measured. What comes later, as when each batch has a length of its own,
  /// takes the library's first proposal: it would not run often enough to be worth a measurement.
  static constexpr std::size_t family_limit = 8;

  /// `path` of the file, "" for none.
  explicit tuning(std::string path = default_path());

  /// SUPEROFFLOAD_TUNING if it is set ("" means no file), else superoffload/products.txt in XDG_CACHE_HOME or
  /// ~/.cache; "" when there is no home either.
  static std::string default_path();

  /// The choice for a kind: the one kept, if `valid` accepts it, else the result of `measure`, which is kept.
  /// No choice when its family is full. The file is read at the first call and written, under a lock, after
  /// each measurement; trouble with it costs a warning on standard error, never the run.
  std::optional<algorithm> choose(kind const& of, std::function<bool(algorithm const&)> const& valid,
                                  std::function<algorithm()> const& measure);

  /// All choices as lines of text.
  [[nodiscard]] std::string save() const;

  /// Takes over the choices in `text`, in place of its own for the same kinds. If there are some, but none
  /// for the processor of the first product that has to be measured later, a note on standard error says so,
  /// once. Throws `error` (bad_input), with `source` in the message, and takes over nothing unless the text
  /// is what `save` gave.
  void load(std::string_view text, std::string_view source);

private:
  using table = std::map<std::string, algorithm, std::less<>>;

  static std::string text_of(table const& choices);
  static table table_of(std::string_view text, std::string_view source);
  void read_file();
  void write_file();
  void warn(std::string_view reason);
  void note_foreign(std::string_view processor);
  [[nodiscard]] bool full(std::string_view family_prefix) const;

  mutable std::mutex mutex_;
  table choices_;
  std::string path_;
  table loaded_;  ///< what load() gave, for the note
  std::string loaded_from_;
};

}  // namespace superoffload::cuda

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/cuda/impl/tuning_inl.hpp>
#endif
