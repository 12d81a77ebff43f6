// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/activation_checkpointing.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/recorder.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace superoffload::autograd {

/// Moves what blocks keep between their buffers on the device and host memory. Block b has buffer b modulo
/// their number, in forward and backward, so what it keeps returns to the same addresses. A copy to the host
/// runs beside the forward of the next blocks, a copy back beside the backward of the blocks behind it.
///
/// Events order the copies: a buffer is filled after its former contents have left, and read after its copy
/// has arrived. Fewer buffers cost time and change no result. No call waits for the device.
template <device_policy D>
class offloaded_activations {
public:
  using stream_type = typename D::stream;  ///< of compute and of copies

  /// Takes `host_bytes` bytes of pinned host memory. `compute` is the tape's stream; `times` records the
  /// copies and may be null. All three must outlive this.
  offloaded_activations(D& device, stream_type& compute, std::size_t host_bytes, recorder<D>* times = nullptr)
      : device_{&device},
        times_{times},
        down_track_{times_ == nullptr ? -1 : times_->add_track(resource::link_down, "activations to host")},
        up_track_{times_ == nullptr ? -1 : times_->add_track(resource::link_up, "activations ahead of use")},
        compute_{&compute},
        down_{device},
        up_{urgent_stream(device)},
        reached_{device},
        host_{device, host_bytes, memory::host} {}
  offloaded_activations(offloaded_activations const&) = delete;
  offloaded_activations& operator=(offloaded_activations const&) = delete;
  ~offloaded_activations() {
    drain(down_);
    drain(up_);
  }

  /// A forward begins, with buffers in device memory at `memory`, one behind the other. All that was queued
  /// before has read its buffers.
  /// \throws error(internal) if their results need more host memory than there is.
  void begin(activation_buffers const& buffers, std::byte* memory) {
    expect(buffers.host_bytes() <= host_.bytes(), exit_code::internal, "activations of ",
           buffers.host_bytes(), " bytes leave the device, but the plan reserved ", host_.bytes(),
           " bytes of host memory: this batch is larger than the planned one");
    buffers_ = buffers;
    memory_ = memory;
    kept_.assign(static_cast<std::size_t>(buffers.leaving()), {});
    while (copies_.size() < static_cast<std::size_t>(buffers.count)) { copies_.emplace_back(*device_); }
    // The buffers of a forward without a backward may still be copied.
    for (auto& c : copies_) {
      if (c.has_left) {
        compute_->wait(c.left);
      }
    }
  }
  /// Before the forward of `block`, which takes its buffer.
  void enter_forward(int block) {
    if (block >= buffers_.count) {
      compute_->wait(copies_of(block).left);
    }
  }
  /// After its forward, which has filled `bytes` bytes of the buffer. `unit` is for records.
  void leave_forward(int block, int unit, std::size_t bytes) {
    if (block >= buffers_.leaving()) {
      return;
    }
    kept_[static_cast<std::size_t>(block)] = {unit, bytes};
    compute_->record(reached_);
    down_.wait(reached_);
    record_span(times_, down_track_, down_, "activations of ", unit,
                [&] { down_.copy(on_host(block), on_device(block), bytes); });
    auto& c = copies_of(block);
    down_.record(c.left);
    c.has_left = true;
  }
  /// Before the backward of `block`, which reads its buffer and that of the block before.
  void enter_backward(int block) {
    if (block > 0 && block <= buffers_.leaving()) {
      compute_->wait(copies_of(block - 1).back);
    }
  }
  /// After its backward: the block that had the buffer before gets it again.
  void leave_backward(int block) {
    int const next = block - buffers_.count;
    if (next < 0) {
      return;
    }
    auto const [unit, bytes] = kept_[static_cast<std::size_t>(next)];
    compute_->record(reached_);
    up_.wait(reached_);
    record_span(times_, up_track_, up_, "activations of ", unit,
                [&, bytes = bytes] { up_.copy(on_device(next), on_host(next), bytes); });
    up_.record(copies_of(next).back);
  }

  /// The buffer of a block, on the device.
  [[nodiscard]] std::byte* on_device(int block) const { return memory_ + buffers_.offset_of(block); }

private:
  /// Of one buffer: when its contents have left, and when they are back.
  struct copies {
    explicit copies(D& device) : left{device}, back{device} {}
    typename D::event left, back;
    bool has_left = false;
  };
  /// What a block has in host memory.
  struct contents {
    int unit = 0;
    std::size_t bytes = 0;
  };

  [[nodiscard]] copies& copies_of(int block) {
    return copies_[static_cast<std::size_t>(block % buffers_.count)];
  }
  [[nodiscard]] std::byte* on_host(int block) {
    return host_.template as<std::byte>() + static_cast<std::size_t>(block) * buffers_.bytes;
  }

  D* device_;
  recorder<D>* times_;
  int down_track_, up_track_;
  stream_type* compute_;
  stream_type down_, up_;
  typename D::event reached_;  // by the compute stream, for one copy at a time
  buffer<D> host_;
  activation_buffers buffers_;
  std::byte* memory_ = nullptr;
  std::vector<copies> copies_;  // by buffer
  std::vector<contents> kept_;  // by block, of those that leave
};

}  // namespace superoffload::autograd
