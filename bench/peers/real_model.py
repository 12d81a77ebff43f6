#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes a published Llama on the bundled rows with finetune_llama, then with transformers on the same batches, both on the CPU
in float32: bench/peers/real_model.py MODEL [--steps N] [--programs DIR] [--scratch DIR]

Prints a JSON object: the losses of both runs and their largest difference, the held-out losses, the time of our run, and what
the model and its export answer to a few instructions. What a scratch directory has from an earlier run is not run again.
Needs torch and transformers. On an otherwise idle machine: bench/record.py laptop_smollm2 bench/peers/real_model.py MODEL
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROWS, HELD_OUT = ROOT / "examples/data/alpaca_en_demo.json", ROOT / "examples/data/alpaca_held_out.jsonl"
BATCH, WARMUP, RATE, LENGTH = 4, 10, 5e-5, 256
INSTRUCTIONS = ("Name three primary colours.", "Describe the structure of an atom in two sentences.",
                "Write a short thank-you note to a teacher.")
PROMPT = ("Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n"
          "### Instruction:\n{}\n\n### Response:\n")


def ours(model, steps, programs, scratch):
    """The losses of a run of finetune_llama. Its export stays in the scratch directory."""
    metrics = scratch / "metrics.jsonl"
    if not metrics.exists():
        begin = time.monotonic()
        subprocess.run([programs / "finetune_llama", "--model", model, "--dataset", ROWS, "--eval_dataset", HELD_OUT,
                        "--output_dir", scratch / "tuned", "--overwrite_output_dir", "--metrics", scratch / "unfinished",
                        "--device", "cpu", "--dtype", "float32", "--shuffle", "off", "--max_length", str(LENGTH),
                        "--batch_size", str(BATCH), "--max_steps", str(steps), "--lr", str(RATE), "--lr_scheduler", "cosine",
                        "--lr_warmup_steps", str(WARMUP)], check=True, stdout=subprocess.DEVNULL)
        (scratch / "seconds").write_text(str(time.monotonic() - begin))
        (scratch / "unfinished").rename(metrics)
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    done = [line for line in lines if "step_time_ms" in line]
    held_out = [line["eval_loss"] for line in lines if "eval_loss" in line]
    return {"losses": [line["loss"] for line in done], "held_out": [held_out[0], held_out[-1]],
            "seconds": float((scratch / "seconds").read_text()),
            "step_seconds": statistics.median(line["step_time_ms"] for line in done) / 1e3,
            "tokens_per_second": statistics.median(line["tokens_per_second"] for line in done)}


def rows_of(model, dataset, programs):
    """(ids, labels) of each row, as the fine-tuner has them."""
    done = subprocess.run([programs / "tokenize", "--model", model, "--dataset", dataset, "--max_length", str(LENGTH)],
                          check=True, stdout=subprocess.PIPE, text=True)
    for line in done.stdout.splitlines():
        row = json.loads(line)
        ids = torch.tensor(row["ids"])
        yield ids, torch.where(torch.tensor(row["mask"], dtype=torch.bool), ids, -100)


def loss_of(network, ids, labels):
    """The sum over a row, and its number of learnt tokens."""
    logits = network(input_ids=ids[None]).logits[0, :-1].float()
    learnt = labels[1:]
    return torch.nn.functional.cross_entropy(logits, learnt, ignore_index=-100, reduction="sum"), int((learnt != -100).sum())


@torch.no_grad()
def held_out_loss(network, rows):
    sums = [loss_of(network, *row) for row in rows]
    return float(sum(loss for loss, _ in sums)) / sum(count for _, count in sums)


def theirs(model, steps, programs, scratch):
    """The losses of AdamW in PyTorch on transformers' model."""
    kept = scratch / "transformers.json"
    if kept.exists():
        return json.loads(kept.read_text())
    network = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    rows, held_out = list(rows_of(model, ROWS, programs)), list(rows_of(model, HELD_OUT, programs))
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.0)
    schedule = transformers.get_cosine_schedule_with_warmup(optimizer, WARMUP, steps)
    before, losses = held_out_loss(network, held_out), []
    for step in range(steps):
        batch = [rows[(step * BATCH + i) % len(rows)] for i in range(BATCH)]
        count = sum(int((labels[1:] != -100).sum()) for _, labels in batch)
        optimizer.zero_grad()
        total = 0.0
        for row in batch:
            loss = loss_of(network, *row)[0] / count
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(total)
    made = {"losses": losses, "held_out": [before, held_out_loss(network, held_out)]}
    kept.write_text(json.dumps(made))
    return made


@torch.no_grad()
def answers(model):
    network = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    for instruction in INSTRUCTIONS:
        prompt = tokenizer(PROMPT.format(instruction), return_tensors="pt")
        ids = network.generate(**prompt, max_new_tokens=64, do_sample=False)[0, prompt["input_ids"].shape[1]:]
        yield tokenizer.decode(ids, skip_special_tokens=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("model", type=pathlib.Path)
    arguments.add_argument("--steps", type=int, default=200)
    arguments.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/release/bin")
    arguments.add_argument("--scratch", type=pathlib.Path)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        scratch = given.scratch or pathlib.Path(temporary)
        scratch.mkdir(parents=True, exist_ok=True)
        run = ours(given.model, given.steps, given.programs, scratch)
        reference = theirs(given.model, given.steps, given.programs, scratch)
        difference = max(abs(a - b) for a, b in zip(run["losses"], reference["losses"], strict=True))
        print(json.dumps({
            "model": given.model.name, "threads": len(os.sched_getaffinity(0)), "steps": given.steps,
            "largest_difference_of_loss": difference,
            "largest_difference_of_held_out_loss": max(map(abs, map(float.__sub__, run["held_out"], reference["held_out"]))),
            "superoffload": run, "transformers": reference, "instructions": INSTRUCTIONS,
            "answers_before": list(answers(given.model)), "answers_after": list(answers(scratch / "tuned/model"))}))


if __name__ == "__main__":
    main()
