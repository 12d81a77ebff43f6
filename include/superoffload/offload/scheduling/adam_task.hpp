// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace superoffload::offload {

/// What CPU Adam does with a bucket.
///
/// * update: state and weights of a step.
/// * speculate: new working weights only; the state stays as it is.
/// * commit: the state only; the weights were made by speculate.
/// * commit_speculate, commit_update: commit of the last step in one pass with this step's speculate or
/// update.
/// * update_in_place: update of a bucket whose weights are in host memory and hold the high half of its
/// masters.
enum class adam_task { update, speculate, commit, commit_speculate, commit_update, update_in_place };
inline constexpr int adam_tasks = 6;

}  // namespace superoffload::offload
