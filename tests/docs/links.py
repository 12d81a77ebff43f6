#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Checks the built site: links.py SITE

Every relative link and picture of a page leads to a file of the site, every anchor to an id of that page, and no page loads
anything from another host. Doxygen's pages are checked only as targets.
"""

import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loaded = set(), [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.ids.update(value for name in ("id", "name") if (value := attributes.get(name)))
        link = attributes.get("href" if tag in ("a", "link") else "src")
        if link and (tag != "link" or attributes.get("rel") != "canonical"):
            (self.links if tag == "a" else self.loaded).append(link)


def main():
    site = pathlib.Path(sys.argv[1]).resolve()
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))
             if path.relative_to(site).parts[0] != "api" and path.name != "404.html"}
    wrong = []
    for path, page in pages.items():
        name = path.relative_to(site)
        wrong += [f"{name}: loads {link} from another host" for link in page.loaded if urllib.parse.urlsplit(link).netloc]
        for link in page.links + page.loaded:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if target.relative_to(site).parts[:1] == ("api",) and not (site / "api").is_dir():
                continue  # there is no doxygen
            if target.is_dir():
                target = target / "index.html"
            if not target.is_file():
                wrong.append(f"{name}: {link} leads nowhere")
            elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].ids:
                wrong.append(f"{name}: {link}: there is no such anchor")
    print("\n".join(wrong) or f"{len(pages)} pages, every link leads somewhere")
    return 1 if wrong or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
