# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
#
# Completion for zsh.

function quoted(s) {
  gsub(/'/, "'\\''", s)
  gsub(/\\/, "\\\\", s)
  gsub(/\[/, "\\[", s)
  gsub(/\]/, "\\]", s)
  gsub(/:/, "\\:", s)
  return s
}

END {
  printf "#compdef %s\n\n_arguments", program
  for (i = 1; i <= count; ++i) {
    delete words
    n = choices(i, words)
    action = ""
    for (k = 1; k <= n; ++k) { action = action (k > 1 ? " " : "") words[k] }
    if (action) { action = "(" action ")" }
    if (paths == "file") { action = "_files" }
    if (paths == "directory") { action = "_files -/" }
    type = value[i]
    sub(/[= ].*/, "", type)
    n = split(names[i], each, ",")
    for (k = 1; k <= n; ++k) {
      printf " \\\n  '%s[%s]%s'", each[k], quoted(text[i]), type && type != "REQUIRED" ? ":" quoted(type) ":" action : ""
    }
  }
  print ""
}
