// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cli/report.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/core/log.hpp>
#include <superoffload/core/system_call.hpp>

#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

namespace superoffload::cli {

SUPEROFFLOAD_INLINE void set_up_log(command_line const& command) {
  set_log_level(command.least);
  if (command.quiet) {
    int const nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    expect_call(nowhere >= 0 && ::dup2(nowhere, STDOUT_FILENO) == STDOUT_FILENO, exit_code::io_failure,
                "/dev/null");
    ::close(nowhere);
  }
}

SUPEROFFLOAD_INLINE void tell_notes(command_line const& command) {
  if (command.training.rank == 0) {
    for (auto const& note : command.notes) { log_line(log_level::info, note); }
  }
}

SUPEROFFLOAD_INLINE int report(train::run_summary const& done) {
  auto const code = static_cast<int>(done.signal == 0 ? exit_code::ok : exit_code::interrupted);
  if (!done.is_rank_zero) {
    return code;
  }
  if (done.measured) {
    std::printf(
        "step: %.1f ms planned for %.0f tokens, %.1f ms for %.0f on average; a token took %.2f of the plan\n",
        1e3 * done.planned.time, done.planned.tokens, 1e3 * done.measured->time, done.measured->tokens,
        done.measured->time_per_token() / done.planned.time_per_token());
  }
  if (done.signal != 0) {
    log(log_level::warning, "stopped by signal ", done.signal, " after step ", done.steps, "; saved ",
        done.checkpoint.string());
    return code;
  }
  if (done.eval_before && !done.eval_after) {  // an evaluation alone
    std::printf("held-out loss %.4f\n", *done.eval_before);
    return code;
  }
  if (done.eval_before && done.eval_after) {
    std::printf("held-out loss %.4f before, %.4f after\n", *done.eval_before, *done.eval_after);
  }
  if (!done.exported.empty()) {
    std::printf("exported to %s\n", done.exported.c_str());
  } else if (!done.checkpoint.empty()) {
    std::printf("exported nothing; the last checkpoint is %s\n", done.checkpoint.c_str());
  } else {
    std::printf("exported and saved nothing: --export on and --save_checkpoint do\n");
  }
  return code;
}

}  // namespace superoffload::cli
