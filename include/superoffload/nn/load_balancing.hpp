// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/kernel/load_balancing.hpp>
#include <superoffload/nn/batch.hpp>
#include <superoffload/nn/cross_entropy.hpp>

#include <cstddef>
#include <cstdint>

namespace superoffload::nn {

/// What the experts of one layer need for the load-balancing loss. By default there is no such loss.
struct layer_load {
  bool wanted = false;                    ///< false: the rest is not read
  double* load = nullptr;                 ///< kernel::expert_load::load of this layer, written by the forward
  double const* slope = nullptr;          ///< [experts], read by the backward
  std::int32_t const* padding = nullptr;  ///< [rows] or null, as in nn::batch
};

/// The load-balancing loss of all routers of a micro-batch, kernel::load_balancing_loss. The forward of each
/// layer with experts writes its load, add_to() computes the loss when all have, and the backward of each
/// layer adds the gradient of its logits. A forward that is run again writes the same bits to the same place.
class load_balancing {
public:
  /// No loss.
  load_balancing() = default;

  /// For `layers` layers, also those without experts, which have no load. Memory is taken from the tape, so
  /// this comes before the first block of a forward that a backward follows. The batch must outlive the
  /// backward.
  template <device_policy D, element T>
  load_balancing(autograd::tape<D, T>& t, batch const& b, std::int64_t layers, std::int64_t experts,
                 std::int32_t each)
      : batch_{&b}, parts_{layers * kernel::load_pieces(b.rows)}, experts_{experts}, each_{each} {
    auto const count = parts_ * 2 * experts_;
    load_ = t.template allocate<double>(count);
    slope_ = t.template allocate<double>(experts_);
    t.fill_zero(load_, static_cast<std::size_t>(count) * sizeof(double));
  }

  /// Is there such a loss?
  explicit operator bool() const noexcept { return batch_ != nullptr; }

  /// For layer `layer`, from 0.
  [[nodiscard]] layer_load of(std::int64_t layer) const noexcept {
    if (batch_ == nullptr) {
      return {};
    }
    return {true, load_ + layer * kernel::load_pieces(batch_->rows) * 2 * experts_, slope_, batch_->padding};
  }

  /// Adds `weight` times the loss. The sum is divided by batch.divisor later, and this loss must not be, so
  /// it is multiplied by it.
  template <device_policy D, element T>
  void add_to(autograd::tape<D, T>& t, loss_sum sum, double weight) const {
    t.launch(kernel::load_balancing_loss{load_, parts_, experts_, each_, weight,
                                         static_cast<double>(batch_->divisor), slope_, sum.total});
  }

private:
  batch const* batch_ = nullptr;
  std::int64_t parts_ = 0, experts_ = 0;
  std::int32_t each_ = 0;
  double* load_ = nullptr;   ///< [layers, pieces, 2, experts]
  double* slope_ = nullptr;  ///< [experts]
};

}  // namespace superoffload::nn
