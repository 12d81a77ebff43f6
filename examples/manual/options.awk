# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
#
# awk -v program=NAME -f options.awk -f man.awk: reads what NAME --help prints. The other file writes at its END what it
# needs of: summary, usage, footer; options 1 to `count`, each with group[i], names[i] (with commas), value[i] (empty where
# it takes none), text[i].

# The width of the names and values is where all descriptions begin. What is wider, which CLI11 2.5 and later end with two
# spaces, has its description in the next line.
/^  +-/ && (!column || match($0, /^ +/) && RLENGTH < column - 1) {
  if (!column) { column = index($0, "Print this help") }
  described = substr($0, column - 1, 1) == " " && !/  $/
  head = described ? substr($0, 1, column - 1) : $0
  gsub(/^ +| +$/, "", head)
  while (sub(/, +-/, ",-", head)) {}  # these align the names, too
  ++count
  group[count] = title
  text[count] = described ? substr($0, column) : ""
  space = index(head, " ")
  names[count] = space ? substr(head, 1, space - 1) : head
  value[count] = space ? substr(head, space + 1) : ""
  next
}
/^ +[^ ]/ && count && !footer {
  sub(/^ +/, "")
  text[count] = text[count] (text[count] ? " " : "") $0
  next
}
/^ *$/ { next }
/^[^ ].*:$/ && usage && !footer { title = substr($0, 1, length($0) - 1); next }
!summary { summary = $0; next }
!usage { usage = $0; sub(/^Usage: /, "", usage); next }
{ footer = footer (footer ? "\n" : "") $0 }
END {
  if (!count) {
    print program ": its --help lists no option" >"/dev/stderr"
    exit 1
  }
}

# kind(WORD): what a value so named is: file, directory, text (nothing to complete), or the very word.
function kind(word) {
  sub(/\[.*/, "", word)  # what may follow it
  if (word == "FILE" || word == "PATH") { return "file" }
  if (word == "DIR") { return "directory" }
  return word ~ /^[A-Z]+$/ ? "text" : "word"
}

# choices(i): fills `words` with the words that option i takes. Sets `paths`: file, directory or empty.
function choices(i, words, taken, parts, n, k, type) {
  type = value[i]
  sub(/[= ].*/, "", type)  # the default
  n = split(type, parts, "|")
  paths = ""
  taken = 0
  for (k = 1; k <= n; ++k) {
    type = kind(parts[k])
    if (type == "word") { words[++taken] = parts[k] }
    else if (type != "text") { paths = type }
  }
  return taken
}
