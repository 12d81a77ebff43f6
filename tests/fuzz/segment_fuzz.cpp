// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/comm/shared_segment.hpp>

#include "fuzz.hpp"

#include <algorithm>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace superoffload;

namespace {

/// The memory of two ranks.
std::string two_ranks() {
  comm::shared_segment const made{{.ranks = 2, .piece_bytes = 4096}};
  std::string bytes(static_cast<std::size_t>(::lseek(made.descriptor(), 0, SEEK_END)), '\0');
  fuzz::require(
      ::pread(made.descriptor(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
      "it is read");
  return bytes;
}

}  // namespace

/// What a process gets from another one as the memory of its ranks. The input is written over the beginning
/// of what is valid; its first two bytes say how much shorter that is.
int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static auto const valid = two_ranks();
  auto changed = valid;
  if (size >= 2) {
    changed.resize(changed.size() - std::min<std::size_t>(changed.size(), data[0] + 256UL * data[1]));
    std::copy_n(data + 2, std::min(size - 2, changed.size()), changed.begin());
  }
  int const descriptor = ::memfd_create("input", MFD_CLOEXEC);
  fuzz::require(::write(descriptor, changed.data(), changed.size()) == static_cast<ssize_t>(changed.size()),
                "it is written");
  fuzz::expect_refusal_at_most([&] {
    auto const shared = comm::shared_segment::attach(descriptor);
    fuzz::require(shared.ranks() >= 1 && shared.ranks() <= comm::shared_segment::most_ranks,
                  "a segment has a possible number of ranks");
  });
  if (::fcntl(descriptor, F_GETFD) != -1) {  // a segment closes it
    ::close(descriptor);
  }
  return 0;
}
