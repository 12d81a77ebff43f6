// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
//
// What surrounds the blocks of docs/engine.md, which tests/docs/snippets.py puts at their places.

#include <superoffload/superoffload.hpp>

#include <cstdio>

namespace so = superoffload;

namespace policies {
// block 1
}  // namespace policies

namespace planned {
using policies::engine;
void plan(char const* directory) {
// block 2
}
}  // namespace planned

namespace offloaded {
void configure(policies::engine& model_engine) {
  auto& model = model_engine.model();
  static_cast<void>(model);
// block 3
}
}  // namespace offloaded

namespace ranks {
void train(so::model::config const& config, so::train::engine_options const& options) {
  so::cpu::device device;
// block 4
}
}  // namespace ranks

namespace steps {
void train(so::data::loader& loader, policies::engine& trained, so::optim::schedule const& schedule, std::int64_t k) {
// block 5
}
}  // namespace steps

// block 6
