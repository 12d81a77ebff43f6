// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/call.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/core/range.hpp>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace superoffload::comm {

namespace detail {

SUPEROFFLOAD_INLINE std::string_view name_of(call::kind what) {
  switch (what) {
    case call::kind::none:
      return "nothing";
    case call::kind::all_gather:
      return "all_gather";
    case call::kind::all_to_all:
      return "all_to_all";
    case call::kind::reduce_scatter:
      return "reduce_scatter";
    case call::kind::gather:
      return "gather";
    case call::kind::barrier:
      return "barrier";
  }
  return "an unknown call";
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::string call::text() const {
  auto out = std::string{detail::name_of(what)};
  if (what != kind::none && what != kind::barrier) {
    out += from == dtype::u8 ? concat(" of ", count, " bytes") : concat(" of ", count, " ", name_of(from));
    if (what == kind::reduce_scatter && (to != from || accumulates)) {
      out += concat(accumulates ? " added to " : " to ", name_of(to));
    }
    if (runs != 1) {
      out += concat(", ", runs, " times");
    }
    if (among != division{}) {
      out +=
          concat(among.counterparts ? " among counterparts of " : " among ", among.neighbours, " neighbours");
    }
  }
  out += concat(" (call ", number + 1);
  if (where[0] != 0) {
    out += concat(", in ", printable({where, ::strnlen(where, sizeof where)}));
  }
  return out + ")";
}

SUPEROFFLOAD_INLINE void call::note_range() noexcept {
  auto const range = last_range();
  std::memcpy(where, range.data(), std::min(range.size(), sizeof where - 1));
}

}  // namespace superoffload::comm
