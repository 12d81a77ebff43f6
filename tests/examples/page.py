#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Opens the page of a run in Chromium without a window: page.py FINETUNE MODEL DATASET

Its script must end without an error, the values of the run must be in the document, names from outside must be text, and
nothing may be loaded from elsewhere. Without Chromium the test is skipped (exit status 77).
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HOSTILE = "</script><script>document.title='taken'<" + "img src=x onerror=document.title='taken'>&amp;\".json"


def browse(browser, page, home):
    """The document after the scripts, and what they said."""
    done = subprocess.run([browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                           "--enable-logging=stderr", f"--user-data-dir={home}", "--virtual-time-budget=3000",
                           "--window-size=1280,2400", "--dump-dom", page.as_uri()],
                          capture_output=True, text=True, timeout=100)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def main(program, model, dataset):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        print("skipped: it needs chromium")
        raise SystemExit(77)
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        data = root / HOSTILE  # a file in the directory "<"
        data.parent.mkdir()
        shutil.copy(dataset, data)
        subprocess.run([program, "--model", model, "--dataset", data, "--eval_dataset", dataset, "--dataset_percentage", "30",
                        "--output_dir", root / "out", "--device", "cpu", "--max_length", "64", "--batch_size", "2",
                        "--label_mask", "none", "--ratio", "0.5", "--max_steps", "6", "--eval_steps", "3", "--report_to", "html"],
                       check=True, stdout=subprocess.DEVNULL, timeout=100)
        page = root / "out" / "reports" / "report.html"
        text = page.read_text()
        lines = [json.loads(line) for line in (page.parent / "metrics.jsonl").read_text().splitlines()]
        document, said = browse(browser, page, root / "home")
        broken = root / "broken.html"
        broken.write_text(re.sub(r'("points":)', r'"points_":', text, count=1))
        broken_document, broken_said = browse(browser, broken, root / "home")
    assert not said, said
    assert broken_said and "<footer>" not in broken_document, "an error of the script would not be noticed"
    assert "<footer>superoffload " in document, "the script did not reach its end"
    loss, held_out = ([line[name] for line in lines if name in line][-1] for name in ("loss", "eval_loss"))
    for value in (loss, held_out):
        assert f"<b>{float(f'{value:.4g}'):g}</b>" in document, (value, re.findall("<b>.*?</b>", document))
    assert ">finished</span>" in document and "step 6 of 6" in document
    for expected in ("as planned: ", "step 5, as measured: ", "<td>--batch_size</td><td>2</td>", "optimizer state", "CPU Adam"):
        assert expected in document, expected
    assert len(re.findall("<path ", document)) >= 5 and len(re.findall("<rect ", document)) >= 10
    assert "<title>taken" not in document and "<img" not in document
    assert not re.search(r"""(src|href|url\()\s*=?\s*["']?(https?:)?//""", text), "the page loads something"
    print(f"the page has {len(text)} bytes; {len(re.findall('<rect ', document))} boxes in its timelines")


if __name__ == "__main__":
    main(*sys.argv[1:])
