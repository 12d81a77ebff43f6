// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// When a step's last backward is over, a store must have reported all gradients to its sink.
// error: a sharding policy must have what zero::sharding_policy asks for
#include <superoffload/model/llama.hpp>
#include <superoffload/train/engine.hpp>

namespace so = superoffload;

template <class D, class T>
struct unsettled : so::zero::resident_store<D, T> {
  using so::zero::resident_store<D, T>::resident_store;
  void settle() = delete;
};
struct own {
  using policy_category = so::category::sharding;
  static constexpr bool offloads = false, alone = true, shards = false;
  template <class D, class T>
  using store = unsettled<D, T>;
};
using engine = so::train::engine<so::model::llama, own>;
using device = engine::device_type;

int main() {}
