// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/current_error.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>

#include <exception>
#include <new>
#include <system_error>

namespace superoffload {

SUPEROFFLOAD_INLINE error current_error() {
  try {
    throw;
  } catch (error const& e) { return e; } catch (std::bad_alloc const&) {
    return {exit_code::cannot_fit,
            "out of memory; where sizes can be chosen, such as --batch_size and --max_length, smaller ones "
            "may help"};
  } catch (std::system_error const& e) {  // of files, and of threads that cannot be started
    bool const short_of_resources =
        e.code() == std::errc::resource_unavailable_try_again || e.code() == std::errc::not_enough_memory;
    return short_of_resources
               ? error{exit_code::cannot_fit,
                       concat("the system gives this process no more threads or memory (",
                              printable(e.what(), 1000), "); see ulimit -u and the limits of its cgroup")}
               : error{exit_code::io_failure,
                       concat("the system refused a call: ", printable(e.what(), 1000))};
  } catch (std::exception const& e) {
    return {exit_code::internal, concat("an unexpected exception: ", printable(e.what(), 1000))};
  } catch (...) { return {exit_code::internal, "an exception of an unknown type"}; }
}

}  // namespace superoffload
