// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>

namespace superoffload {

/// What a policy decides. Every policy names its category by the member `policy_category`.
namespace category {
struct architecture {};
struct device {};
struct precision {};
struct sharding {};
struct offload {};
struct recompute {};
struct profile {};
}  // namespace category

template <class P>
concept policy = requires { typename P::policy_category; };

template <class P, class Category>
concept policy_of = policy<P> && std::same_as<typename P::policy_category, Category>;

namespace detail {
template <class Category, class Default, class... Policies>
struct pick {
  using type = Default;
};
template <class Category, class Default, class First, class... Rest>
struct pick<Category, Default, First, Rest...> : pick<Category, Default, Rest...> {};
template <class Category, class Default, class First, class... Rest>
  requires policy_of<First, Category>
struct pick<Category, Default, First, Rest...> {
  using type = First;
};
}  // namespace detail

/// The policy of `Category` among `Policies`, in any order; `Default` when there is none.
template <class Category, class Default, class... Policies>
using pick = typename detail::pick<Category, Default, Policies...>::type;

template <class Category, class... Policies>
inline constexpr int count_of = (0 + ... + static_cast<int>(policy_of<Policies, Category>));

}  // namespace superoffload
