// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/buffer.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/data/batch.hpp>
#include <superoffload/nn/batch.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

namespace superoffload::train {

/// The most int32 values of a batch of `rows` tokens here, and as many on each of the ranks that share it.
constexpr std::int64_t staged_values(std::int64_t rows, int sequence_ranks) {
  return 5 * rows + 2 * (rows + 1) + (sequence_ranks * rows + 1);
}

/// Bytes of device memory that batch_staging takes, and as many of host memory.
constexpr std::size_t staging_bytes(std::int64_t rows, int sequence_ranks = 1) {
  return 2 * static_cast<std::size_t>(staged_values(rows, sequence_ranks)) * sizeof(std::int32_t);
}

/// Copies batches to the device: two buffers, one copy for each batch, and the token order that the
/// embedding's backward needs.
template <device_policy D>
class batch_staging {
public:
  /// For batches of up to `rows` tokens here. Copies are queued on `stream`, which must outlive it.
  /// `sequence_rank`: this one of the `sequence_ranks` ranks that share each batch.
  batch_staging(D& device, typename D::stream& stream, std::int64_t rows, int sequence_ranks = 1,
                int sequence_rank = 0)
      : stream_{&stream},
        sequence_ranks_{sequence_ranks},
        sequence_rank_{sequence_rank},
        buffers_{staging_buffer{device, staging_bytes(rows, sequence_ranks) / 2},
                 staging_buffer{device, staging_bytes(rows, sequence_ranks) / 2}} {}

  /// Queues the copy of this rank's rows. The result is valid until the second next call.
  nn::batch const& put(data::batch const& b, std::int64_t divisor) {
    staging_buffer& s = buffers_[next_];
    next_ = 1 - next_;
    if (s.used) {
      s.copied.wait();
    }
    fill(s, b, divisor);
    auto const bytes = static_cast<std::size_t>(packed_.size()) * sizeof(std::int32_t);
    std::memcpy(s.host.data(), packed_.data(), bytes);
    stream_->copy(s.device.data(), s.host.data(), bytes);
    stream_->record(s.copied);
    s.used = true;
    return s.batch;
  }

private:
  struct staging_buffer {
    staging_buffer(D& d, std::size_t size) : host{d, size, memory::host}, device{d, size}, copied{d} {}
    buffer<D> host, device;
    typename D::event copied;
    bool used = false;
    nn::batch batch;
  };

  void fill(staging_buffer& s, data::batch const& b, std::int64_t divisor) {
    auto const rows = b.rows();
    order_.resize(static_cast<std::size_t>(rows));
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(), [&](std::int32_t i, std::int32_t j) {
      return b.tokens[static_cast<std::size_t>(i)] < b.tokens[static_cast<std::size_t>(j)];
    });
    segment_starts_.clear();
    segment_ids_.clear();
    for (std::int32_t i = 0; i < rows; ++i) {
      auto const token = b.tokens[static_cast<std::size_t>(order_[static_cast<std::size_t>(i)])];
      if (segment_ids_.empty() || segment_ids_.back() != token) {
        segment_ids_.push_back(token);
        segment_starts_.push_back(i);
      }
    }
    segment_starts_.push_back(static_cast<std::int32_t>(rows));

    std::int32_t longest = 0;
    for (std::size_t d = 1; d < b.starts.size(); ++d) {
      longest = std::max(longest, b.starts[d] - b.starts[d - 1]);
    }
    packed_.clear();
    auto const* const base = s.device.template as<std::int32_t>();
    auto const append = [&](std::vector<std::int32_t> const& values) {
      auto const* const where = base + packed_.size();
      packed_.insert(packed_.end(), values.begin(), values.end());
      return where;
    };
    s.batch = {.rows = rows,
               .documents = b.documents(),
               .segments = static_cast<std::int64_t>(segment_ids_.size()),
               .longest = longest,
               .divisor = std::max<std::int64_t>(1, divisor),
               .noise = b.noise,
               .sequence_ranks = sequence_ranks_,
               .sequence_rank = sequence_rank_};
    s.batch.tokens = append(b.tokens);
    s.batch.targets = append(b.targets);
    s.batch.positions = append(b.positions);
    s.batch.padding = b.padding.empty() ? nullptr : append(b.padding);
    s.batch.order = append(order_);
    s.batch.starts = append(b.starts);
    s.batch.segment_starts = append(segment_starts_);
    s.batch.segment_ids = append(segment_ids_);
    expect(packed_.size() * sizeof(std::int32_t) <= s.host.bytes(), exit_code::internal, "a batch of ", rows,
           " tokens is larger than the planned one");
  }

  typename D::stream* stream_;
  int sequence_ranks_, sequence_rank_;
  std::array<staging_buffer, 2> buffers_;
  std::size_t next_ = 0;
  std::vector<std::int32_t> order_, segment_starts_, segment_ids_, packed_;
};

}  // namespace superoffload::train
