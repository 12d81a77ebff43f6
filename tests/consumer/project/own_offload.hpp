// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A user's own offload policy: the optimizer's state in std::vector, updated by a loop after the gradient
// check.
#include <superoffload/offload/offload_policy.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

template <superoffload::device_policy D, superoffload::element T>
class looped_state {
  using layouts = std::vector<superoffload::autograd::unit_layout>;
  using stream_type = typename D::stream;

public:
  static superoffload::offload::memory_bytes bytes(layouts const& units,
                                                   superoffload::offload::configuration const&) {
    auto const norm = superoffload::offload::gradient_norm<D, T>::bytes(units);
    std::size_t state = 0;
    for (auto const& unit : units) {
      state += unit.trainable() ? 3 * sizeof(float) * static_cast<std::size_t>(unit.elements()) : 0;
    }
    return {.device = norm, .host = norm + state};
  }

  looped_state(D& device, stream_type& stream, layouts const& units,
               superoffload::offload::configuration const&,
               superoffload::offload::unit_weights<T> const& weights, superoffload::recorder<D>*)
      : stream_{&stream}, layouts_{units}, norm_{device, stream, units} {
    for (auto const& unit : units) {
      auto const n = unit.trainable() ? static_cast<std::size_t>(unit.elements()) : 0;
      units_.push_back(
          {weights(unit.id()), std::vector<float>(n), std::vector<float>(n), std::vector<float>(n)});
    }
  }

  void announce(superoffload::offload::step_record const&) {}
  void ready(int unit, superoffload::zero::unit_gradient gradient) { norm_.add(unit, gradient); }
  superoffload::offload::gradient_check check_gradient(int ranks,
                                                       superoffload::offload::gather_sums const& gather) {
    return norm_.check_gradient(ranks, gather);
  }
  void update(superoffload::offload::step_record const& record) {
    for (auto const& layout : layouts_) {
      if (layout.trainable()) {
        update(layout, record);
      }
    }
  }
  void skip() {}
  void await(int, stream_type&) {}
  [[nodiscard]] bool returned(int) const { return true; }
  void await_gradient(int, stream_type&) {}

  void read(int unit, superoffload::offload::state_part part, std::int64_t first, std::span<float> to) {
    auto const& from = of(unit, part);
    std::copy_n(from.begin() + first, to.size(), to.begin());
  }
  void write(int unit, superoffload::offload::state_part part, std::int64_t first,
             std::span<float const> from) {
    std::copy(from.begin(), from.end(), of(unit, part).begin() + first);
    if (part == superoffload::offload::state_part::master) {
      send(unit);
    }
  }

  [[nodiscard]] superoffload::offload::worker_counts counts() const { return {}; }
  [[nodiscard]] double hit_rate() const { return 1.0; }
  [[nodiscard]] std::vector<std::string> notes() const { return {}; }

private:
  struct unit_state {
    T* weights;
    std::vector<float> master, m, v;
  };

  std::vector<float>& of(int unit, superoffload::offload::state_part part) {
    auto& u = units_[static_cast<std::size_t>(unit)];
    using enum superoffload::offload::state_part;
    return part == master ? u.master : part == m ? u.m : u.v;
  }
  void update(superoffload::autograd::unit_layout const& layout,
              superoffload::offload::step_record const& record) {
    auto& u = units_[static_cast<std::size_t>(layout.id())];
    norm_.gradient(layout.id()).template with_type<T>([&]<class G>(G const* from) {
      std::vector<G> gradient(u.master.size());
      stream_->copy(gradient.data(), from, gradient.size() * sizeof(G));
      stream_->synchronize();
      auto const& s = record.settings;
      auto const t = static_cast<double>(record.t);
      for (auto const& tensor : layout.tensors()) {
        for (std::int64_t i = 0; tensor.trainable && i < tensor.count(); ++i) {
          auto const at = static_cast<std::size_t>(tensor.offset + i);
          double const g = record.factor * static_cast<float>(gradient[at]);
          double const m = u.m[at] = static_cast<float>(s.beta1 * u.m[at] + (1.0 - s.beta1) * g);
          double const v = u.v[at] = static_cast<float>(s.beta2 * u.v[at] + (1.0 - s.beta2) * g * g);
          double const step =
              m / (1.0 - std::pow(s.beta1, t)) / (std::sqrt(v / (1.0 - std::pow(s.beta2, t))) + s.epsilon);
          double const decay = tensor.decays ? s.weight_decay * u.master[at] : 0.0;
          u.master[at] -= static_cast<float>(record.rate * (step + decay));
        }
      }
    });
    send(layout.id());
  }
  void send(int unit) {
    auto const& u = units_[static_cast<std::size_t>(unit)];
    std::vector<T> rounded(u.master.begin(), u.master.end());
    stream_->copy(u.weights, rounded.data(), rounded.size() * sizeof(T));
    stream_->synchronize();
  }

  stream_type* stream_;
  layouts layouts_;
  superoffload::offload::gradient_norm<D, T> norm_;
  std::vector<unit_state> units_;
};

struct looped {
  using policy_category = superoffload::category::offload;
  static constexpr bool configures = false;
  template <superoffload::device_policy D, superoffload::element T>
  using state = looped_state<D, T>;
};
