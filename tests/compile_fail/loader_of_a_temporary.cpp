// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// A loader refers to its examples, which must outlive it.
// error: (use of deleted function|call to deleted constructor)
#include <superoffload/data/loader.hpp>

int main() { superoffload::data::loader loader{superoffload::data::example_set{}, {}}; }
