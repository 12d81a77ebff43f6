// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "faults/io_trace.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace superoffload::test {

/// What a disk may hold after a power loss, for a program whose calls were recorded. POSIX promises no more
/// than this: data of a file last when the file has been synced, names in a directory when the directory has
/// been. Whatever was not synced may be there or not, each change by itself and whatever came later: writes
/// in full, in part, or as zeros; names made, renamed and removed. A rename is atomic. So this is worse than
/// any one file system.
class crash_disk {
public:
  /// The directory of the recorded calls. What is in `begin` is there from the beginning, and lasts.
  crash_disk(std::filesystem::path const& root, std::filesystem::path const& begin) : root_{root.string()} {
    root_node_ = read(begin);
  }

  /// The next recorded call.
  void add(io_event const& event) {
    switch (event.what) {
      case io_call::open:
        open(event);
        break;
      case io_call::write:
        file(event).changes.push_back(
            {change::kind::bytes, event.offset, event.data.size(), event.data, numbers_++});
        break;
      case io_call::preallocate:
        file(event).changes.push_back({change::kind::reserved, 0, event.size, {}, numbers_++});
        break;
      case io_call::truncate:
        file(event).changes.push_back({change::kind::length, 0, event.size, {}, numbers_++});
        break;
      case io_call::sync:
        sync(*open_.at(event.file));
        break;
      case io_call::make_directory:
        make(event.path, true);
        break;
      case io_call::rename:
      case io_call::exchange:
        rename(event);
        break;
      case io_call::remove:
        directory_of(event.path).names.push_back({{{base(event.path), nullptr}}, numbers_++});
        break;
      case io_call::read:
      case io_call::close:
      case io_call::list:
      case io_call::say:
        break;
    }
  }

  /// Does the pending change of this number survive?
  using keeps = std::function<bool(std::size_t number)>;

  /// The files of a state, by their names below the root; directories have no content and end with a slash.
  using tree = std::map<std::string, std::shared_ptr<std::string const>>;

  /// Everything that the program has done.
  [[nodiscard]] tree now() const {
    return state([](std::size_t) { return true; }, nullptr);
  }
  /// A state with the pending changes that `kept` chooses. `random`: a write that is kept may be torn; null:
  /// it is whole.
  [[nodiscard]] tree state(keeps const& kept, std::mt19937* random) const {
    tree all;
    collect(*root_node_, "", kept, random, all, 0);
    return all;
  }
  /// The numbers of the pending changes, each of which may be lost.
  [[nodiscard]] std::vector<std::size_t> pending() const {
    std::vector<std::size_t> numbers;
    for (auto const& known : nodes_) {
      for (auto const& changed : known->changes) { numbers.push_back(changed.number); }
      for (auto const& renamed : known->names) {
        if (!renamed.lasts) {
          numbers.push_back(renamed.number);
        }
      }
    }
    std::sort(numbers.begin(), numbers.end());
    return numbers;
  }

private:
  struct change {
    enum class kind { bytes, reserved, length } what;
    std::uint64_t offset;
    std::uint64_t size;
    std::string data;
    std::size_t number = 0;
  };
  struct node;
  /// Names that change at once; null: the name is removed.
  struct renaming {
    std::vector<std::pair<std::string, std::shared_ptr<node>>> names;
    std::size_t number = 0;
    bool lasts = false;
  };
  struct node {
    bool is_directory = false;
    std::vector<change> changes;  // of a file
    std::vector<renaming> names;  // of a directory
    std::shared_ptr<std::string const> synced = std::make_shared<std::string const>();
  };

  static std::string base(std::string const& path) { return path.substr(path.rfind('/') + 1); }

  std::shared_ptr<node> read(std::filesystem::path const& from) {
    auto made = nodes_.emplace_back(std::make_shared<node>());
    if (std::filesystem::is_directory(from)) {
      made->is_directory = true;
      for (auto const& entry : std::filesystem::directory_iterator{from}) {
        made->names.push_back({{{entry.path().filename().string(), read(entry.path())}}, 0, true});
      }
    } else {
      std::ifstream stream{from, std::ios::binary};
      made->synced = std::make_shared<std::string const>(std::istreambuf_iterator<char>{stream},
                                                         std::istreambuf_iterator<char>{});
    }
    return made;
  }

  /// What the program sees under this path.
  [[nodiscard]] std::shared_ptr<node> find(std::string const& path) const {
    if (!path.starts_with(root_)) {
      throw std::runtime_error{path + " is not below " + root_};
    }
    auto here = root_node_;
    for (std::size_t begin = root_.size() + 1; begin < path.size() && here;) {
      auto const end = std::min(path.find('/', begin), path.size());
      auto const name = path.substr(begin, end - begin);
      std::shared_ptr<node> next;
      for (auto const& renamed : here->names) {
        for (auto const& [changed, to] : renamed.names) {
          if (changed == name) {
            next = to;
          }
        }
      }
      here = next;
      begin = end + 1;
    }
    return here;
  }
  [[nodiscard]] node& directory_of(std::string const& path) const {
    auto const found = find(path.substr(0, path.rfind('/')));
    if (!found) {
      throw std::runtime_error{"there is no directory of " + path};
    }
    return *found;
  }
  node& file(io_event const& event) { return *open_.at(event.file); }

  std::shared_ptr<node> make(std::string const& path, bool is_directory) {
    auto made = nodes_.emplace_back(std::make_shared<node>());
    made->is_directory = is_directory;
    directory_of(path).names.push_back({{{base(path), made}}, numbers_++});
    return made;
  }
  void open(io_event const& event) {
    constexpr std::uint64_t made = 1, emptied = 2;
    auto found = event.size == made ? make(event.path, false) : find(event.path);
    if (!found) {
      throw std::runtime_error{event.path + " was opened, but not made"};
    }
    if (event.size == emptied) {
      found->changes.push_back({change::kind::length, 0, 0, {}, numbers_++});
    }
    open_[event.file] = found;
  }
  void rename(io_event const& event) {
    auto const from = find(event.path), to = find(event.to);
    auto& directory = directory_of(event.to);
    if (&directory != &directory_of(event.path)) {
      throw std::runtime_error{"renamed to another directory: " + event.path};
    }
    directory.names.push_back(
        {{{base(event.path), event.what == io_call::exchange ? to : nullptr}, {base(event.to), from}},
         numbers_++});
  }

  static void sync(node& synced) {
    for (auto& renamed : synced.names) { renamed.lasts = true; }
    if (!synced.changes.empty()) {
      synced.synced =
          std::make_shared<std::string const>(content(synced, [](std::size_t) { return true; }, nullptr));
      synced.changes.clear();
    }
  }

  static std::string content(node const& of, keeps const& kept, std::mt19937* random) {
    std::string text = *of.synced;
    auto const some = [&](std::uint64_t most) {
      return std::uniform_int_distribution<std::uint64_t>{0, most}(*random);
    };
    for (auto const& changed : of.changes) {
      if (!kept(changed.number)) {
        continue;
      }
      if (changed.what == change::kind::length) {
        text.resize(changed.size);
        continue;
      }
      text.resize(std::max<std::size_t>(text.size(), changed.offset + changed.size));
      auto bytes = changed.data;
      // Torn: a disk writes blocks of 512 or of 4096 bytes, in any order.
      if (random != nullptr && some(3) == 0) {
        std::uint64_t const block = some(1) == 0 ? 512 : 4096;
        for (std::uint64_t begin = 0; begin < bytes.size(); begin += block) {
          if (some(1) == 0) {
            auto const end = std::min<std::uint64_t>(begin + block, bytes.size());
            std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                      bytes.begin() + static_cast<std::ptrdiff_t>(end), '\0');
          }
        }
      }
      if (!bytes.empty()) {
        text.replace(changed.offset, bytes.size(), bytes);
      }
    }
    return text;
  }

  void collect(node const& directory, std::string const& path, keeps const& kept, std::mt19937* random,
               tree& all, int depth) const {
    if (depth > 8) {
      return;  // two kept names may lead to one directory, but never in a circle
    }
    std::map<std::string, std::shared_ptr<node>> names;
    for (auto const& renamed : directory.names) {
      if (renamed.lasts || kept(renamed.number)) {
        for (auto const& [name, to] : renamed.names) { names[name] = to; }
      }
    }
    for (auto const& [name, to] : names) {
      if (!to) {
        continue;
      }
      if (to->is_directory) {
        all[path + name + "/"] = nullptr;
        collect(*to, path + name + "/", kept, random, all, depth + 1);
      } else {
        all[path + name] = to->changes.empty()
                               ? to->synced
                               : std::make_shared<std::string const>(content(*to, kept, random));
      }
    }
  }

  std::string root_;
  std::shared_ptr<node> root_node_;
  std::map<std::uint64_t, std::shared_ptr<node>> open_;
  std::vector<std::shared_ptr<node>> nodes_;
  std::size_t numbers_ = 0;
};

/// Calls visit(tree) with states that a power loss may leave now: all of them where at most `all_of` changes
/// are pending, else those without any, with all, with all but one and with one alone; and `some` others.
template <class Visit>
void for_each_crash_state(crash_disk const& disk, std::mt19937& random, std::size_t all_of, std::size_t some,
                          Visit visit) {
  auto const pending = disk.pending();
  auto const index = [&](std::size_t number) {
    return static_cast<std::size_t>(std::lower_bound(pending.begin(), pending.end(), number) -
                                    pending.begin());
  };
  if (pending.size() <= all_of) {
    for (std::uint64_t mask = 0; mask < (std::uint64_t{1} << pending.size()); ++mask) {
      visit(disk.state([&](std::size_t number) { return (mask >> index(number) & 1U) != 0; }, nullptr));
    }
  } else {
    for (bool const rest : {false, true}) {
      for (std::size_t other = 0; other <= pending.size(); ++other) {
        visit(disk.state([&](std::size_t number) { return (index(number) == other) != rest; }, nullptr));
      }
    }
  }
  for (std::size_t i = 0; i < some && !pending.empty(); ++i) {
    std::bernoulli_distribution likely{std::uniform_real_distribution<>{0, 1}(random)};
    visit(disk.state([&](std::size_t) { return likely(random); }, &random));
  }
}

/// Writes the files of states. Contents that many states have are links to one file of `store`.
class materializer {
public:
  explicit materializer(std::filesystem::path store) : store_{std::move(store)} {
    std::filesystem::create_directories(store_);
  }

  /// Below `to`, which must not exist. The files must not be written to.
  void links(crash_disk::tree const& files, std::filesystem::path const& to) {
    make(files, to, [&](auto const& path, auto const& content) {
      if (content.use_count() == 1) {  // of this state alone
        write(path, *content);
        return;
      }
      auto const [found, is_new] = stored_.try_emplace(content, stored_.size());
      auto const kept = store_ / std::to_string(found->second);
      if (is_new) {
        write(kept, *content);
      }
      std::filesystem::create_hard_link(kept, path);
    });
  }
  static void copies(crash_disk::tree const& files, std::filesystem::path const& to) {
    make(files, to, [&](auto const& path, auto const& content) { write(path, *content); });
  }

private:
  template <class Write>
  static void make(crash_disk::tree const& files, std::filesystem::path const& to, Write write) {
    std::filesystem::create_directories(to);
    for (auto const& [name, content] : files) {
      if (content == nullptr) {
        std::filesystem::create_directory(to / name);
      } else {
        write(to / name, content);
      }
    }
  }
  static void write(std::filesystem::path const& path, std::string const& content) {
    std::ofstream{path, std::ios::binary} << content;
  }

  std::filesystem::path store_;
  std::map<std::shared_ptr<std::string const>, std::size_t> stored_;
};

/// Tells states apart.
class state_set {
public:
  /// \returns whether it is a new one.
  bool insert(crash_disk::tree const& files) {
    std::size_t whole = 0;
    for (auto const& [name, content] : files) {
      auto const of_name = std::hash<std::string>{}(name);
      whole = 31 * (31 * whole + of_name) + (content == nullptr ? 7 : of_content(content));
    }
    return seen_.insert(whole).second;
  }
  [[nodiscard]] std::size_t size() const { return seen_.size(); }

private:
  std::size_t of_content(std::shared_ptr<std::string const> const& content) {
    if (content.use_count() == 1) {
      return std::hash<std::string>{}(*content);
    }
    auto const [found, is_new] = contents_.try_emplace(content, 0);
    if (is_new) {
      found->second = std::hash<std::string>{}(*content);
    }
    return found->second;
  }

  std::set<std::size_t> seen_;
  std::map<std::shared_ptr<std::string const>, std::size_t> contents_;
};

}  // namespace superoffload::test
