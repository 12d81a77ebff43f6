// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/policy.hpp>
#include <superoffload/core/profile.hpp>

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace superoffload::test {

/// Records the names of ranges, indented by two spaces for each enclosing range.
class recording_listener final : public profile::listener {
public:
  void begin(std::string_view what, std::string_view of) noexcept override {
    std::lock_guard const lock{mutex_};
    auto& t = threads_[std::this_thread::get_id()];
    t.names.push_back(std::string(2 * static_cast<std::size_t>(t.depth++), ' ').append(what).append(of));
  }
  void end() noexcept override {
    std::lock_guard const lock{mutex_};
    balanced_ = --threads_[std::this_thread::get_id()].depth >= 0 && balanced_;
  }

  [[nodiscard]] std::vector<std::string> of_this_thread() const { return names(true); }
  [[nodiscard]] std::vector<std::string> of_others() const { return names(false); }
  /// Did every range end exactly once?
  [[nodiscard]] bool balanced() const {
    std::lock_guard const lock{mutex_};
    bool all = balanced_;
    for (auto const& [id, t] : threads_) { all = all && t.depth == 0; }
    return all;
  }

private:
  struct thread {
    std::vector<std::string> names;
    int depth = 0;
  };

  [[nodiscard]] std::vector<std::string> names(bool own) const {
    std::lock_guard const lock{mutex_};
    std::vector<std::string> found;
    for (auto const& [id, t] : threads_) {
      if ((id == std::this_thread::get_id()) == own) {
        found.insert(found.end(), t.names.begin(), t.names.end());
      }
    }
    return found;
  }

  mutable std::mutex mutex_;
  std::map<std::thread::id, thread> threads_;
  bool balanced_ = true;
};

/// The profile policy of an engine with this listener.
struct recorded {
  using policy_category = category::profile;
  static inline recording_listener* heard = nullptr;
  struct session {
    session() { profile::listen(heard); }
    session(session const&) = delete;
    session& operator=(session const&) = delete;
    ~session() { profile::listen(nullptr); }
  };
};

}  // namespace superoffload::test
