#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Uploads the offline run of a fine-tuner with `wandb sync`, to a server of its own: wandb_sync.py FINETUNE MODEL DATASET

The server is a stand-in of this script on the loopback interface: nothing leaves the machine. It takes what the real client
sends of a run that was resumed in its middle; the history must have the values of the metrics, every step once. The
package is that of PyPI, in a virtual environment that is kept in ${XDG_CACHE_HOME:-~/.cache}/superoffload; where it cannot be
had, the test is skipped (exit status 77).
"""

import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

from environment import environment_with

OF_METRICS = {"train/loss": "loss", "train/grad_norm": "grad_norm", "train/learning_rate": "lr",
              "speed/tokens_per_second": "tokens_per_second", "memory/device_peak_bytes": "device_bytes",
              "speculation/hit_rate": "hit_rate"}


class StandIn(http.server.BaseHTTPRequestHandler):
    """As much of the server as a client needs to upload a run."""

    files, buckets, done = {}, [], []

    def answer(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            asked = json.loads(body)
        except ValueError:
            asked = {}
        out = {}
        if self.path.endswith("/file_stream"):
            for name, part in (asked.get("files") or {}).items():
                self.files.setdefault(name, {}).update({part["offset"] + i: line for i, line in enumerate(part["content"])})
            if asked.get("complete"):
                self.done.append(asked["exitcode"])
        else:
            query, variables = asked.get("query", ""), asked.get("variables") or {}
            if "UpsertBucket" in query:
                self.buckets.append(variables)
                project = {"id": "p", "name": variables["project"], "entity": {"id": "e", "name": "me"}}
                out = {"upsertBucket": {"bucket": {"id": "b", "name": variables["name"], "displayName": variables["displayName"],
                                                   "config": variables["config"], "project": project, "historyLineCount": 0},
                                        "inserted": True}}
            elif "CreateRunFiles" in query:
                url = f"http://127.0.0.1:{self.server.server_port}/upload"
                out = {"createRunFiles": {"runID": "b", "uploadHeaders": [],
                                          "files": [{"name": name, "uploadUrl": url} for name in variables["files"]]}}
            out = {"data": out}
        text = json.dumps(out).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = answer

    def log_message(self, *_):
        pass


def train(program, model, dataset, output, *more):
    subprocess.run([program, "--model", model, "--dataset", dataset, "--eval_dataset", dataset, "--dataset_percentage", "30",
                    "--output_dir", output, "--device", "cpu", "--max_length", "64", "--batch_size", "2", "--label_mask",
                    "none", "--ratio", "0.5", "--max_steps", "40", "--num_train_epochs", "9", "--save_steps", "20",
                    "--eval_steps", "20", "--lr_scheduler", "constant", "--report_to", "wandb,jsonl", "--quiet", *more],
                   check=True, timeout=100)


def main(program, model, dataset):
    wandb = environment_with("wandb", ">=0.31,<0.32", ["wandb", "--version"]) / "wandb"
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as directory:
        output = pathlib.Path(directory)
        train(program, model, dataset, output)
        shutil.rmtree(output / "checkpoint-40")
        (run,) = (output / "reports" / "wandb").iterdir()
        (log,) = run.iterdir()
        with log.open("ab") as file:  # what a power failure may leave
            file.write(b"\x01\x02\x03half a record")
        train(program, model, dataset, output, "--resume", "auto")
        assert list((output / "reports" / "wandb").iterdir()) == [run]
        lines = [json.loads(line) for line in (output / "reports" / "metrics.jsonl").read_text().splitlines()]
        synced = subprocess.run([wandb, "sync", run], cwd=output, timeout=60, capture_output=True, text=True,
                                env={**os.environ, "WANDB_BASE_URL": f"http://127.0.0.1:{server.server_port}",
                                     "WANDB_API_KEY": "0" * 40, "WANDB_ERROR_REPORTING": "false", "HOME": directory})
        size = log.stat().st_size
    assert synced.returncode == 0, synced.stdout + synced.stderr
    assert size > 40000, size  # more than a block of the log
    bucket = StandIn.buckets[0]
    config = json.loads(bucket["config"])
    assert bucket["project"] == "superoffload" and bucket["displayName"] == "fine-tuning llama", bucket
    assert config["batch_size"]["value"] == 2 and config["lr_scheduler"]["value"] == "constant", config
    assert "optimizer state" in config["plan"]["value"], config["plan"]
    history = [json.loads(line) for _, line in sorted(StandIn.files["wandb-history.jsonl"].items())]
    assert [line["_step"] for line in history] == list(range(len(history)))
    steps = [line for line in lines if "loss" in line]
    seen = [line for line in history if "train/loss" in line]
    assert [line["step"] for line in seen] == list(range(1, 41)), [line["step"] for line in seen]
    for tag, name in OF_METRICS.items():
        assert [line[tag] for line in seen] == [line[name] for line in steps], tag
    evaluations = [(line["step"], line["eval/loss"]) for line in history if "eval/loss" in line]
    assert evaluations == [(line["step"], line["eval_loss"]) for line in lines if "eval_loss" in line], evaluations
    summary = json.loads(StandIn.files["wandb-summary.json"][0])
    assert summary["train/loss"] == steps[-1]["loss"], summary
    assert StandIn.done == [0], StandIn.done
    print(f"wandb sync uploaded {len(history)} lines of {size} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
