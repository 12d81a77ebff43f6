// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace superoffload {

template <class Signature>
class function_ref;

/// Refers to an object that can be called with `Arguments`, and does not own it: for parameters that are
/// called before the function returns. So a function with such a parameter need not be a template. Two
/// pointers, trivially copyable.
template <class R, class... Arguments>
class function_ref<R(Arguments...)> {
public:
  /// What `f` refers to must live as long as this is called.
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, function_ref> &&
             std::is_object_v<std::remove_reference_t<F>> && std::is_invocable_r_v<R, F&, Arguments...>)
  function_ref(F&& f) noexcept
      : callable_{const_cast<void*>(static_cast<void const*>(std::addressof(f)))},
        call_{[](void* callable, Arguments... arguments) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(callable))(std::forward<Arguments>(arguments)...);
        }} {}

  /// Calls it.
  R operator()(Arguments... arguments) const {
    return call_(callable_, std::forward<Arguments>(arguments)...);
  }

private:
  void* callable_;
  R (*call_)(void*, Arguments...);
};

}  // namespace superoffload
