// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/text/impl/expression_parser_inl.hpp>
#include <superoffload/text/regular_expression.hpp>

#include <map>

namespace superoffload::text {
namespace detail::expression {

inline constexpr std::size_t most_instructions = 20'000;
inline constexpr std::size_t most_sets = 256;

enum class operation : std::uint8_t {
  set,     ///< one character of the set `a`
  run,     ///< `least` to `most` characters of the set `a`
  fork,    ///< `a` first, then `b`; only `b` where no first byte of `a` follows
  jump,    ///< to `a`
  ahead,   ///< asserts what follows up to `a`, then `a`
  behind,  ///< the same, `least` characters before
  atomic,  ///< matches what follows up to `a` in its first way, then `a`
  anchor,
  accept,
};

struct instruction {
  operation does;
  manner how = manner::greedy;
  bool negative = false;
  anchor where = anchor::begin;
  std::uint32_t a = 0, b = 0;
  std::uint32_t least = 0, most = 0;
};

/// The bytes that a match of something may begin with; all of them where it may be empty.
using first_bytes = std::array<bool, 256>;

SUPEROFFLOAD_INLINE void add_first_bytes(first_bytes& bytes, code_point_set const& set) {
  auto const lead = [](std::uint32_t c) {
    std::string text;
    append_utf8(text, c);
    return static_cast<unsigned char>(text[0]);
  };
  for (auto const range : set.ranges()) {
    for (unsigned byte = lead(range.first); byte <= lead(range.last); ++byte) { bytes[byte] = true; }
  }
}

/// Adds those of `part`; false where it may be empty, so that those of what follows count, too.
SUPEROFFLOAD_INLINE bool add_first_bytes(first_bytes& bytes, node const& part) {
  bool filled = false;
  switch (part.what) {
    case kind::set:
      add_first_bytes(bytes, part.set);
      return true;
    case kind::sequence:
    case kind::atomic:
      return std::ranges::any_of(part.parts, [&](auto const& one) { return add_first_bytes(bytes, one); });
    case kind::alternatives:
      filled = true;
      for (auto const& one : part.parts) { filled = add_first_bytes(bytes, one) && filled; }
      return filled;
    case kind::repeat:
      return add_first_bytes(bytes, part.parts[0]) && part.least > 0;
    default:
      return false;
  }
}

SUPEROFFLOAD_INLINE first_bytes first_bytes_of(node const& part) {
  first_bytes bytes{};
  if (!add_first_bytes(bytes, part)) {
    bytes.fill(true);
  }
  return bytes;
}

}  // namespace detail::expression

/// An expression as instructions for a machine with a stack.
struct regular_expression::program {
  program(detail::expression::node const& root, std::string_view pattern, std::string_view from)
      : where{from},
        shown{printable(pattern)},
        may_begin{detail::expression::first_bytes_of(root)},
        may_be_empty{root.lengths().first == 0} {
    add(root);
    emit({detail::expression::operation::accept});
    words = detail::expression::word_set();
    word_table.emplace_back(words.ranges());
  }

  std::uint32_t emit(detail::expression::instruction const& one) {
    expect(code.size() < detail::expression::most_instructions, exit_code::bad_input, where,
           ": the pattern '", shown, "' is too large; expected fewer alternatives and repetitions");
    code.push_back(one);
    return static_cast<std::uint32_t>(code.size() - 1);
  }

  [[nodiscard]] std::uint32_t here() const { return static_cast<std::uint32_t>(code.size()); }

  std::uint32_t index_of(code_point_set const& set) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> key;
    for (auto const range : set.ranges()) { key.emplace_back(range.first, range.last); }
    auto const [entry, is_new] = known.emplace(std::move(key), static_cast<std::uint32_t>(sets.size()));
    if (is_new) {
      expect(sets.size() < detail::expression::most_sets, exit_code::bad_input, where, ": the pattern '",
             shown, "' has more than ", detail::expression::most_sets, " different classes; expected fewer");
      sets.emplace_back(set.ranges());
    }
    return entry->second;
  }

  std::uint32_t fork_to(detail::expression::node const& part, bool part_first) {
    auto const fork = emit({detail::expression::operation::fork});
    if (part_first) {
      code[fork].least = static_cast<std::uint32_t>(firsts.size());
      firsts.push_back(detail::expression::first_bytes_of(part));
    } else {
      code[fork].least = no_firsts;
    }
    return fork;
  }

  void add(detail::expression::node const& part) {
    using detail::expression::kind;
    using detail::expression::operation;
    switch (part.what) {
      case kind::set:
        emit({operation::set, {}, false, {}, index_of(part.set)});
        return;
      case kind::sequence:
        for (auto const& one : part.parts) { add(one); }
        return;
      case kind::alternatives:
        add_alternatives(part);
        return;
      case kind::repeat:
        add_repeat(part);
        return;
      case kind::anchor:
        emit({operation::anchor, {}, false, part.where});
        return;
      default: {
        auto const does = part.what == kind::ahead    ? operation::ahead
                          : part.what == kind::behind ? operation::behind
                                                      : operation::atomic;
        auto const begin = emit({does, {}, part.negative, {}, 0, 0, part.least});
        add(part.parts[0]);
        emit({operation::accept});
        code[begin].a = here();
      }
    }
  }

  void add_alternatives(detail::expression::node const& part) {
    std::vector<std::uint32_t> jumps;
    for (std::size_t i = 0; i + 1 < part.parts.size(); ++i) {
      auto const fork = fork_to(part.parts[i], true);
      code[fork].a = here();
      add(part.parts[i]);
      jumps.push_back(emit({detail::expression::operation::jump}));
      code[fork].b = here();
    }
    add(part.parts.back());
    for (auto const jump : jumps) { code[jump].a = here(); }
  }

  void add_repeat(detail::expression::node const& part) {
    using detail::expression::manner;
    using detail::expression::operation;
    auto const& body = part.parts[0];
    if (body.what == detail::expression::kind::set) {
      emit({operation::run, part.how, false, {}, index_of(body.set), 0, part.least, part.most});
      return;
    }
    std::uint32_t atomic = 0;
    bool const possessive = part.how == manner::possessive;
    if (possessive) {
      atomic = emit({operation::atomic});
    }
    for (std::uint32_t i = 0; i < part.least; ++i) { add(body); }
    bool const lazy = part.how == manner::lazy;
    auto const optional = [&] {
      auto const fork = fork_to(body, !lazy);
      (lazy ? code[fork].b : code[fork].a) = here();
      add(body);
      return fork;
    };
    if (part.most == detail::expression::unlimited) {
      auto const fork = optional();
      emit({operation::jump, {}, false, {}, fork});
      (lazy ? code[fork].a : code[fork].b) = here();
    } else {
      std::vector<std::uint32_t> forks;
      for (auto i = part.least; i < part.most; ++i) { forks.push_back(optional()); }
      for (auto const fork : forks) { (lazy ? code[fork].a : code[fork].b) = here(); }
    }
    if (possessive) {
      emit({operation::accept});
      code[atomic].a = here();
    }
  }

  static constexpr std::uint32_t no_firsts = ~std::uint32_t{0};

  std::string where, shown;
  detail::expression::first_bytes may_begin;
  bool may_be_empty;
  std::vector<detail::expression::instruction> code;
  std::vector<code_point_table> sets;
  std::vector<code_point_table> word_table;  // one: what \b calls a word
  code_point_set words;
  std::vector<detail::expression::first_bytes> firsts;
  std::map<std::vector<std::pair<std::uint32_t, std::uint32_t>>, std::uint32_t> known;
};

namespace detail::expression {

/// Runs a program on one text.
class machine {
public:
  machine(regular_expression::program const& program, std::string_view text, step_limit limit)
      : program_{program}, text_{text}, steps_{limit.base + limit.per_byte * text.size()} {}

  /// The first match that begins at `from` or later.
  std::optional<byte_range> search(std::size_t from) {
    for (auto at = from; at <= text_.size();) {
      bool const possible = at == text_.size() || program_.may_begin[static_cast<unsigned char>(text_[at])];
      if (possible) {
        auto const end = run(0, at);
        if (end != none) {
          return byte_range{at, end};
        }
      }
      if (at == text_.size()) {
        break;
      }
      at = possible ? after_failure(at) : at + first_step(text_.substr(at)).length;
    }
    return std::nullopt;
  }

private:
  static constexpr std::size_t none = std::string_view::npos;

  /// What is tried when all else fails: `pc` at `at`, or for a run `pc` at one of the places up to `limit`.
  struct choice {
    std::uint32_t pc;
    std::uint32_t left;  ///< how many more characters a lazy run may take; 0 for others
    std::size_t at;
    std::size_t limit;
  };

  void count(std::uint64_t steps = 1) {
    expect(steps <= steps_, exit_code::bad_input, program_.where, ": the pattern '", program_.shown,
           "' needs too many steps on a text of ", text_.size(),
           " bytes; expected a pattern whose time is proportional to the text");
    steps_ -= steps;
  }

  /// Where a match may begin after none did at `at`. A leading run of a class has been tried with each end,
  /// so a later begin inside of it has no other one.
  std::size_t after_failure(std::size_t at) {
    auto const& first = program_.code[0];
    if (first.does != operation::run || first.least == 0 || first.most != unlimited) {
      return at + first_step(text_.substr(at)).length;
    }
    auto const begin = at;
    while (at < text_.size()) {
      auto const step = first_step(text_.substr(at));
      if (!holds(first.a, step)) {
        break;
      }
      at += step.length;
    }
    return at > begin ? at : at + first_step(text_.substr(at)).length;
  }

  [[nodiscard]] bool holds(std::uint32_t set, utf8_step step) const {
    return step.valid && program_.sets[set][step.code_point];
  }

  /// Where a match of the instructions from `pc` on ends.
  std::size_t run(std::uint32_t pc, std::size_t at) {
    auto const base = stack_.size();
    for (;;) {
      auto const& now = program_.code[pc];
      count();
      bool ok = true;
      ++pc;
      switch (now.does) {
        case operation::set: {
          auto const step = at < text_.size() ? first_step(text_.substr(at)) : utf8_step{0, 0, false};
          ok = holds(now.a, step);
          at += step.length;
          break;
        }
        case operation::run:
          ok = take_run(now, pc, at);
          break;
        case operation::fork:
          pc = fork(now, at);
          break;
        case operation::jump:
          pc = now.a;
          break;
        case operation::ahead:
        case operation::behind:
          ok = asserts(now, pc, at);
          pc = now.a;
          break;
        case operation::atomic:
          at = run(pc, at);
          ok = at != none;
          pc = now.a;
          break;
        case operation::anchor:
          ok = is_at(now.where, at);
          break;
        case operation::accept:
          stack_.resize(base);
          return at;
      }
      if (!ok && !back(base, pc, at)) {
        return none;
      }
    }
  }

  std::uint32_t fork(instruction const& now, std::size_t at) {
    if (now.least != regular_expression::program::no_firsts && at < text_.size() &&
        !program_.firsts[now.least][static_cast<unsigned char>(text_[at])]) {
      return now.b;
    }
    stack_.push_back({now.b, 0, at, at});
    return now.a;
  }

  /// `pc` is the next instruction.
  bool take_run(instruction const& now, std::uint32_t pc, std::size_t& at) {
    auto const begin = at;
    auto least_end = at;
    std::uint32_t taken = 0;
    auto const wanted = now.how == manner::lazy ? now.least : now.most;
    for (; taken < wanted && at < text_.size(); ++taken) {
      auto const step = first_step(text_.substr(at));
      if (!holds(now.a, step)) {
        break;
      }
      at += step.length;
      if (taken + 1 == now.least) {
        least_end = at;
      }
    }
    count(at - begin);
    if (taken < now.least) {
      return false;
    }
    if (now.how == manner::greedy && at > least_end) {
      stack_.push_back({pc, 0, at, least_end});
    }
    if (now.how == manner::lazy && now.most > taken) {
      stack_.push_back({pc, now.most - taken, at, at});
    }
    return true;
  }

  /// Goes to the last choice above `base`; false if there is none.
  bool back(std::size_t base, std::uint32_t& pc, std::size_t& at) {
    while (stack_.size() > base) {
      auto& last = stack_.back();
      count();
      pc = last.pc;
      if (last.left > 0) {  // a lazy run takes one more
        auto const step = last.at < text_.size() ? first_step(text_.substr(last.at)) : utf8_step{0, 0, false};
        if (!holds(program_.code[pc - 1].a, step)) {
          stack_.pop_back();
          continue;
        }
        at = last.at += step.length;
        if (last.left != unlimited && --last.left == 0) {
          stack_.pop_back();
        }
        return true;
      }
      if (last.at == last.limit) {
        at = last.at;
        stack_.pop_back();
        return true;
      }
      // A greedy run gives one back.
      at = last.at -= last_step(text_.substr(0, last.at)).length;
      if (last.at == last.limit) {
        stack_.pop_back();
      }
      return true;
    }
    return false;
  }

  bool asserts(instruction const& now, std::uint32_t pc, std::size_t at) {
    if (now.does == operation::behind) {
      for (std::uint32_t i = 0; i < now.least; ++i) {
        if (at == 0) {
          return now.negative;
        }
        at -= last_step(text_.substr(0, at)).length;
      }
    }
    return (run(pc, at) != none) != now.negative;
  }

  [[nodiscard]] bool is_at(anchor where, std::size_t at) const {
    auto const size = text_.size();
    auto const is_word = [&](bool exists, utf8_step step) {
      return exists && step.valid && program_.word_table[0][step.code_point];
    };
    switch (where) {
      case anchor::begin:
        return at == 0;
      case anchor::end:
        return at == size;
      case anchor::end_or_newline:
        return at == size || (at + 1 == size && text_[at] == '\n');
      case anchor::line_begin:
        return at == 0 || (text_[at - 1] == '\n' && at < size);
      case anchor::line_end:
        return at == size || text_[at] == '\n';
      default: {
        bool const before = at > 0 && is_word(true, last_step(text_.substr(0, at)));
        bool const after = at < size && is_word(true, first_step(text_.substr(at)));
        return (before != after) == (where == anchor::boundary);
      }
    }
  }

  regular_expression::program const& program_;
  std::string_view text_;
  std::uint64_t steps_;
  std::vector<choice> stack_;
};

}  // namespace detail::expression

SUPEROFFLOAD_INLINE regular_expression::regular_expression(std::string_view pattern, std::string_view where)
    : program_{std::make_shared<program>(detail::expression::parser{pattern, where}.read(), pattern, where)} {
}

SUPEROFFLOAD_INLINE bool regular_expression::may_be_empty() const noexcept { return program_->may_be_empty; }

SUPEROFFLOAD_INLINE std::vector<byte_range> regular_expression::matches(std::string_view text,
                                                                        step_limit limit) const {
  detail::expression::machine machine{*program_, text, limit};
  std::vector<byte_range> found;
  for (std::size_t at = 0; at <= text.size();) {
    auto const match = machine.search(at);
    if (!match) {
      break;
    }
    if (match->begin == match->end && !found.empty() && found.back().end == match->end) {
      at += at < text.size() ? first_step(text.substr(at)).length : 1;  // an empty match behind another one
      continue;
    }
    found.push_back(*match);
    at = match->end;
  }
  return found;
}

}  // namespace superoffload::text
