// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/communicator.hpp>
#include <superoffload/comm/shared_segment.hpp>
#include <superoffload/comm/sum.hpp>
#include <superoffload/core/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace superoffload::comm {

/// A device whose memory is host memory: its streams run any function.
template <class D>
concept host_device = device_policy<D> && requires(typename D::stream& stream) { stream.enqueue([] {}); };

/// Ranks whose devices compute in host memory. An operation occupies its stream's thread until all ranks have
/// come; data goes through the group's membership piece by piece, whatever its size. Each rank computes the
/// sums that it needs.
template <host_device D>
class shared_communicator {
public:
  using stream = typename D::stream;  ///< whose thread waits for the other ranks

  /// Becomes rank `rank` of the segment, which outlives this.
  shared_communicator(shared_segment& shared, int rank)
      : shared_communicator{std::make_unique<shared_membership>(shared, rank)} {}
  /// The rank of a membership.
  explicit shared_communicator(std::unique_ptr<membership> member) : member_{std::move(member)} {}

  [[nodiscard]] int rank() const noexcept { return member_->rank(); }    ///< from 0
  [[nodiscard]] int ranks() const noexcept { return member_->ranks(); }  ///< of the group

  /// Returns once queued. The stream fails with error(rank_failed) when another rank is gone or makes another
  /// call.
  void queue(stream& on, all_gather const& a) {
    enqueue(on, {.what = call::kind::all_gather, .among = a.among, .runs = a.runs, .count = a.bytes},
            [a](shared_communicator& group, call const& c) {
              auto const members = group.members_of(c);
              group.in_pieces(
                  c, members, all_runs(a.runs, a.bytes), 1, 1,
                  [&](std::byte* own, std::size_t begin, std::size_t size) {
                    copy(own, at(a.from, begin), size);
                  },
                  [&](std::size_t begin, std::size_t size) {
                    for (int i = 0; i < members.number; ++i) {
                      auto const* const run = group.run_of(members.rank(i));
                      in_runs(begin, size, a.bytes, [&](std::size_t k, std::size_t offset, range part) {
                        auto* const to = at(a.to, place(k, members, i) * a.bytes + offset);
                        if (to != at(a.from, begin + part.begin)) {  // unless it is in place already
                          copy(to, run + part.begin, part.size);
                        }
                      });
                    }
                  });
            });
  }

  /// Returns once queued; the stream fails as for an all_gather.
  void queue(stream& on, all_to_all const& a) {
    enqueue(on, {.what = call::kind::all_to_all, .among = a.among, .count = a.bytes},
            [a](shared_communicator& group, call const& c) {
              auto const members = group.members_of(c);
              group.in_pieces(
                  c, members, a.bytes, 1, members.number,
                  [&](std::byte* own, std::size_t begin, std::size_t size) {
                    group.write_for_each(own, a.from, a.bytes, begin, size, members);
                  },
                  [&](std::size_t begin, std::size_t size) {
                    for (int i = 0; i < members.number; ++i) {
                      copy(at(a.to, static_cast<std::size_t>(i) * a.bytes + begin),
                           group.run_of(members.rank(i)), size);
                    }
                  });
            });
  }
  /// Returns once queued; the stream fails as for an all_gather. Every rank sums its own part.
  template <element From, element To>
  void queue(stream& on, reduce_scatter<From, To> const& a) {
    enqueue(on,
            {.what = call::kind::reduce_scatter,
             .from = dtype_of<From>,
             .to = dtype_of<To>,
             .accumulates = a.accumulate,
             .among = a.among,
             .runs = a.runs,
             .count = static_cast<std::uint64_t>(a.count)},
            [a](shared_communicator& group, call const& c) {
              auto const members = group.members_of(c);
              auto const bytes = static_cast<std::size_t>(a.count) * sizeof(From);
              group.parts_.resize(static_cast<std::size_t>(members.number));
              group.in_pieces(
                  c, members, all_runs(a.runs, bytes), sizeof(From), members.number,
                  [&](std::byte* own, std::size_t begin, std::size_t size) {
                    group.write_for_each(own, a.from, bytes, begin, size, members);
                  },
                  [&](std::size_t begin, std::size_t size) {
                    for (int i = 0; i < members.number; ++i) {
                      group.parts_[static_cast<std::size_t>(i)] = group.run_of(members.rank(i));
                    }
                    sum_in_order<From>(group.parts_, a.to + begin / sizeof(From),
                                       static_cast<std::int64_t>(size / sizeof(From)), a.accumulate);
                  });
            });
  }
  /// 0: data goes through the membership, not through scratch memory.
  template <element From, element To>
  [[nodiscard]] static constexpr std::size_t scratch_bytes(reduce_scatter<From, To> const&) noexcept {
    return 0;
  }

  /// Waits for all ranks. \throws error(rank_failed) as membership::exchange.
  void gather(void const* from, void* to, std::size_t bytes) { member_->gather(from, to, bytes); }
  /// Waits for all ranks. \throws error(rank_failed) as membership::exchange.
  void barrier() { member_->barrier(); }
  /// Fails the group: every wait of a rank ends with this rank and the reason.
  void abort(std::string_view reason) noexcept { member_->abort(reason); }
  /// \throws error(rank_failed) when the group has failed.
  void check() const { member_->check(); }

private:
  /// The ranks' parts begin at multiples of this in a piece, so that runs of bytes end at multiples of it,
  /// too.
  static constexpr std::size_t line = 64;

  static std::byte* at(void* base, std::size_t offset) noexcept {
    return static_cast<std::byte*>(base) + offset;
  }
  static std::byte const* at(void const* base, std::size_t offset) noexcept {
    return static_cast<std::byte const*>(base) + offset;
  }

  struct range {
    std::size_t begin, size;  // bytes
  };
  static std::size_t all_runs(int runs, std::size_t bytes) noexcept {
    return static_cast<std::size_t>(runs) * bytes;
  }
  /// Where run k of member i is in [runs, members].
  static std::size_t place(std::size_t k, subset const& members, int i) noexcept {
    return k * static_cast<std::size_t>(members.number) + static_cast<std::size_t>(i);
  }
  /// Calls f(k, offset, part) for bytes [begin, begin + size) of runs of `bytes`: `part` of these bytes are
  /// in run k from `offset` on.
  template <class F>
  static void in_runs(std::size_t begin, std::size_t size, std::size_t bytes, F&& f) {
    for (std::size_t done = 0; done < size;) {
      auto const offset = (begin + done) % bytes;
      auto const length = std::min(size - done, bytes - offset);
      f((begin + done) / bytes, offset, range{done, length});
      done += length;
    }
  }

  static void copy(void* to, void const* from, std::size_t bytes) noexcept {
    if (bytes != 0) {  // the address of zero bytes may be null
      std::memcpy(to, from, bytes);
    }
  }

  /// Queues run(*this, c), with c completed by what only the calling thread knows.
  template <class Run>
  void enqueue(stream& on, call c, Run run) {
    c.number = queued_++;
    c.note_range();
    on.enqueue([this, c, run] {
      expect(c.number == done_, exit_code::internal, "the ", c.text(), " was queued as number ", c.number,
             " and runs as number ", done_,
             ": work of one communicator that is on several streams must be ordered by events");
      run(*this, c);
      ++done_;
    });
  }

  [[nodiscard]] subset members_of(call const& c) const noexcept { return c.among.of(rank(), ranks()); }

  /// Exchanges `bytes` of every part; `parts` of them share a piece. Calls write(own, begin, size) and
  /// read(begin, size) for one run of bytes after the other, whole elements each.
  template <class Write, class Read>
  void in_pieces(call const& c, subset const& members, std::size_t bytes, std::size_t element_bytes,
                 int parts, Write&& write, Read&& read) {
    static_assert(line % sizeof(double) == 0);
    auto const piece = member_->piece_bytes(membership::lane::queued);
    stride_ = piece / static_cast<std::size_t>(parts) / line * line;
    expect(stride_ >= element_bytes, exit_code::bad_input, "pieces of ", piece, " bytes are too small for ",
           parts, " ranks");
    auto const rounds = std::max<std::size_t>(1, (bytes + stride_ - 1) / stride_);
    auto const size = [&](std::size_t begin) { return std::min(stride_, bytes - begin); };
    member_->exchange(
        membership::lane::queued, c, rounds,
        [&](std::byte* own, std::uint64_t round) {
          auto const begin = round * stride_;
          write(own, begin, size(begin));
          return membership::content{
              .bytes = size(begin), .distance = parts > 1 ? stride_ : 0, .readers = members};
        },
        [&](std::uint64_t round) { read(round * stride_, size(round * stride_)); });
  }

  /// Writes bytes [begin, begin + size) of what each member gets from `from`, [runs, members, bytes].
  void write_for_each(std::byte* own, void const* from, std::size_t bytes, std::size_t begin,
                      std::size_t size, subset const& members) {
    for (int i = 0; i < members.number; ++i) {
      in_runs(begin, size, bytes, [&](std::size_t k, std::size_t offset, range part) {
        copy(own + static_cast<std::size_t>(i) * stride_ + part.begin,
             at(from, place(k, members, i) * bytes + offset), part.size);
      });
    }
  }
  [[nodiscard]] std::byte const* run_of(int r) const noexcept {
    return member_->run_of(membership::lane::queued, r);
  }

  std::unique_ptr<membership> member_;
  std::uint64_t queued_ = 0;  ///< operations; used by the calling thread
  // Used by the stream that runs an operation; events order several streams.
  std::uint64_t done_ = 0;
  std::size_t stride_ = 0;
  std::vector<std::byte const*> parts_;  // of a sum's members
};

/// Names the kind of group for policies such as zero::sharded.
struct shared {
  template <device_policy D>
  using communicator = shared_communicator<D>;  ///< for device D, whose memory is host memory
};

}  // namespace superoffload::comm
