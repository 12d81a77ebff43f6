// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/agreement.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/cpu/memory.hpp>
#include <superoffload/train/run/checkpoint_writer.hpp>

#include <chrono>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

namespace superoffload::train {
namespace detail {

/// Leaves half of the free memory to training.
SUPEROFFLOAD_INLINE bool copy_fits(std::size_t bytes) { return bytes < cpu::available_bytes() / 2; }

/// Blobs that read from a copy of `blobs`.
SUPEROFFLOAD_INLINE std::vector<io::blob> copied(std::vector<io::blob> const& blobs) {
  std::vector<io::blob> copies;
  for (auto const& blob : blobs) {
    auto const memory = std::make_shared<std::vector<std::byte>>(blob.bytes);
    if (blob.bytes > 0) {  // a rank may own nothing of a unit
      blob.read(0, *memory);
    }
    copies.push_back({blob.name, blob.bytes, [memory](std::uint64_t offset, std::span<std::byte> to) {
                        std::memcpy(to.data(), memory->data() + offset, to.size());
                      }});
  }
  return copies;
}

}  // namespace detail

SUPEROFFLOAD_INLINE checkpoint_writer::~checkpoint_writer() {
  if (part_.valid()) {
    part_.wait();
  }
}

SUPEROFFLOAD_INLINE void checkpoint_writer::save(std::int64_t step, std::string state_json,
                                                 std::vector<io::blob> blobs) {
  wait();
  comm::together(ranks_, [&] {
    if (ranks_.rank() == place_.keeper) {
      draft_.emplace(root_, step, run_);
    }
  });
  auto const drafts = comm::gather_texts(ranks_, draft_ ? draft_->directory().native() : std::string{});
  auto const& directory = drafts[static_cast<std::size_t>(place_.keeper)];
  std::uint64_t bytes = 0;
  for (auto const& blob : blobs) { bytes += blob.bytes; }
  bytes = comm::sum_over_ranks(ranks_, bytes);
  bool const alongside = comm::on_all_ranks(ranks_, detail::copy_fits(bytes));
  bool const alone = ranks_.ranks() == 1;
  state_json_ = std::move(state_json);
  auto write = [this, alone, directory, what = alongside ? detail::copied(blobs) : std::move(blobs)] {
    auto const began = std::chrono::steady_clock::now();
    auto const part = io::write_checkpoint_part(directory, ranks_.rank(), what, place_.host);
    if (alone) {
      draft_->finish(state_json_, {&part, 1}, keep_last_);
    }
    writing_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return part;
  };
  writing_ = {root_ / concat("checkpoint-", step), bytes};
  part_ = std::async(alongside ? std::launch::async : std::launch::deferred, std::move(write));
  if (!alongside) {
    part_.wait();
  }
}

SUPEROFFLOAD_INLINE std::optional<saved_checkpoint> checkpoint_writer::completed() {
  if (writing_.directory.empty() ||
      !comm::on_all_ranks(ranks_, part_.wait_for(std::chrono::seconds{0}) == std::future_status::ready)) {
    return std::nullopt;
  }
  return finish();
}

SUPEROFFLOAD_INLINE std::optional<saved_checkpoint> checkpoint_writer::wait() {
  if (writing_.directory.empty()) {
    return std::nullopt;
  }
  // A rank that is done keeps taking part in this collective until all are.
  while (!comm::on_all_ranks(ranks_,
                             part_.wait_for(std::chrono::milliseconds{200}) == std::future_status::ready)) {}
  return finish();
}

SUPEROFFLOAD_INLINE saved_checkpoint checkpoint_writer::finish() {
  part_.wait();  // the write has its time when it has ended
  auto const done = std::exchange(writing_, {});
  auto const parts = comm::gather_texts(ranks_, part_.get());
  if (ranks_.ranks() > 1) {
    state_json_ = comm::gather_texts(ranks_, state_json_).front();
    auto const all_keepers = [&](auto const& finish) {
      comm::together(ranks_, [&] {
        if (draft_) {
          finish(*draft_);
        }
      });
    };
    all_keepers([&](auto& draft) { draft.write_manifest(state_json_, parts); });
    all_keepers([](auto& draft) { draft.commit(); });
    all_keepers([&](auto& draft) { draft.retire(keep_last_); });
  }
  draft_.reset();
  return done;
}

}  // namespace superoffload::train
