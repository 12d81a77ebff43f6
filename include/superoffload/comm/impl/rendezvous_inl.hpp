// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/rendezvous.hpp>
#include <superoffload/core/descriptor.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/core/system_call.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace superoffload::comm {
namespace detail {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// What a rank sends when it connects.
struct greeting {
  static constexpr std::uint32_t expected_magic = 0x31726f73;  // change it with the layout
  std::uint32_t magic = expected_magic;
  std::int32_t rank = 0;
  std::int32_t ranks = 0;
};

struct name {
  sockaddr_un address{};
  socklen_t size = 0;
};
/// The name of an abstract socket, which vanishes with the socket.
SUPEROFFLOAD_INLINE name name_of(environment const& run) {
  name n;
  n.address.sun_family = AF_UNIX;
  auto const text = concat("superoffload/", ::getuid(), "/", run.job);
  auto const length = std::min(text.size(), sizeof n.address.sun_path - 1);
  std::memcpy(n.address.sun_path + 1, text.data(), length);
  n.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return n;
}

SUPEROFFLOAD_INLINE descriptor new_socket() {
  descriptor made{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
  expect_call(made.get() >= 0, exit_code::io_failure, "no socket for the ranks' rendezvous");
  return made;
}

/// Whether there is something to read or a connection to accept before `end`.
SUPEROFFLOAD_INLINE bool comes(int fd, clock::time_point end) {
  while (true) {
    auto const left = std::chrono::duration_cast<milliseconds>(end - clock::now()).count();
    pollfd about{.fd = fd, .events = POLLIN, .revents = 0};
    int const ready = ::poll(&about, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 60000)));
    if (ready > 0) {
      return true;
    }
    if (left <= 0 || (ready < 0 && errno != EINTR)) {
      return false;
    }
  }
}

SUPEROFFLOAD_INLINE bool is_of_this_user(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::getuid();
}

/// Sends one message: a text, empty for agreement, and a descriptor where fd is not negative.
SUPEROFFLOAD_INLINE void send_answer(int to, std::string text, int fd) {
  char none = 0;
  iovec content{text.empty() ? &none : text.data(), text.empty() ? 1 : text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    auto* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
  }
  // If the rank has ended, the group notices later.
  uninterrupted([&] { return ::sendmsg(to, &message, MSG_NOSIGNAL); });
}

/// Receives the descriptor of an answer; throws the answer's text if it has one.
SUPEROFFLOAD_INLINE int receive_answer(int from) {
  char text[512] = {};
  iovec content{text, sizeof text - 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  auto const got = uninterrupted([&] { return ::recvmsg(from, &message, MSG_CMSG_CLOEXEC); });
  expect(got > 0, exit_code::rank_failed, "rank 0 ended during the ranks' rendezvous");
  auto const* const head = CMSG_FIRSTHDR(&message);
  if (head == nullptr || head->cmsg_type != SCM_RIGHTS) {
    fail(exit_code::bad_input, printable(text, sizeof text));
  }
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(head), sizeof fd);
  return fd;
}

SUPEROFFLOAD_INLINE shared_segment host_rendezvous(environment const& run,
                                                   shared_segment::settings const& with) {
  auto const listening = new_socket();
  auto const n = name_of(run);
  bool const listens = ::bind(listening.get(), reinterpret_cast<sockaddr const*>(&n.address), n.size) == 0 &&
                       ::listen(listening.get(), run.ranks) == 0;
  int const reason = listens ? 0 : errno;
  expect(listens, exit_code::bad_input, "the ranks of '", printable(run.job),
         "' cannot find each other: ", std::strerror(reason),
         reason == EADDRINUSE ? "; another run of that name is starting on this host" : "");
  shared_segment shared{with};
  auto const patience = std::min(with.patience, with.gathering);
  auto const end = clock::now() + patience;
  std::vector<descriptor> came;
  std::vector<bool> here(static_cast<std::size_t>(run.ranks));
  here[0] = true;
  std::string refusal;
  for (int missing = run.ranks - 1; missing > 0 && refusal.empty();) {
    if (!comes(listening.get(), end)) {
      auto const absent = std::find(here.begin(), here.end(), false) - here.begin();
      refusal = concat("rank ", absent, " of ", run.ranks, " did not come within ", patience.count(),
                       " ms to where rank 0 waits for it");
      break;
    }
    descriptor peer{
        uninterrupted([&] { return ::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC); })};
    greeting hello{};
    if (peer.get() < 0 || !is_of_this_user(peer.get()) ||
        !comes(peer.get(), std::min(end, clock::now() + std::chrono::seconds{5})) ||
        uninterrupted([&] { return ::recv(peer.get(), &hello, sizeof hello, MSG_TRUNC); }) != sizeof hello ||
        hello.magic != greeting::expected_magic) {
      continue;  // not a rank of this version
    }
    if (hello.ranks != run.ranks) {
      refusal = concat("rank ", hello.rank, " was told of ", hello.ranks, " ranks and rank 0 of ", run.ranks,
                       ": expected the same number");
    } else if (hello.rank < 1 || hello.rank >= run.ranks || here[static_cast<std::size_t>(hello.rank)]) {
      refusal = concat("two processes say that they are rank ", hello.rank, " of ", run.ranks);
    } else {
      here[static_cast<std::size_t>(hello.rank)] = true;
      --missing;
    }
    came.push_back(std::move(peer));
  }
  for (auto const& peer : came) {
    send_answer(peer.get(), refusal, refusal.empty() ? shared.descriptor() : -1);
  }
  expect(refusal.empty(),
         refusal.find("did not come") != std::string::npos ? exit_code::rank_failed : exit_code::bad_input,
         refusal);
  return shared;
}

SUPEROFFLOAD_INLINE shared_segment join_rendezvous(environment const& run,
                                                   shared_segment::settings const& with) {
  auto const n = name_of(run);
  auto const patience = std::min(with.patience, with.gathering);
  auto const end = clock::now() + patience;
  while (true) {
    auto const own = new_socket();
    int const connected = uninterrupted(
        [&] { return ::connect(own.get(), reinterpret_cast<sockaddr const*>(&n.address), n.size); });
    int const reason = errno;
    if (connected == 0) {
      expect(is_of_this_user(own.get()), exit_code::bad_input,
             "another user holds the socket of the ranks of '", printable(run.job), "'");
      greeting const hello{.rank = run.rank, .ranks = run.ranks};
      uninterrupted([&] { return ::send(own.get(), &hello, sizeof hello, MSG_NOSIGNAL); });
      expect(comes(own.get(), end + std::chrono::seconds{1}), exit_code::rank_failed,
             "rank 0 did not gather the ranks of '", printable(run.job), "' within ", patience.count(),
             " ms");
      return shared_segment::attach(receive_answer(own.get()));
    }
    expect(clock::now() < end, exit_code::rank_failed, "rank 0 of '", printable(run.job),
           "' did not come within ", patience.count(), " ms to where rank ", run.rank,
           " waits for it: ", std::strerror(reason));
    std::this_thread::sleep_for(milliseconds{20});
  }
}

}  // namespace detail

SUPEROFFLOAD_INLINE shared_segment rendezvous(environment const& run, shared_segment::settings with) {
  with.ranks = run.ranks;
  if (run.shared_segment >= 0) {
    auto shared = shared_segment::attach(run.shared_segment);
    expect(shared.ranks() == run.ranks, exit_code::bad_input, "WORLD_SIZE says ", run.ranks,
           " ranks, and the launcher's shared memory is for ", shared.ranks());
    return shared;
  }
  expect(run.local_ranks == run.ranks, exit_code::bad_input, run.local_ranks, " of ", run.ranks,
         " ranks are of this host (", run.launcher, " says): ranks that share memory must all be");
  if (run.ranks == 1) {
    return shared_segment{with};
  }
  expect(
      !run.job.empty(), exit_code::bad_input, run.launcher,
      " does not say what the ranks of this run have in common: set SUPEROFFLOAD_JOB to a name of its own");
  return run.rank == 0 ? detail::host_rendezvous(run, with) : detail::join_rendezvous(run, with);
}

}  // namespace superoffload::comm
