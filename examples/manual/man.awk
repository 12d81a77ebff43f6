# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
#
# A manual page. -v version=VERSION

function roff(s) {
  gsub(/\\/, "\\e", s)
  gsub(/-/, "\\-", s)
  gsub(/^[.']/, "\\\\\\&&", s)
  return s
}

# A list of choices may be longer than a line.
function breakable(s) {
  gsub(/\|/, "|\\:", s)
  return s
}

END {
  name = summary
  sub(/\.$/, "", name)
  printf ".TH %s 1 \"\" \"superoffload %s\" \"User Commands\"\n", toupper(program), version
  printf ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n", roff(program), roff(name), roff(program)
  printf "[\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n%s\n.SH OPTIONS\n", roff(summary)
  for (i = 1; i <= count; ++i) {
    if (group[i] != group[i - 1] && tolower(group[i]) != "options") { printf ".SS \"%s\"\n", roff(group[i]) }
    gsub(/,/, ", ", names[i])
    printf ".TP\n\\fB%s\\fR", roff(names[i])
    if (value[i]) { printf " \\fI%s\\fR", breakable(roff(value[i])) }
    printf "\n%s\n", roff(text[i])
  }
  if (footer) { printf ".SH NOTES\n%s\n", roff(footer) }
}
