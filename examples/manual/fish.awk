# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
#
# Completion for fish.

END {
  printf "complete -c %s -f\n", program
  for (i = 1; i <= count; ++i) {
    delete words
    n = choices(i, words)
    list = ""
    for (k = 1; k <= n; ++k) { list = list (k > 1 ? " " : "") words[k] }
    if (paths == "directory") { list = list (list ? " " : "") "(__fish_complete_directories)" }
    printf "complete -c %s", program
    n = split(names[i], each, ",")
    for (k = 1; k <= n; ++k) {
      flag = each[k]
      printf sub(/^--/, "", flag) ? " -l %s" : " -s %s", substr(flag, 1 + (flag ~ /^-/))
    }
    if (value[i] && value[i] != "REQUIRED") { printf paths == "file" ? " -rF" : " -x" }
    if (list) { printf " -a '%s'", list }
    gsub(/['\\]/, "\\\\&", text[i])
    printf " -d '%s'\n", text[i]
  }
}
