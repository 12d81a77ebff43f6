// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/environment.hpp>
#include <superoffload/comm/membership.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <mpi.h>
#include <string_view>

namespace superoffload::mpi {

/// A rank's membership of a group on any hosts, by messages of MPI.
///
/// In a round a rank sends every other one its call, and each reader its run; sums and orders are those of
/// ranks that share memory, bit for bit. A thread of its own sends a sign of life to the next rank and
/// expects those of the rank before: MPI alone waits for ever for a host that was cut off. MPI is called by
/// one thread at a time (MPI_THREAD_SERIALIZED), and no call of it waits.
class membership final : public comm::membership {
public:
  /// How a group behaves; the same on all ranks.
  struct settings {
    std::size_t piece_bytes = std::size_t{1} << 20;  ///< of a rank's data that others see in one round
    /// How long an exchange waits for a live rank that does not come.
    std::chrono::milliseconds patience = std::chrono::minutes{5};
    /// How long a rank may give no sign of life: it is stopped, or its host is down or cut off.
    std::chrono::milliseconds silence = std::chrono::seconds{15};
  };

  /// Becomes the rank that this process has in `group`, whose ranks all call it. MPI is initialized with
  /// MPI_THREAD_SERIALIZED or more, and finalized after this is gone. Throws `error`: bad_input for invalid
  /// settings, rank_failed when ranks have other settings or another version.
  membership(MPI_Comm group, settings const& s);
  /// Waits until all ranks have left, unless the group has failed.
  ~membership() override;

  [[nodiscard]] std::byte const* run_of(lane l, int r) const noexcept override;
  void leave() noexcept override;
  void check() const override;
  /// MPI's launcher knows of processes; here only check() is done.
  void fail_if_process_ended(std::string_view) const override { check(); }

private:
  class group;
  class session;
  friend std::unique_ptr<comm::membership> join(comm::environment const& run, settings const& s);

  membership(MPI_Comm group, settings const& s, std::unique_ptr<session> keeps);
  /// Compares what the ranks must have in common.
  void meet(settings const& s);
  void end() noexcept;

  void mark_failed(int r, std::string_view what) const noexcept override;
  [[nodiscard]] std::byte* own_piece(lane l) noexcept override;
  void publish(lane l, comm::call const& c, content const& own) override;
  void await_all(lane l, comm::call const& mine) override;

  std::unique_ptr<session> session_;  ///< null where MPI is the caller's
  std::unique_ptr<group> group_;
};

/// The membership of this process in the run of its launcher, mpirun or srun: it initializes MPI, and
/// finalizes it at its end unless the group has failed, when MPI would wait for ranks that are gone. Throws
/// `error`: bad_input where the launcher starts no MPI processes or says another rank than MPI; else as
/// membership().
[[nodiscard]] std::unique_ptr<comm::membership> join(comm::environment const& run,
                                                     membership::settings const& s = {});

}  // namespace superoffload::mpi

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/mpi/impl/membership_inl.hpp>
#endif
