// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <concepts>
#include <exception>
#include <string>
#include <string_view>

namespace superoffload {

/// The kind of an error; the exit code of the programs. The values are part of the interface.
enum class exit_code : int {
  ok = 0,
  internal = 1,      ///< a broken promise of this library: please report it
  bad_input = 2,     ///< a flag, a file or a value from outside is wrong
  cannot_fit = 3,    ///< the plan needs more memory than there is
  io_failure = 4,    ///< reading or writing failed: disk full, permission, a file that vanished
  device = 5,        ///< no usable device, or one that refused a call
  nonfinite = 6,     ///< the loss or the gradient is not finite and the run was told to stop
  interrupted = 7,   ///< a signal asked to stop; everything was saved first
  driver = 8,        ///< the device's driver is missing, or too old for this program
  device_lost = 9,   ///< the device failed for good while it was in use; what was saved before stays valid
  rank_failed = 10,  ///< another rank of the run failed, ended or did not answer: its own message says more
};

namespace detail {
inline void append(std::string& out, std::string_view text) { out += text; }
inline void append(std::string& out, char c) { out += c; }
template <std::same_as<bool> Bool>
void append(std::string& out, Bool b) {
  out += b ? "true" : "false";
}

template <class Number>
  requires((std::integral<Number> && !std::same_as<Number, bool> && !std::same_as<Number, char>) ||
           std::floating_point<Number>)
void append(std::string& out, Number n) {
  char digits[64];
  auto const [end, ec] = std::to_chars(digits, digits + sizeof digits, n);
  out.append(digits, end);
}
}  // namespace detail

/// The texts of the arguments, joined; numbers in their shortest exact form. libstdc++ 12 has no std::format.
template <class... Parts>
std::string concat(Parts const&... parts) {
  std::string out;
  (detail::append(out, parts), ...);
  return out;
}

namespace detail {
/// Bytes of the UTF-8 character at the start of `text` if a terminal may show it, else 0.
inline std::size_t shown_bytes(std::string_view text) {
  auto const byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) {
    return byte(0) < 0x20 || byte(0) == 0x7f ? 0 : 1;
  }
  std::size_t const bytes = byte(0) < 0xc2 || byte(0) > 0xf4 ? 0
                            : byte(0) < 0xe0                 ? 2
                            : byte(0) < 0xf0                 ? 3
                                                             : 4;
  if (bytes == 0 || text.size() < bytes || (byte(0) == 0xc2 && byte(1) < 0xa0)) {  // U+0080 to U+009F control
    return 0;
  }
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) {
      return 0;
    }
  }
  return bytes;
}
}  // namespace detail

/// `text` in a form that is safe on a terminal: control characters (C1 too) and bytes that are not UTF-8 are
/// escaped, at most `limit` bytes of it are kept.
inline std::string printable(std::string_view text, std::size_t limit = 200) {
  static constexpr char hex[] = "0123456789abcdef";
  std::string out;
  for (auto rest = text.substr(0, limit); !rest.empty();) {
    if (auto const bytes = detail::shown_bytes(rest); bytes > 0) {
      out += rest.substr(0, bytes);
      rest.remove_prefix(bytes);
    } else {
      auto const byte = static_cast<unsigned char>(rest.front());
      out += "\\x";
      out += hex[byte >> 4];
      out += hex[byte & 15];
      rest.remove_prefix(1);
    }
  }
  if (text.size() > limit) {
    out += "...";
  }
  return out;
}

/// Every failure that a caller can get. what() is one line: what, where, what was expected, what to do.
class error : public std::exception {
public:
  /// `message` is one line, without its end; texts from outside in it have gone through printable().
  error(exit_code code, std::string message) : code_{code}, message_{std::move(message)} {}

  /// The exit code of a program that ends with this error.
  [[nodiscard]] exit_code code() const noexcept { return code_; }
  /// Valid as long as the error.
  [[nodiscard]] char const* what() const noexcept override { return message_.c_str(); }

private:
  exit_code code_;
  std::string message_;
};

/// Throws an `error` whose message is the concatenation of `parts`.
template <class... Parts>
[[noreturn]] void fail(exit_code code, Parts const&... parts) {
  throw error{code, concat(parts...)};
}

/// Throws `error{code, concat(parts...)}` unless `condition` holds.
template <class... Parts>
void expect(bool condition, exit_code code, Parts const&... parts) {
  if (!condition) [[unlikely]] {
    fail(code, parts...);
  }
}

}  // namespace superoffload
