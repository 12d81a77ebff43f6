#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Trains with unusual but legal values of config.json, with the fine-tuners and with transformers:
configurations.py PROGRAMS [--count N] [--seed N] [--only MODEL_TYPE...] [--verbose]

Each architecture gets N random configurations, made as tests/data/configurations/make.py --random makes them. A run has 20
steps of AdamW in float32 with weight decay, warm-up, a falling rate, clipping and two micro-batches, whose rows have unequal
numbers of labels. Every other run packs its rows. With a load-balancing loss of routers or longrope, which depend on
what is in a micro-batch, a step has one.

Each loss is that of PyTorch in float64 on the same rows, within 3e-7 of its size. Steps amplify a rounding: where PyTorch in
float32 is off by more than that, ours may be off by four times as much, and by 1e-5 at most. Losses count up to the step in
which two experts are as good for a token, up to rounding: from there on either choice is right. A program may refuse a
configuration with exit code 2, in a line that names a field of it. Anything else is a difference. Not counted are
configurations that transformers refuses, and those with dropout, whose random numbers differ.

The last line is the total. Exit status: 0 no difference, 1 differences, 77 no torch or transformers.
"""

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

try:
    import torch
    import transformers
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/data/configurations"))
import make  # noqa: E402

KINDS = ("llama", "mistral", "phi3", "qwen2", "qwen3", "qwen3_moe", "seed_oss", "gpt_oss")
STEPS, WARMUP, RATE, DECAY, CLIP = 20, 3, 1e-3, 0.1, 0.5
TOLERANCE, SPREAD, MOST = 3e-7, 4.0, 1e-5
TIE = 2e-6  # of two logits, in float32
DROPOUTS = ("attention_dropout", "residual_dropout", "resid_pdrop", "embd_pdrop")
TOKENIZER = ROOT / "tests/fuzz/corpus/tokenizer/byte_level.json"
# What a message may call a field that config.json has by another name, or in another object.
OTHER_NAMES = {"rope_scaling": ("rope_", "factor", "original_max_position_embeddings"),
               "rope_parameters": ("rope_", "factor"), "hidden_act": ("activation",), "num_experts": ("num_local_experts",)}


def drawn_rows(r, count):
    """Rows of tokens whose first labels are masked, so that micro-batches have unequal numbers of them."""
    rows = []
    for _ in range(count):
        ids = [r.randrange(61) for _ in range(r.randrange(4, 32))]
        masked = r.randrange(1, len(ids) - 1)
        rows.append({"input_ids": ids, "labels": [-100] * masked + ids[masked:]})
    return rows


def steps_of(rows, packed):
    """The rows of each step. Packed, they are all in each: then no order of packing matters."""
    return [rows if packed else [rows[(4 * step + i) % len(rows)] for i in range(4)] for step in range(STEPS)]


def loss_of(model, rows):
    """The loss of a step that is one micro-batch: the mean over its labels, and the load-balancing loss of its routers."""
    total, count, routers = 0.0, 0, []
    longest = max(len(row["input_ids"]) for row in rows) if stretches(model.config) else 0
    for row in rows:
        ids = row["input_ids"]
        padded = ids + [0] * (longest - len(ids))  # behind the row, which does not see it
        out = model(input_ids=torch.tensor([padded]), use_cache=False)
        labels = torch.tensor(row["labels"][1:])
        logits = out.logits[0, :len(ids) - 1]
        total = total + torch.nn.functional.cross_entropy(logits, labels, ignore_index=-100, reduction="sum")
        count += int((labels != -100).sum())
        if balances(model.config):
            routers.append([of_layer[:len(ids)] for of_layer in out.router_logits])
    config = model.config
    if not balances(config):
        return total / count
    balancing = sys.modules[type(model).__module__].load_balancing_loss_func(
        tuple(torch.cat(of_layer) for of_layer in zip(*routers)), config.num_local_experts, config.num_experts_per_tok)
    return total / count + config.router_aux_loss_coef * balancing


def balances(config):
    return bool(getattr(config, "output_router_logits", False))


def stretches(config):
    """Does the longest row of a micro-batch choose the rotary frequencies?"""
    return config.rope_parameters["rope_type"] == "longrope"


def watch_routers(model, choices):
    """Appends to `choices` the logits of the experts that a router chose for each token, and of the next best one."""
    def watch(router, inputs, _):
        logits = torch.nn.functional.linear(inputs[0].reshape(-1, router.weight.shape[1]), router.weight,
                                            getattr(router, "bias", None))
        choices.append(logits.detach().double().topk(min(router.top_k + 1, logits.shape[1])).values)

    for module in model.modules():
        if type(module).__name__.endswith("Router"):
            module.register_forward_hook(watch)


def decided_steps(exact, rounded, steps):
    """The number of steps before two experts were as good for a token, up to what rounding has made of the router by then."""
    for i, (a, b) in enumerate(zip(exact, rounded)):
        if float((a[:, -2] - a[:, -1]).min()) < TIE + SPREAD * float((a - b).abs().max()):
            return i * steps // len(exact)
    return steps


def reference(network, steps, type_):
    """The losses of PyTorch's AdamW, and what routers chose."""
    model = network.to(type_)
    model.train()
    choices = []
    watch_routers(model, choices)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, WARMUP, STEPS)
    losses = []
    for rows in steps:
        optimizer.zero_grad()
        total = loss_of(model, rows)
        total.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        schedule.step()
        losses.append(float(total.detach()))
    return losses, choices


def network_of(config, directory):
    (directory / "config.json").write_text(json.dumps(config))
    read = transformers.AutoConfig.from_pretrained(directory)
    network = transformers.AutoModelForCausalLM.from_config(read, attn_implementation="eager",
                                                            experts_implementation="eager")
    make.fill(network)
    network.tie_weights()
    return network.float()


def trained(program, directory, packed, micro_batches):
    """The losses of a fine-tuner, or the line with which it refuses."""
    metrics = directory / "metrics.jsonl"
    sequences = ["--packing", "on", "--batch_size", "6"] if packed else ["--batch_size", "4"]
    done = subprocess.run(
        [program, "--model", directory, "--dataset", directory / "rows.jsonl", "--format", "tokenized", "--append_eos", "off",
         "--output_dir", directory / "out", "--export", "off", "--device", "cpu", "--dtype", "float32", "--shuffle", "off",
         "--max_length", "64", *sequences, "--gradient_accumulation_steps", str(micro_batches), "--max_steps", str(STEPS),
         "--lr", str(RATE), "--lr_scheduler", "linear", "--lr_warmup_steps", str(WARMUP), "--weight_decay", str(DECAY),
         "--max_grad_norm", str(CLIP), "--metrics", metrics],
        capture_output=True, text=True, timeout=120, env=os.environ | {"SUPEROFFLOAD_NUM_THREADS": "1"}, check=False)
    if done.returncode != 0:
        return done.returncode, done.stderr.strip().split("\n")[-1]
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    return 0, [line["loss"] for line in lines if "step_time_ms" in line]


def names_a_field(message, config):
    fields = set(config)
    for key, value in config.items():
        fields |= set(OTHER_NAMES.get(key, ())) | (set(value) if isinstance(value, dict) else set())
    return any(field in message for field in fields)


def compared(programs, config, number, seed):
    """("equal", largest difference), ("refused", message), ("differs", why) or ("not counted", why)."""
    kind = config["model_type"]
    packed = number % 2 == 1
    r = random.Random(f"{kind} {seed} {number}")
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        rows = drawn_rows(r, 6 if packed else 12)
        (directory / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (directory / "tokenizer.json").write_text(TOKENIZER.read_text())
        steps = steps_of(rows, packed)
        try:
            network = network_of(config, directory)
            drops = any(getattr(network.config, name, 0) for name in DROPOUTS)
            network.save_pretrained(directory)
            exact, choices = reference(network, steps, torch.float64)
            rounded, rounded_choices = reference(network_of(config, directory), steps, torch.float32)
        except Exception as refused:  # of any kind: transformers has no class of its own for what it cannot do
            return "not counted", f"{type(refused).__name__}: {refused}".split("\n")[0]
        decided = decided_steps(choices, rounded_choices, STEPS)
        if not all(map(math.isfinite, exact)):
            return "not counted", "no finite loss"
        (directory / "config.json").write_text(json.dumps(config))  # as it was given, not as transformers writes it
        micro_batches = 1 if balances(network.config) or stretches(network.config) else 2
        code, ours = trained(programs / f"finetune_{kind}", directory, packed, micro_batches)
    if drops and code == 0:
        return "not counted", "dropout"
    if code != 0:
        return ("refused" if code == 2 and names_a_field(ours, config) else "differs"), f"exit code {code}: {ours}"
    if len(ours) != STEPS or decided == 0:
        return ("not counted", "a tie of experts") if decided == 0 else ("differs", f"{len(ours)} steps")
    worst = 0.0
    spread = 0.0
    for step, (a, b, c) in enumerate(zip(ours[:decided], exact, rounded)):
        spread = max(spread, abs(c - b))
        worst = max(worst, abs(a - b))
        if abs(a - b) > max(TOLERANCE * max(1.0, abs(b)), min(MOST, SPREAD * spread)):
            return "differs", f"step {step + 1}: {a} and {b}, {abs(a - b):.2g} apart; PyTorch in float32 {spread:.2g}"
    return "equal", worst


def run_kind(programs, kind, count, seed, verbose):
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float32)
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    counts = {"equal": 0, "refused": 0, "differs": 0}
    lines, worst = [], 0.0
    for number, (changed, config) in enumerate(make.random_configurations(kind, random.Random(f"{kind} {seed}"))):
        if sum(counts.values()) == count:
            break
        result, detail = compared(programs, config, number, seed)
        if result in counts:
            counts[result] += 1
        if result == "equal":
            worst = max(worst, detail)
        if verbose or result == "differs":
            lines.append(f"{kind} {number}: {result}: {', '.join(changed)}: {detail}")
        if result == "differs":
            lines.append(json.dumps(config))
    lines.append(f"{kind}: {counts['equal']} equal within {worst:.2g}, {counts['refused']} refused by name, "
                 f"{counts['differs']} differ")
    return counts, lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", metavar="MODEL_TYPE", nargs="*", default=KINDS)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    total = dict.fromkeys(("equal", "refused", "differs"), 0)
    with concurrent.futures.ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        runs = [pool.submit(run_kind, args.programs, kind, args.count, args.seed, args.verbose) for kind in args.only]
        for run in runs:
            counts, lines = run.result()
            print("\n".join(lines), flush=True)
            total = {name: total[name] + counts[name] for name in total}
    print(f"{total['equal']} equal, {total['refused']} refused by name, {total['differs']} differ")
    sys.exit(1 if total["differs"] else 0)


if __name__ == "__main__":
    main()
