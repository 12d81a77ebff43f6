// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/kernel/attention.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/model/qwen3_moe.hpp>
#include <superoffload/model/view.hpp>

#include <doctest/doctest.h>

#include "model/small_model.hpp"

namespace {

using namespace superoffload;
using view = model::view<cpu::device, double>;

model::config experts() {
  auto c = test::small_config("qwen3_moe");
  c.experts = 4;
  c.experts_per_token = 2;
  return c;
}

/// One function for all architectures, like the code that uses models.
std::vector<double> train_by_view(test::graph& g, test::sample const& s, view const& model) {
  auto const tables = model.make_tables(g.device, g.stream, 8);
  g.on.reset(true);
  g.on.forget_gradients();
  auto const loss = model.loss(g.on, s.batch, tables);
  g.on.backward();
  g.stream.synchronize();
  std::vector<double> all{*loss.total / 6.0};
  for (auto const& unit : model.units()) {
    auto const* const gradient = static_cast<double const*>(g.store.gradient(unit.id()).data);
    all.insert(all.end(), gradient, gradient + unit.elements());
  }
  return all;
}

template <class Architecture>
void check(model::config const& c) {
  test::small_model<Architecture> m{c};
  view const v{m.model};
  CHECK(&v.units() == &m.model.units());
  CHECK(&v.settings() == &m.model.settings());
  auto const visible = [](std::int32_t window) { return kernel::visible_pairs(4, window); };
  CHECK(v.forward_flops(8, visible) == m.model.forward_flops(8, visible));
  CHECK(v.table_bytes(8) == m.model.template table_bytes<double>(8));

  m.gradients();
  auto expected = m.all_gradients();
  expected.insert(expected.begin(), m.loss(false));
  CHECK(train_by_view(m.g, m.s, v) == expected);

  m.g.on.reset(false);
  auto const logits = m.model.template logits<cpu::device, double>(m.g.on, m.s.batch, &m.table);
  m.g.stream.synchronize();
  std::vector<double> const direct(logits.value(), logits.value() + logits.count());
  auto const tables = v.make_tables(m.g.device, m.g.stream, 8);
  m.g.on.reset(false);
  auto const again = v.logits(m.g.on, m.s.batch, tables);
  m.g.stream.synchronize();
  CHECK(std::vector<double>(again.value(), again.value() + again.count()) == direct);

  autograd::tape<cpu::device, double> dry{m.g.device, static_cast<int>(v.units().size())};
  auto const none = v.no_tables();
  dry.reset();
  v.loss(dry, m.s.batch, none);
  dry.backward();
  CHECK(dry.peak_bytes() == m.dry_peak({}));
}

TEST_CASE("a view gives the results of its model, for any architecture") {
  check<model::llama>(test::small_config("llama"));
  check<model::llama>(test::small_config("llama", true));
  check<model::qwen3_moe>(experts());
}

}  // namespace
