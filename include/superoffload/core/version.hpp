// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The version is defined here only: CMake parses these three lines.
#define SUPEROFFLOAD_VERSION_MAJOR 0
#define SUPEROFFLOAD_VERSION_MINOR 1
#define SUPEROFFLOAD_VERSION_PATCH 0
