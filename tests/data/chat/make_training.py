#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Makes training.json: training runs on conversations, by transformers, from the ids and masks of the cases.

  make_training.py       needs what ../models/make.py needs
"""
import json
import math
import pathlib
import sys

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "models"))
import make  # noqa: E402

ROWS = ["system_three_turns", "two_turns", "ends_with_user", "tool_two_rounds", "assistant_twice", "scripts",
        "tool_arguments_rich", "code"]
ARGS = {"first_row": 0, "optimizer": "adamw", "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "dtype": "float32",
        "schedule": "cosine", "warmup_steps": 2, "total_steps": 6, "weight_decay": 0.1, "clip": 0.5, "label_mask": "prompt",
        "eos": False, "accumulation": 2, "packing": False, "lr": 5e-4, "max_length": 256, "batch": 4, "micro_batch": 2,
        "steps": 6}
RUNS = [("llama", "llama3", "all"), ("qwen3", "qwen3", "last"), ("gpt_oss", "gpt_oss", "all")]


def example(case, learn):
    labels = [-100] * len(case["ids"])
    for begin, end in case["mask_" + learn]:
        labels[begin:end] = case["ids"][begin:end]
    return {"input_ids": case["ids"][:ARGS["max_length"]], "labels": labels[:ARGS["max_length"]]}


def padded(rows):
    longest = max(len(r["input_ids"]) for r in rows)
    fill = lambda key, value: torch.tensor([r[key] + [value] * (longest - len(r[key])) for r in rows])
    mask = torch.tensor([[1] * len(r["input_ids"]) + [0] * (longest - len(r["input_ids"])) for r in rows])
    return fill("input_ids", 0), fill("labels", -100), mask


def train(model_name, template, learn):
    cases = {c["name"]: c for c in json.loads((HERE / f"{template}.json").read_text())["cases"]}
    rows = [example(cases[name], learn) for name in ROWS]
    model = make.load(HERE.parent / "models" / model_name)
    optimizer = torch.optim.AdamW(model.parameters(), lr=ARGS["lr"], betas=(ARGS["beta1"], ARGS["beta2"]), eps=ARGS["eps"],
                                  weight_decay=ARGS["weight_decay"])
    run = {"model": model_name, "template": template, "learn": learn, "rows": ROWS, "args": ARGS, "loss": [],
           "grad_norm": [], "lr": [], "label_tokens": []}
    for k in range(ARGS["steps"]):
        begin = k * ARGS["batch"] % len(rows)
        step = rows[begin:begin + ARGS["batch"]]
        size = ARGS["micro_batch"]
        micro_batches = [padded(step[i:i + size]) for i in range(0, len(step), size)]
        divisor = sum(make.targets(labels) for _, labels, _ in micro_batches)
        optimizer.zero_grad()
        total = 0.0
        for ids, labels, mask in micro_batches:
            logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits
            loss = make.token_losses(logits, labels) / divisor
            loss.backward()
            total += float(loss.detach())
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), ARGS["clip"] or math.inf)
        for group in optimizer.param_groups:
            group["lr"] = make.rate(ARGS, k)
        optimizer.step()
        for key, value in {"loss": total, "grad_norm": norm, "lr": make.rate(ARGS, k)}.items():
            run[key].append(make.number(value))
        run["label_tokens"].append(divisor)
    return run


def main():
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(2)
    (HERE / "training.json").write_text(make.text_of({"runs": [train(*run) for run in RUNS]}) + "\n")


if __name__ == "__main__":
    main()
