# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""A hook of MkDocs: links of the pages to files outside of docs/ work in the site, as they do in the repository.

Every file that a page links to, and every file that such a page links to, is in the site as repository/PATH. So the site
needs no address of the repository. A link to a missing file is a warning of MkDocs, and so an error with --strict.
"""

import pathlib
import posixpath
import re

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUTSIDE = "repository/"
# A fenced block, or code, in which nothing is a link; or a link: what stands before its target, target, anchor.
LINK = re.compile(r"(?ms)^( *```).*?^ *```|(`+)(?:(?!\2).)+?\2|(?P<before>\]\()(?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?(?=\))")
# MkDocs' parser shows the backslash of a | that a table's code has escaped.
CODE_IN_TABLE = re.compile(r"(?m)^\|.*$")


def in_repository(uri):
    """The path in the repository of a file of the site."""
    return uri.removeprefix(OUTSIDE) if uri.startswith(OUTSIDE) else "docs/" + uri


def in_site(path):
    return path.removeprefix("docs/") if path.startswith("docs/") else OUTSIDE + path


def linked(path, target):
    """The path in the repository that a page's link means, None for one that leads out of it."""
    if re.match(r"[a-z]+:|/", target):
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def links_outside(path):
    for match in LINK.finditer((ROOT / path).read_text(encoding="utf-8")):
        found = match["target"] and linked(path, match["target"])
        if found and not found.startswith("docs/") and (ROOT / found).is_file():
            yield found


def on_files(files, config):
    pages = [in_repository(file.src_uri) for file in files.documentation_pages()]
    seen = {"CONTRIBUTING.md", "CHANGELOG.md"}
    pages += sorted(seen)
    while pages:
        for found in links_outside(pages.pop()):
            if found not in seen:
                seen.add(found)
                if found.endswith(".md"):
                    pages.append(found)
    for path in sorted(seen):
        files.append(File.generated(config, in_site(path), abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown, page, config, files):
    uri = page.file.src_uri
    path = in_repository(uri)

    def rewritten(match):
        found = match["target"] and linked(path, match["target"])
        if not found or found == path:
            return match[0]
        return f"](" + posixpath.relpath(in_site(found), posixpath.dirname(uri) or ".") + (match["anchor"] or "")

    return CODE_IN_TABLE.sub(lambda row: re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), row[0]),
                             LINK.sub(rewritten, markdown))
