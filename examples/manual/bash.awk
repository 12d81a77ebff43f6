# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
#
# Completion for bash. A flag may be written with dashes or underscores: both are looked up as underscores.

END {
  printf "_superoffload_%s() {\n", program
  print "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}"
  print "  if [[ $cur == = ]]; then"
  print "    cur="
  print "  elif [[ $prev == = ]]; then"
  print "    prev=${COMP_WORDS[COMP_CWORD - 2]}"
  print "  fi"
  print "  case ${prev//-/_} in"
  for (i = 1; i <= count; ++i) {
    n = split(names[i], each, ",")
    for (k = 1; k <= n; ++k) { flags = flags (flags ? " " : "") each[k] }
    if (!value[i] || value[i] == "REQUIRED") { continue }
    pattern = names[i]
    gsub(/-/, "_", pattern)
    gsub(/,/, "|", pattern)
    delete words
    n = choices(i, words)
    list = ""
    for (k = 1; k <= n; ++k) { list = list (k > 1 ? " " : "") words[k] }
    printf "    %s)\n", pattern
    if (paths) { print "      compopt -o filenames" }
    printf "      mapfile -t COMPREPLY < <(compgen%s -W '%s' -- \"$cur\")\n      return ;;\n", \
      paths == "file" ? " -f" : paths == "directory" ? " -d" : "", list
  }
  print "  esac"
  printf "  mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$cur\")\n}\n", flags
  printf "complete -F _superoffload_%s %s\n", program, program
}
