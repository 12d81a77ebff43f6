// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include "core/core.hpp"

namespace superoffload::train {

template offload::plan plan_on<float>(model::view<described_device, float>, offload::machine const&,
                                      offload::settings const&, training_options const&);
template offload::plan plan_on<bfloat16>(model::view<described_device, bfloat16>, offload::machine const&,
                                         offload::settings const&, training_options const&);
template alternatives alternatives_on<float>(model::view<described_device, float>, offload::machine const&,
                                             training_options const&, offload::plan);
template alternatives alternatives_on<bfloat16>(model::view<described_device, bfloat16>,
                                                offload::machine const&, training_options const&,
                                                offload::plan);

}  // namespace superoffload::train
