#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Makes a small checkpoint with its expected.json; or checks the expected.json of an existing one.

  make.py mistral --tokenizer llama   models/mistral has a config.json: gives it random weights, the tokenizer of
                                      models/llama, and expected.json with the runs `plain` and `schedule`
  make.py llama --check               computes the float32 numbers of models/llama again (no packed run) and
                                      prints the largest relative difference of losses and gradient norms

Needs torch, transformers, tokenizers and safetensors in the versions that tests/data/README.md names.
"""
import argparse
import json
import math
import pathlib
import shutil

import torch
import transformers

MODELS = pathlib.Path(__file__).resolve().parent
ROWS = MODELS.parent.parent.parent / "examples/data/alpaca_en_demo.json"
COMMON = {"data": "data/alpaca_en_demo.json", "first_row": 0, "optimizer": "adamw", "beta1": 0.9, "beta2": 0.999,
          "eps": 1e-8, "dtype": "float32"}
RUNS = [
    COMMON | {"schedule": "constant", "warmup_steps": 0, "total_steps": 0, "weight_decay": 0.0, "clip": 0.0,
              "label_mask": "none", "eos": False, "accumulation": 1, "packing": False, "name": "plain", "lr": 1e-3,
              "max_length": 96, "batch": 4, "micro_batch": 4, "steps": 15},
    COMMON | {"schedule": "cosine", "warmup_steps": 4, "total_steps": 15, "weight_decay": 0.1, "clip": 0.5,
              "label_mask": "prompt", "eos": True, "accumulation": 2, "packing": False, "name": "schedule", "lr": 5e-4,
              "max_length": 64, "batch": 4, "micro_batch": 2, "steps": 15},
]
LOGITS_AT = [[0, 0], [0, 7], [0, 47], [1, 0], [1, 21], [1, 47]]


def make_weights(directory, tokenizer):
    """Random weights, norms and biases included, large enough that every part matters after two layers."""
    torch.manual_seed(20)
    model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.from_pretrained(directory))
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" in name:
                p.copy_(1 + 0.25 * torch.randn_like(p))
            elif "embed" in name:
                p.normal_(std=0.2 if model.config.tie_word_embeddings else 0.6)  # a tied table is the head, too
            elif p.dim() == 1:
                p.normal_(std=0.2)
            else:
                closes = name.endswith(("o_proj.weight", "down_proj.weight"))
                p.normal_(std=(0.7 if closes else 1.3) / math.sqrt(p.shape[-1]))
    model.save_pretrained(directory)
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        shutil.copyfile(tokenizer / name, directory / name)


def load(directory):
    return transformers.AutoModelForCausalLM.from_pretrained(
        directory, dtype=torch.float32, attn_implementation="eager").train()


def token_losses(logits, labels):
    """The sum over the targets: a label belongs to the position before it."""
    vocabulary = logits.shape[-1]
    return torch.nn.functional.cross_entropy(logits[:, :-1].reshape(-1, vocabulary), labels[:, 1:].reshape(-1),
                                             ignore_index=-100, reduction="sum")


def targets(labels):
    return int((labels[:, 1:] != -100).sum())


def rounded(values):
    return [float(f"{float(v.detach() if torch.is_tensor(v) else v):.9g}") for v in values]


def number(value):
    return rounded([value])[0]


def stored(model):
    """A tied weight counts once."""
    return dict(model.named_parameters())


def forward(directory, input_ids, labels):
    model = load(directory)
    ids, labels = torch.tensor(input_ids), torch.tensor(labels)
    logits = model(input_ids=ids, use_cache=False).logits
    loss = token_losses(logits, labels) / targets(labels)
    loss.backward()
    gradients = {}
    for name, p in stored(model).items():
        flat = p.grad.flatten()
        at = int(flat.abs().argmax())
        gradients[name] = {"l2": number(flat.double().norm()), "sum": number(flat.double().sum()),
                           "first": rounded(flat[:8]), "peak": [at, number(flat[at])]}
    return {"input_ids": ids.tolist(), "labels": labels.tolist(), "loss": number(loss), "label_tokens": targets(labels),
            "logits": [{"at": at, "first": rounded(logits[at[0], at[1], :8])} for at in LOGITS_AT],
            "logits_l2": number(logits.double().norm()), "gradients": gradients}


def prompt_of(row):
    text = "### Instruction:\n" + row["instruction"] + "\n\n"
    if row["input"].strip():
        text += "### Input:\n" + row["input"] + "\n\n"
    return text + "### Response:\n"


def example(tokenizer, row, args):
    prompt = prompt_of(row)
    ids = tokenizer(prompt + row["output"])["input_ids"]
    if args["eos"]:
        ids = ids + [tokenizer.eos_token_id]
    ids = ids[:args["max_length"]]
    masked = len(tokenizer(prompt)["input_ids"]) if args["label_mask"] == "prompt" else 0
    masked = min(masked, len(ids))
    return {"input_ids": ids, "masked_prefix": masked}


def padded(rows):
    longest = max(len(r["input_ids"]) for r in rows)
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    labels = torch.full_like(ids, -100)
    mask = torch.zeros_like(ids)
    for i, r in enumerate(rows):
        row = torch.tensor(r["input_ids"])
        ids[i, :len(row)] = row
        mask[i, :len(row)] = 1
        labels[i, r["masked_prefix"]:len(row)] = row[r["masked_prefix"]:]
    return ids, labels, mask


def rate(args, k):
    if args["schedule"] == "constant":
        return args["lr"]
    warmup = args["warmup_steps"]
    if k < warmup:
        return args["lr"] * k / warmup
    return args["lr"] * 0.5 * (1 + math.cos(math.pi * (k - warmup) / (args["total_steps"] - warmup)))


def train(directory, args):
    model = load(directory)
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    rows = json.loads(ROWS.read_text())
    optimizer = torch.optim.AdamW(model.parameters(), lr=args["lr"], betas=(args["beta1"], args["beta2"]),
                                  eps=args["eps"], weight_decay=args["weight_decay"])
    run = {"args": args, "loss": [], "grad_norm": [], "lr": [], "label_tokens": []}
    for k in range(args["steps"]):
        begin = args["first_row"] + k * args["batch"]
        step = [example(tokenizer, row, args) for row in rows[begin:begin + args["batch"]]]
        size = args["micro_batch"]
        micro_batches = [padded(step[i:i + size]) for i in range(0, len(step), size)]
        divisor = sum(targets(labels) for _, labels, _ in micro_batches)
        optimizer.zero_grad()
        total = 0.0
        for ids, labels, mask in micro_batches:
            loss = token_losses(model(input_ids=ids, attention_mask=mask, use_cache=False).logits, labels) / divisor
            loss.backward()
            total += float(loss.detach())
        clip = args["clip"] if args["clip"] > 0 else math.inf
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        for group in optimizer.param_groups:
            group["lr"] = rate(args, k)
        optimizer.step()
        for key, value in {"loss": total, "grad_norm": norm, "lr": rate(args, k)}.items():
            run[key].append(number(value))
        run["label_tokens"].append(divisor)
        if k == 0:
            run["first_step"] = step
    run["final"] = {name: {"l2": number(p.detach().double().norm()), "sum": number(p.detach().double().sum())}
                    for name, p in stored(model).items()}
    return run


def sequences(directory):
    """Two sequences of 48 ids; one label in the middle and a prefix of 13 are left out."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    rows = json.loads(ROWS.read_text())
    ids = [tokenizer(prompt_of(row) + row["output"])["input_ids"][:48] for row in rows[64:]]
    ids = [row for row in ids if len(row) == 48][:2]
    labels = [list(row) for row in ids]
    labels[0][30] = -100
    labels[1][:13] = [-100] * 13
    return ids, labels


def text_of(value, depth=0):
    """Lists of numbers, and what lies deeper than six levels, in a line."""
    flat = isinstance(value, list) and not any(isinstance(v, dict) for v in value)
    if depth > 4 or flat or not isinstance(value, (dict, list)):
        return json.dumps(value, separators=(",", ":"))
    space = "\n" + " " * (depth + 1)
    if isinstance(value, list):
        return "[" + ",".join(space + text_of(v, depth + 1) for v in value) + "\n" + " " * depth + "]"
    return "{" + ",".join(f"{space}{json.dumps(k)}: {text_of(v, depth + 1)}" for k, v in value.items()) + \
        "\n" + " " * depth + "}"


def difference(new, old):
    return max(abs(a - b) / max(abs(b), 1e-30) for a, b in zip(new, old, strict=True))


def check(directory):
    old = json.loads((directory / "expected.json").read_text())
    new = forward(directory, old["forward"]["input_ids"], old["forward"]["labels"])
    print("forward: loss", difference([new["loss"]], [old["forward"]["loss"]]), "gradients' norms",
          difference([g["l2"] for g in new["gradients"].values()],
                     [old["forward"]["gradients"][name]["l2"] for name in new["gradients"]]))
    for run in old["train"]:
        args = run["args"]
        if args["packing"] or args["dtype"] != "float32":
            continue
        again = train(directory, args)
        assert again["first_step"] == run["first_step"] and again["label_tokens"] == run["label_tokens"]
        print(f"{args['name']}: loss", difference(again["loss"], run["loss"]), "grad_norm",
              difference(again["grad_norm"], run["grad_norm"]), "final norms",
              difference([p["l2"] for p in again["final"].values()],
                         [run["final"][name]["l2"] for name in again["final"]]))


def make(directory):
    config = json.loads((directory / "config.json").read_text())
    model = load(directory)
    padding = model.get_input_embeddings().padding_idx
    expected = {"model_type": config["model_type"], "vocab_size": config["vocab_size"],
                "tokenizer_size": len(transformers.AutoTokenizer.from_pretrained(directory)),
                "checkpoint_dtype": "float32", "parameters": sum(p.numel() for p in stored(model).values()),
                "notes": {"padding_idx": padding}, "forward": forward(directory, *sequences(directory)),
                "train": [train(directory, args) for args in RUNS]}
    (directory / "expected.json").write_text(text_of(expected) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="a directory next to this file")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--tokenizer", metavar="NAME", help="make the checkpoint, with the tokenizer of this one")
    what.add_argument("--check", action="store_true")
    args = parser.parse_args()
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(2)
    if args.check:
        check(MODELS / args.name)
    else:
        make_weights(MODELS / args.name, MODELS / args.tokenizer)
        make(MODELS / args.name)


if __name__ == "__main__":
    main()
