# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""A hook of MkDocs: Doxygen's reference of the library becomes api/ of the site, where there is a doxygen."""

import logging
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def on_post_build(config):
    if not shutil.which("doxygen"):
        logging.getLogger("mkdocs.hooks").info("without doxygen the site has no api/")
        return
    settings = (ROOT / "docs/Doxyfile").read_text(encoding="utf-8")
    settings += f"\nHTML_OUTPUT = {pathlib.Path(config.site_dir) / 'api'}\nWARNINGS = NO\n"
    subprocess.run(["doxygen", "-"], input=settings, text=True, cwd=ROOT, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
