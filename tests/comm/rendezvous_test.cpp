// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// What else may come to the socket where ranks meet.
#include <superoffload/comm/environment.hpp>
#include <superoffload/comm/rendezvous.hpp>
#include <superoffload/core/error.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <future>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace superoffload;
using namespace std::chrono_literals;

constexpr uid_t another_user = 65534;

comm::environment rank_of(int rank, std::string const& job) {
  return {.rank = rank, .ranks = 2, .local_rank = rank, .local_ranks = 2, .launcher = "a test", .job = job};
}
std::string job_named(std::string const& name) { return "test " + std::to_string(::getpid()) + " " + name; }

struct address {
  sockaddr_un of{};
  socklen_t size = 0;
};
/// As in comm/impl/rendezvous_inl.hpp.
address address_of(std::string const& job, uid_t user) {
  address a;
  a.of.sun_family = AF_UNIX;
  auto const text = concat("superoffload/", user, "/", job);
  std::memcpy(a.of.sun_path + 1, text.data(), text.size());
  a.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return a;
}

/// Connects as soon as rank 0 listens.
int connected_to(std::string const& job, uid_t user) {
  auto const to = address_of(job, user);
  for (int attempt = 0; attempt < 1000; ++attempt) {
    int const own = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (::connect(own, reinterpret_cast<sockaddr const*>(&to.of), to.size) == 0) {
      return own;
    }
    ::close(own);
    std::this_thread::sleep_for(5ms);
  }
  return -1;
}

/// A message with which a rank greets, as the library sends it, and what follows.
std::string greeting_of(std::int32_t rank, std::int32_t ranks, std::size_t more = 0) {
  std::uint32_t const magic = 0x31726f73;
  std::string text(12 + more, '\0');
  std::memcpy(text.data(), &magic, 4);
  std::memcpy(text.data() + 4, &rank, 4);
  std::memcpy(text.data() + 8, &ranks, 4);
  return text;
}

/// What a rank says; empty: it has met the others.
std::future<std::string> rank(int number, std::string const& job,
                              std::chrono::milliseconds patience = 20'000ms) {
  return std::async(std::launch::async, [=]() -> std::string {
    try {
      auto const shared = comm::rendezvous(rank_of(number, job), {.patience = patience});
      return shared.ranks() == 2 ? "" : "other ranks";
    } catch (error const& e) { return e.what(); }
  });
}

/// Does the peer answer with a descriptor? It must not.
bool gets_descriptor(int from) {
  std::array<char, 512> text{};
  iovec content{text.data(), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  return ::recvmsg(from, &message, MSG_CMSG_CLOEXEC) > 0 && CMSG_FIRSTHDR(&message) != nullptr;
}

/// How a process of another user ends in which `body` runs.
int as_another_user(std::function<bool()> const& body) {
  auto const child = ::fork();
  if (child == 0) {
    bool const changed = ::setgid(another_user) == 0 && ::setuid(another_user) == 0;
    ::_exit(changed && body() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

TEST_CASE(
    "a message that is no greeting, too short or too large gets no answer, and ranks meet nevertheless") {
  auto const job = job_named("messages");
  auto first = rank(0, job);
  std::vector<int> strangers;
  auto wrong = greeting_of(1, 2);
  wrong[0] = 'x';
  for (auto const& message : {std::string{"x"}, greeting_of(1, 2).substr(0, 11), greeting_of(1, 2, 1),
                              greeting_of(1, 2, 100'000), wrong}) {
    int const own = connected_to(job, ::getuid());
    REQUIRE(own >= 0);
    REQUIRE(::send(own, message.data(), message.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(message.size()));
    strangers.push_back(own);
  }
  auto second = rank(1, job);
  CHECK(first.get() == "");
  CHECK(second.get() == "");
  for (int const own : strangers) {
    CHECK_FALSE(gets_descriptor(own));
    ::close(own);
  }
}

TEST_CASE("a connection that says nothing, or ends, delays the ranks by seconds and no more") {
  auto const job = job_named("silence");
  auto first = rank(0, job);
  int const silent = connected_to(job, ::getuid());
  REQUIRE(silent >= 0);
  int const ended = connected_to(job, ::getuid());
  REQUIRE(ended >= 0);
  ::close(ended);
  auto second = rank(1, job);
  CHECK(first.get() == "");
  CHECK(second.get() == "");
  CHECK_FALSE(gets_descriptor(silent));
  ::close(silent);
}

TEST_CASE("a process of another user gets no answer, and cannot be rank 0") {
  if (::geteuid() != 0) {
    MESSAGE("not tested: only root can become another user");
    return;
  }
  auto const job = job_named("stranger");
  auto first = rank(0, job);
  CHECK(as_another_user([&] {
          int const own = connected_to(job, 0);
          auto const message = greeting_of(1, 2);
          // It may have been hung up on already.
          (void)!::send(own, message.data(), message.size(), MSG_NOSIGNAL);
          return own >= 0 && !gets_descriptor(own);
        }) == 0);
  auto second = rank(1, job);
  CHECK(first.get() == "");
  CHECK(second.get() == "");

  auto const taken = job_named("taken");
  std::string said;
  CHECK(as_another_user([&] {
          auto const at = address_of(taken, 0);
          int const own = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
          if (::bind(own, reinterpret_cast<sockaddr const*>(&at.of), at.size) != 0 || ::listen(own, 4) != 0) {
            return false;
          }
          auto const child = ::fork();
          if (child == 0) {
            ::sleep(5);  // holds the name
            ::_exit(0);
          }
          return child > 0;
        }) == 0);
  CHECK(rank(1, taken, 2000ms).get().find("another user holds the socket") != std::string::npos);
}

}  // namespace
