// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// The expected words are only in the quoted source line, not in the error.
// error: the_quoted_line
int main() { int the_quoted_line = undeclared; }
