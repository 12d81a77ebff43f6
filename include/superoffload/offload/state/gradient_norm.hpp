// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/kernel/reduction.hpp>
#include <superoffload/zero/unit_store.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace superoffload::offload {

/// The result of a step's gradient check.
struct gradient_check {
  double norm = 0.0;   ///< L2 over all trainable parameters, before clipping
  bool finite = true;  ///< is every gradient finite?
};

/// gather(from, to, count) concatenates `count` numbers of every rank, in the order of the ranks.
using gather_sums = std::function<void(double const* from, double* to, std::size_t count)>;

/// Sums the squares of gradients as they become final. The sums are over a fixed grid of each unit and are
/// added in the order of the units, so that the norm depends neither on buckets nor on the order of arrival.
template <device_policy D, element T>
class gradient_norm {
public:
  /// Bytes of device memory, and of host memory.
  static std::size_t bytes(std::vector<autograd::unit_layout> const& units) {
    std::int64_t cells = 0;
    for (auto const& u : units) { cells += u.trainable() ? kernel::norm_cells(u.elements()) : 0; }
    return static_cast<std::size_t>(cells) * sizeof(double);
  }

  /// `stream` is that of the gradients; device and stream must outlive it. Waits for the stream.
  gradient_norm(D& device, typename D::stream& stream, std::vector<autograd::unit_layout> const& units)
      : stream_{&stream}, partial_{device, bytes(units)}, host_partial_{device, bytes(units), memory::host} {
    drain_at_end const drained{stream};
    stream.fill_zero(partial_.data(), partial_.bytes());
    auto* partial = partial_.template as<double>();
    for (auto const& u : units) {
      units_.push_back({u.elements(), partial, {}});
      partial += u.trainable() ? kernel::norm_cells(u.elements()) : 0;
    }
  }

  /// The unit's gradient is final: queues its part of the norm.
  void add(int unit, zero::unit_gradient gradient) {
    auto& u = units_[static_cast<std::size_t>(unit)];
    u.gradient = gradient;
    gradient.with_type<T>(
        [&]<class G>(G const* g) { launch(*stream_, kernel::square_sum<T, G>{g, u.partial, u.elements}); });
  }

  /// The unit's gradient that was added last.
  [[nodiscard]] zero::unit_gradient gradient(int unit) const {
    return units_[static_cast<std::size_t>(unit)].gradient;
  }

  /// Waits for every gradient. If the units are shards of several ranks, the sums of all ranks are added in
  /// the order of the whole units' cells, so that the result does not depend on the number of ranks.
  [[nodiscard]] gradient_check check_gradient(int ranks = 1, gather_sums const& gather = {}) {
    stream_->copy(host_partial_.data(), partial_.data(), partial_.bytes());
    stream_->synchronize();
    auto const cells = partial_.bytes() / sizeof(double);
    std::vector<double> all(cells * static_cast<std::size_t>(ranks));
    if (gather) {
      gather(host_partial_.template as<double>(), all.data(), cells);
    } else {
      std::copy_n(host_partial_.template as<double>(), cells, all.begin());
    }
    double sum = 0.0;
    for (std::size_t i = 0; i < units_.size(); ++i) {
      auto const begin = static_cast<std::size_t>(units_[i].partial - partial_.template as<double>());
      auto const end = i + 1 < units_.size()
                           ? static_cast<std::size_t>(units_[i + 1].partial - partial_.template as<double>())
                           : cells;
      for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r) {
        for (std::size_t cell = begin; cell < end; ++cell) { sum += all[r * cells + cell]; }
      }
    }
    return {std::sqrt(sum), std::isfinite(sum)};
  }

private:
  struct unit_sum {
    std::int64_t elements;
    double* partial;
    zero::unit_gradient gradient;
  };

  typename D::stream* stream_;
  buffer<D> partial_, host_partial_;
  std::vector<unit_sum> units_;
};

}  // namespace superoffload::offload
