// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/cpu/memory.hpp>
#include <superoffload/train/checkpoint_writer.hpp>

#include <chrono>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

namespace superoffload::train {
namespace {

/// Leaves room for what training itself may still take.
bool copy_fits(std::size_t bytes) { return bytes < cpu::available_bytes() / 2; }

/// Blobs that read from a copy of the given ones.
std::vector<io::blob> copied(std::vector<io::blob> const& blobs) {
  std::vector<io::blob> copies;
  for (auto const& blob : blobs) {
    auto const memory = std::make_shared<std::vector<std::byte>>(blob.bytes);
    blob.read(0, *memory);
    copies.push_back({blob.name, blob.bytes, [memory](std::uint64_t offset, std::span<std::byte> to) {
                        std::memcpy(to.data(), memory->data() + offset, to.size());
                      }});
  }
  return copies;
}

}  // namespace

checkpoint_writer::~checkpoint_writer() {
  if (done_.valid()) {
    done_.wait();
  }
}

void checkpoint_writer::save(std::int64_t step, std::string state_json, std::vector<io::blob> blobs) {
  if (done_.valid()) {
    done_.get();
  }
  std::size_t bytes = 0;
  for (auto const& blob : blobs) { bytes += blob.bytes; }
  bool const alongside = copy_fits(bytes);
  auto write = [root = root_, step, state = std::move(state_json), keep = keep_last_,
                what = alongside ? copied(blobs) : std::move(blobs)] {
    io::save_checkpoint(root, step, state, what, keep);
  };
  writing_ = root_ / concat("checkpoint-", step);
  done_ = std::async(alongside ? std::launch::async : std::launch::deferred, std::move(write));
  if (!alongside) {
    done_.wait();
  }
}

std::optional<std::filesystem::path> checkpoint_writer::completed() {
  if (!done_.valid() || done_.wait_for(std::chrono::seconds{0}) != std::future_status::ready) {
    return std::nullopt;
  }
  return wait();
}

std::optional<std::filesystem::path> checkpoint_writer::wait() {
  if (!done_.valid()) {
    return std::nullopt;
  }
  done_.get();
  return writing_;
}

}  // namespace superoffload::train
