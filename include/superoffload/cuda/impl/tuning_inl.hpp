// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/creation_mode.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/first_bytes.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/core/log.hpp>
#include <superoffload/core/system_call.hpp>
#include <superoffload/cuda/tuning.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

namespace superoffload::cuda {

namespace detail {

inline constexpr std::string_view title = "superoffload matrix products 1";
inline constexpr char separator = '|';
/// A file of this size would hold half a million choices: it is not a file of ours.
inline constexpr std::uintmax_t file_limit = std::uintmax_t{64} << 20;

SUPEROFFLOAD_INLINE std::string hex(std::uint64_t number) {
  std::string digits(16, '0');
  char text[16];
  auto const [end, ec] = std::to_chars(text, text + sizeof text, number, 16);
  std::copy(text, end, digits.end() - (end - text));
  return digits;
}

SUPEROFFLOAD_INLINE std::optional<std::uint64_t> number_of(std::string_view digits) {
  std::uint64_t number = 0;
  auto const [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return ec == std::errc{} && end == digits.data() + digits.size() ? std::optional{number} : std::nullopt;
}

/// FNV-1a.
SUPEROFFLOAD_INLINE std::uint64_t checksum(std::string_view text) {
  std::uint64_t sum = 14695981039346656037U;
  for (char const c : text) { sum = (sum ^ static_cast<unsigned char>(c)) * 1099511628211U; }
  return sum;
}

/// If it fails, writing the file says why.
SUPEROFFLOAD_INLINE void make_directories(std::filesystem::path const& path) {
  std::error_code none;
  if (!path.empty() && !std::filesystem::exists(path, none)) {
    make_directories(path.parent_path());
    ::mkdir(path.c_str(), new_directory_mode);
  }
}

/// Locks a file for its lifetime, if possible. Without the lock two processes may measure the same kind, and
/// the later choice is kept.
class file_lock {
public:
  explicit file_lock(std::string const& path)
      : descriptor_{path.empty() ? -1 : uninterrupted([&] {
          return ::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, new_file_mode);
        })} {
    using clock = std::chrono::steady_clock;
    auto const end = clock::now() + patience;
    while (descriptor_ >= 0 && flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EINTR && (errno != EWOULDBLOCK || clock::now() > end)) {
        others_ = errno == EWOULDBLOCK;
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
  }
  file_lock(file_lock const&) = delete;
  file_lock& operator=(file_lock const&) = delete;
  ~file_lock() {
    if (descriptor_ >= 0) {
      close(descriptor_);
    }
  }

  /// Did another process hold the lock for longer than any measurement takes?
  [[nodiscard]] bool of_another() const noexcept { return others_; }

private:
  static constexpr std::chrono::seconds patience{10};

  int descriptor_;
  bool others_ = false;
};

}  // namespace detail

SUPEROFFLOAD_INLINE tuning::tuning(std::string path) : path_{std::move(path)} {}

SUPEROFFLOAD_INLINE std::string tuning::default_path() {
  if (auto const* const path = std::getenv("SUPEROFFLOAD_TUNING")) {
    return path;
  }
  std::string_view const rest = "superoffload/products.txt";
  if (auto const* const cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    return concat(std::string_view{cache}, "/", rest);
  }
  if (auto const* const home = std::getenv("HOME"); home != nullptr && *home == '/') {
    return concat(std::string_view{home}, "/.cache/", rest);
  }
  return "";
}

SUPEROFFLOAD_INLINE void tuning::warn(std::string_view reason) {
  log(log_level::warning, printable(path_), ": ", reason, "; choices of this run are not kept there");
  path_.clear();
}

SUPEROFFLOAD_INLINE std::string tuning::text_of(table const& choices) {
  auto text = concat(detail::title, "\n");
  for (auto const& [key, algorithm] : choices) {
    std::string line;
    for (auto const number : algorithm) { line += detail::hex(number); }
    line += ' ';
    line += key;
    text += concat(detail::hex(detail::checksum(line)), " ", line, "\n");
  }
  return text;
}

SUPEROFFLOAD_INLINE tuning::table tuning::table_of(std::string_view text, std::string_view source) {
  constexpr std::size_t digits = 16;
  constexpr std::size_t key_at = digits + 1 + digits * algorithm{}.size() + 1;
  auto const refuse = [&](std::size_t line, std::string_view expected) {
    fail(exit_code::bad_input, source, ", line ", line, ": expected ", expected,
         ", in a file of GEMM algorithms that this library wrote; delete it to have them measured again");
  };
  table choices;
  std::size_t line_number = 0;
  while (!text.empty()) {
    ++line_number;
    auto const end = text.find('\n');
    auto const line = text.substr(0, end);
    if (line_number == 1 && line != detail::title) {
      refuse(1, concat("\"", detail::title, "\""));
    }
    if (end == std::string_view::npos) {
      refuse(line_number, "an end of the line");
    }
    text.remove_prefix(end + 1);
    if (line_number == 1) {
      continue;
    }
    if (line.size() <= key_at || line[digits] != ' ' ||
        detail::number_of(line.substr(0, digits)) != detail::checksum(line.substr(digits + 1))) {
      refuse(line_number, "a checksum and the line that it belongs to");
    }
    algorithm numbers{};
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      auto const number = detail::number_of(line.substr(digits + 1 + i * digits, digits));
      if (!number) {
        refuse(line_number, "hexadecimal digits");
      }
      numbers[i] = *number;
    }
    choices.insert_or_assign(std::string{line.substr(key_at)}, numbers);
  }
  if (line_number == 0) {
    refuse(1, concat("\"", detail::title, "\""));
  }
  return choices;
}

SUPEROFFLOAD_INLINE void tuning::read_file() {
  std::error_code none;
  auto const size = std::filesystem::file_size(path_, none);
  if (none) {
    return;
  }
  if (!std::filesystem::is_regular_file(path_, none) || size > detail::file_limit) {
    warn("expected a file of GEMM algorithms");
    return;
  }
  auto const text = first_bytes_of(path_, static_cast<std::size_t>(size));
  if (!text) {
    warn("cannot be read");
    return;
  }
  try {
    auto kept = table_of(*text, printable(path_));
    choices_.merge(kept);  // choices that exist already, as from a checkpoint, stay
  } catch (error const& e) {
    log(log_level::warning, e.what(), "; choices of this run are not kept there");
    path_.clear();
  }
}

SUPEROFFLOAD_INLINE void tuning::write_file() {
  auto const part = concat(path_, ".", static_cast<long long>(getpid()), ".part");
  auto const text = text_of(choices_);
  auto const written = [&] {
    std::remove(part.c_str());  // of a process of that number that was killed
    int const file = uninterrupted([&] {
      return ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, new_file_mode);
    });
    if (file < 0) {
      return false;
    }
    std::string_view rest{text};
    ssize_t put = 1;
    while (!rest.empty() && put > 0) {
      put = uninterrupted([&] { return ::write(file, rest.data(), rest.size()); });
      rest.remove_prefix(put > 0 ? static_cast<std::size_t>(put) : 0);
    }
    bool const complete = rest.empty() && uninterrupted([&] { return ::fsync(file); }) == 0;
    int const reason = errno;
    bool const closed = ::close(file) == 0;
    if (!complete) {
      errno = reason;
    }
    return closed && complete;
  };
  if (!written() || std::rename(part.c_str(), path_.c_str()) != 0) {
    auto const reason = concat("cannot be written: ", std::strerror(errno));
    std::remove(part.c_str());
    warn(reason);
  }
}

SUPEROFFLOAD_INLINE std::optional<tuning::algorithm> tuning::choose(
    kind const& of, std::function<bool(algorithm const&)> const& valid,
    std::function<std::optional<algorithm>()> const& measure) {
  auto const prefix = concat(of.processor, ", ", of.family, detail::separator);
  auto const key = concat(prefix, of.tokens);
  std::lock_guard const guard{mutex_};
  auto const kept = [&]() -> std::optional<algorithm> {
    auto const found = choices_.find(key);
    return found != choices_.end() && valid(found->second) ? std::optional{found->second} : std::nullopt;
  };
  if (auto const choice = kept()) {
    return choice;
  }
  auto const borrowed = [&] {
    auto const neighbour = nearest(prefix, of.tokens, valid);
    if (neighbour) {
      choices_.insert_or_assign(key, *neighbour);
    }
    return neighbour;
  };
  if (settled_ || full(prefix)) {
    return borrowed();  // even if the file has more choices now: a resumed run must repeat the first one
  }
  if (!path_.empty()) {
    detail::make_directories(std::filesystem::path{path_}.parent_path());
  }
  detail::file_lock const lock{path_};  // the second process finds the first one's choice
  if (!path_.empty()) {
    read_file();
  }
  if (lock.of_another()) {
    warn("another process keeps its lock");
  }
  if (auto const choice = kept()) {
    return choice;
  }
  if (full(prefix)) {
    return borrowed();
  }
  note_foreign(of.processor);
  auto const choice = measure();
  if (choice) {
    choices_.insert_or_assign(key, *choice);
    if (!path_.empty()) {
      write_file();
    }
  }
  return choice;
}

SUPEROFFLOAD_INLINE void tuning::settle(bool settled) {
  std::lock_guard const guard{mutex_};
  settled_ = settled;
}

/// Of two that are equally near, the smaller.
SUPEROFFLOAD_INLINE std::optional<tuning::algorithm> tuning::nearest(
    std::string const& family_prefix, std::string_view tokens,
    std::function<bool(algorithm const&)> const& valid) const {
  auto const number_of = [](std::string_view text) {
    std::int64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  };
  auto const wanted = number_of(tokens);
  std::optional<algorithm> best;
  std::pair<std::int64_t, std::int64_t> closest;
  for (auto at = choices_.lower_bound(family_prefix);
       at != choices_.end() && at->first.starts_with(family_prefix); ++at) {
    auto const number = number_of(std::string_view{at->first}.substr(family_prefix.size()));
    std::pair const distance{std::abs(number - wanted), number};
    if ((!best || distance < closest) && valid(at->second)) {
      best = at->second;
      closest = distance;
    }
  }
  return best;
}

SUPEROFFLOAD_INLINE bool tuning::full(std::string_view family_prefix) const {
  std::size_t members = 0;
  for (auto at = choices_.lower_bound(family_prefix);
       at != choices_.end() && at->first.starts_with(family_prefix); ++at) {
    ++members;
  }
  return members >= family_limit;
}

SUPEROFFLOAD_INLINE void tuning::note_foreign(std::string_view processor) {
  auto const prefix = concat(processor, ", ");
  auto const found = loaded_.lower_bound(prefix);
  if (!loaded_.empty() && (found == loaded_.end() || !found->first.starts_with(prefix))) {
    log(log_level::note, loaded_from_, ": chosen on another GPU or library; GEMMs are measured anew on ",
        printable(processor), ", and results may differ in their last bits");
  }
  loaded_.clear();
}

SUPEROFFLOAD_INLINE std::string tuning::save() const {
  std::lock_guard const guard{mutex_};
  return text_of(choices_);
}

SUPEROFFLOAD_INLINE void tuning::load(std::string_view text, std::string_view source) {
  auto loaded = table_of(text, source);
  std::lock_guard const guard{mutex_};
  loaded_ = loaded;
  loaded_from_ = source;
  auto const family_of = [](std::string_view key) { return key.substr(0, key.rfind(detail::separator) + 1); };
  std::erase_if(choices_, [&](auto const& own) {
    auto const family = family_of(own.first);
    auto const found = loaded.lower_bound(family);
    return found != loaded.end() && found->first.starts_with(family);
  });
  loaded.merge(choices_);
  choices_ = std::move(loaded);
}

}  // namespace superoffload::cuda
