#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Draws README's picture, docs/images/throughput.svg, from bench/results: throughput.py [--check]

--check writes nothing and fails where the picture is not the one that these results give.
"""

import json
import sys

from picture import ROOT, svg, write_or_check

RESULTS = ROOT / "bench/results"
WIDTH, LEFT, BAR, ROW, HEAD = 890, 330, 440, 26, 34
OURS, THEIRS = "#2f6fde", "#9aa3af"


def measured(name):
    """Tokens per second of a benchmark of ours."""
    return json.loads((RESULTS / f"{name}.json").read_text())["results"]["tokens_per_second"]


def peer(system, layers, state):
    found = [row["tokens_per_second"] for row in json.loads((RESULTS / "peers.json").read_text())["results"]
             if row["system"] == system and row["layers"] == layers and row["state"] == state]
    if len(found) != 1:
        sys.exit(f"peers.json: expected one row of {system}, {layers} layers, {state}; found {len(found)}")
    return found[0]


def groups():
    on_host, on_gpu = "in host memory", "bf16, on the GPU"
    most_on_host = "90 % in host memory, every block recomputed, clipping 1.0"
    return [
        ("Llama-8B, optimizer state in host memory", [
            ("superoffload, part of it updated on the GPU", measured("gpu_offload_32_streamed"), True),
            ("superoffload, all updated by the CPU", measured("gpu_offload_32_host"), True),
            ("llmq", peer("llmq", 32, on_host), False),
            ("DeepSpeed ZeRO-Offload", peer("DeepSpeed ZeRO-Offload", 32, on_host), False),
            ("DeepSpeed SuperOffload", peer("DeepSpeed SuperOffload", 32, on_host + ", clipping 1.0"), False)]),
        ("Llama-8B, optimizer state on the GPU", [
            ("superoffload, bf16 weights with fp32 master", measured("gpu_train_32_layers"), True),
            ("torch.compile, bf16 state", peer("torch.compile", 32, on_gpu), False),
            ("llmq, bf16 state", peer("llmq", 32, on_gpu), False)]),
        ("8 layers of it, 90 % of the state in host memory, same host, same hour", [
            ("superoffload", peer("superoffload f148614, streamed share planned", 8, most_on_host), True),
            ("DeepSpeed SuperOffload", peer("DeepSpeed 0.19.8 SuperOffload", 8, most_on_host), False)]),
    ]


def draw():
    lines, y = [], 14
    for title, rows in groups():
        y += HEAD
        lines.append(f'<text x="20" y="{y - 10}" class="title">{title}</text>')
        most = max(value for _, value, _ in rows)
        for label, value, ours in rows:
            length = BAR * value / most
            lines.append(f'<text x="{LEFT - 10}" y="{y + 16}" class="label">{label}</text>')
            lines.append(f'<rect x="{LEFT}" y="{y + 3}" width="{length:.1f}" height="{ROW - 8}" rx="2" '
                         f'fill="{OURS if ours else THEIRS}"/>')
            lines.append(f'<text x="{LEFT + length + 8:.1f}" y="{y + 16}" class="value">{value:,.0f}</text>')
            y += ROW
    y += 30
    lines.append(f'<text x="20" y="{y}" class="note">Tokens per second on one NVIDIA H200, steps of 4 x 2048 tokens, '
                 'bf16 GEMMs; no step of ours was clipped. Figures: bench/results.</text>')
    style = ("text{font-family:sans-serif;fill:#1f2937}.title{font-size:15px;font-weight:bold}.label{font-size:13px;"
             "text-anchor:end}.value{font-size:13px}.note{font-size:12px;fill:#6b7280}")
    height = y + 18
    return svg(WIDTH, height, style, lines)


if __name__ == "__main__":
    write_or_check("throughput", draw(), __doc__)
