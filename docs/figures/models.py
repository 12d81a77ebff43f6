#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Draws docs/images/models.svg from bench/results: the rate of each model's shape, and its step beside the planned one:
models.py [--check]

--check writes nothing and fails where the picture is not the one that these results give.
"""

import json

from picture import ROOT, svg, write_or_check

WIDTH, LEFT, BAR, ROW = 890, 200, 430, 30
MEASURED, PLANNED = "#2f6fde", "#1f2937"
SHAPES = [
    ("Llama-8B, 1 GPU", "gpu_model_llama-8b"),
    ("Phi-4, 1 GPU", "gpu_model_phi-4"),
    ("Qwen3-14B, 1 GPU", "gpu_model_qwen3-14b"),
    ("gpt-oss-20b, 1 GPU", "gpu_model_gpt-oss-20b"),
    ("gpt-oss-20b, 2 GPUs", "gpu_model_gpt-oss-20b_2_gpus"),
    ("Qwen3-30B-A3B, 2 GPUs", "gpu_model_qwen3-30b-a3b_2_gpus"),
    ("Seed-OSS-36B, 2 GPUs", "gpu_model_seed-oss-36b_2_gpus"),
    ("Llama-70B, 4 GPUs", "gpu_train_70b_clipped_at_0"),
]


def draw():
    rows = [(label, json.loads((ROOT / f"bench/results/{name}.json").read_text())["results"]) for label, name in SHAPES]
    most = max(result["model_tflops"] * result["step_time_ms"] / min(result["step_time_ms"], result["planned_step_time_ms"])
               for _, result in rows)
    lines, y = ['<text x="20" y="30" class="title">Model TFLOPS per GPU</text>'], 44
    for label, result in rows:
        length = BAR * result["model_tflops"] / most
        planned = length * result["step_time_ms"] / result["planned_step_time_ms"]
        lines.append(f'<text x="{LEFT - 10}" y="{y + 16}" class="label">{label}</text>')
        lines.append(f'<rect x="{LEFT}" y="{y + 3}" width="{length:.1f}" height="{ROW - 12}" rx="2" fill="{MEASURED}"/>')
        lines.append(f'<rect x="{LEFT + planned - 1:.1f}" y="{y}" width="2" height="{ROW - 6}" fill="{PLANNED}"/>')
        lines.append(f'<text x="{LEFT + max(length, planned) + 10:.1f}" y="{y + 16}" class="value">'
                     f'{result["model_tflops"]:,.0f}; {result["tokens_per_second"]:,.0f} tokens/s</text>')
        y += ROW
    y += 20
    lines.append(f'<text x="20" y="{y}" class="note">NVIDIA H200, 16 cores and 125 GiB of host memory per GPU, bf16, without '
                 'clipping. The line: as planned. Figures: bench/results.</text>')
    style = ("text{font-family:sans-serif;fill:#1f2937}.title{font-size:15px;font-weight:bold}.label{font-size:13px;"
             "text-anchor:end}.value{font-size:13px}.note{font-size:12px;fill:#6b7280}")
    return svg(WIDTH, y + 18, style, lines)


if __name__ == "__main__":
    write_or_check("models", draw(), __doc__)
