// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// The missing part of an offload policy is named before the policy is used.
// error: an offload policy must have what offload::offload_policy asks for
#include <superoffload/model/llama.hpp>
#include <superoffload/train/engine.hpp>

namespace so = superoffload;

template <class D, class T>
struct unreadable : so::offload::device_state<D, T> {
  using so::offload::device_state<D, T>::device_state;
  void read() = delete;
};
struct own {
  using policy_category = so::category::offload;
  static constexpr bool configures = false;
  template <class D, class T>
  using state = unreadable<D, T>;
};
using engine = so::train::engine<so::model::llama, own>;
using device = engine::device_type;

int main() {}
