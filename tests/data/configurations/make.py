#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""What transformers computes for unusual but legal values of config.json.

  make.py                                  writes expected.json next to this file: the cases in cases.json
  make.py --random 40 --seed 1 FILE        writes FILE: 40 random configurations of each architecture; then
                                           SUPEROFFLOAD_CONFIGURATIONS=FILE model_tests -tc='*unusual*'

Weights are a function of a tensor's name and an element's position, so that no checkpoint is stored. Each case has the
mean loss of 160 tokens and the norm of its gradient in float64 (norms and softmax are in float32 there). A random
configuration that transformers itself refuses is left out.

Needs torch, transformers and numpy; tests/data/README.md names the versions.
"""
import argparse
import json
import math
import pathlib
import random
import sys
import tempfile
import warnings

import numpy
import torch
import transformers

HERE = pathlib.Path(__file__).resolve().parent
TOKENS = [(i * i * 7 + 3 * i + i // 61) % 61 for i in range(160)]
SMALL = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 256}


def mixed(x):
    """splitmix64."""
    x = (x + numpy.uint64(0x9E3779B97F4A7C15))
    x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return x ^ (x >> numpy.uint64(31))


def values(name, shape):
    """Uniform, and large enough that every part matters; gates exceed their limit here and there."""
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = ((seed ^ byte) * 0x100000001B3) % 2**64
    count = math.prod(shape)
    with numpy.errstate(over="ignore"):
        bits = mixed(numpy.uint64(seed) + numpy.arange(count, dtype=numpy.uint64))
    uniform = (bits >> numpy.uint64(11)).astype(numpy.float64) * 2.0**-53 - 0.5
    if "norm" in name:
        made = 1.0 + 0.5 * uniform
    elif "embed" in name:
        made = 2.0 * uniform
    elif "bias" in name or len(shape) == 1:
        made = 1.4 * uniform
    else:
        made = (2.4 if "down_proj" in name or "o_proj" in name else 4.5) / math.sqrt(shape[-1]) * uniform
    return torch.from_numpy(made.reshape(shape))


def fill(model):
    for name, p in model.named_parameters():
        shape = list(p.shape)
        if model.config.model_type == "qwen3_moe" and ".experts." in name:  # one tensor in the model, many in a file
            prefix = name[:name.index("experts.") + 8]
            experts, rows, columns = shape
            if name.endswith("down_proj"):
                made = torch.stack([values(f"{prefix}{e}.down_proj.weight", [rows, columns]) for e in range(experts)])
            else:
                made = torch.stack([torch.cat([values(f"{prefix}{e}.{part}_proj.weight", [rows // 2, columns])
                                               for part in ("gate", "up")]) for e in range(experts)])
        else:
            made = values(name, shape)
        p.data = made


def expected(config):
    """The loss and the norm of its gradient; the latter is None where the configuration has dropout."""
    with tempfile.TemporaryDirectory() as directory:
        (pathlib.Path(directory) / "config.json").write_text(json.dumps(config))
        read = transformers.AutoConfig.from_pretrained(directory)
    torch.set_default_dtype(torch.float64)
    model = transformers.AutoModelForCausalLM.from_config(read, attn_implementation="eager",
                                                          experts_implementation="eager")
    fill(model)
    model.tie_weights()
    model.eval()
    ids = torch.tensor([TOKENS])
    out = model(input_ids=ids, use_cache=False)
    vocabulary = out.logits.shape[-1]
    loss = torch.nn.functional.cross_entropy(out.logits[0, :-1].reshape(-1, vocabulary), ids[0, 1:])
    if getattr(read, "output_router_logits", False) and hasattr(out, "aux_loss"):
        loss = loss + read.router_aux_loss_coef * out.aux_loss
    drops = any(getattr(read, key, 0) for key in ("attention_dropout", "residual_dropout", "resid_pdrop", "embd_pdrop"))
    norm = None
    if not drops:
        loss.backward()
        norm = math.sqrt(sum(float((p.grad**2).sum()) for p in model.parameters() if p.grad is not None))
    return float(loss.detach()), norm


def case(about, config):
    loss, norm = expected(config)
    return {"about": about, "config": config, "loss": float(f"{loss:.10g}"),
            "gradient_norm": None if norm is None else float(f"{norm:.10g}")}


def fixed(about, config, without=()):
    config = usual(config["model_type"]) | config
    return case(about, {key: value for key, value in config.items() if key not in without})


# Random configurations ------------------------------------------------------------------------------------------------

def rope(r):
    kind = r.choice(["default", "linear", "llama3", "llama3", "yarn", "yarn", "yarn", "dynamic", "longrope"])
    settings = {r.choice(["rope_type", "rope_type", "type"]): kind}
    if kind != "default":
        settings["factor"] = r.choice([1.0, 2.0, 4, 8.0, None])
    if kind in ("llama3", "yarn", "longrope") and r.random() < 0.6:
        settings["original_max_position_embeddings"] = r.choice([16, 64, 256, 512])
    if kind == "llama3":
        settings |= {"low_freq_factor": r.choice([1.0, 2]), "high_freq_factor": r.choice([4.0, 3])}
    if kind == "yarn":
        optional = {"beta_fast": r.choice([32, 8.0, None, 0]), "beta_slow": r.choice([1, 2.0, None]),
                    "truncate": r.choice([True, False, None]), "attention_factor": r.choice([1.5, None, 0.7]),
                    "mscale": r.choice([1.0, 0.7]), "mscale_all_dim": r.choice([0.5, 1.2, 0])}
        settings |= {k: v for k, v in optional.items() if r.random() < 0.4}
    if kind == "longrope":
        settings |= {"short_factor": [1.0, 1.5, 2.0, 2.5], "long_factor": [1.0, 3.0, 4.0, 5.0]}
        if r.random() < 0.5:
            settings |= {"partial_rotary_factor": 0.75, "short_factor": [1.1, 2.0, 2.5], "long_factor": [1.0, 3.0, 4.0]}
    if r.random() < 0.3:
        settings["rope_theta"] = r.choice([100.0, 5000, 1e6])
    if r.random() < 0.1:
        settings["partial_rotary_factor"] = r.choice([0.5, 1.0, 0.75])
    return settings


def layer_types(r, layers):
    return [r.choice(["full_attention", "sliding_attention"]) for _ in range(layers)]


MISSING = object()


def changes(r, kind):
    """Pairs of a field and its value: each is one unusual thing that a configuration may say."""
    layers = SMALL["num_hidden_layers"]
    experts = kind in ("qwen3_moe", "gpt_oss")
    common = [
        {"rope_theta": r.choice([50.0, 1e4, 1000000])},
        {"rope_scaling": rope(r)}, {"rope_parameters": rope(r)}, {"rope_parameters": rope(r)},
        {"rope_scaling": rope(r), "rope_parameters": rope(r)}, {"rope_scaling": {}}, {"rope_parameters": {}},
        {"rope_scaling": None}, {"rope_parameters": None, "rope_theta": 77.0},
        {"rope_parameters": {"rope_theta": 300.0}, "rope_theta": 77.0},
        {"original_max_position_embeddings": r.choice([32, 192]), "rope_scaling": rope(r)},
        {"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 5.0}}},
        {"partial_rotary_factor": r.choice([0.5, 1.0])},
        {"num_key_value_heads": None}, {"num_key_value_heads": MISSING, "num_attention_heads": 32, "head_dim": 8},
        {"num_key_value_heads": MISSING}, {"num_key_value_heads": 1}, {"num_key_value_heads": 4},
        {"head_dim": MISSING}, {"head_dim": None}, {"head_dim": 16}, {"head_dim": 8},
        {"rms_norm_eps": MISSING}, {"rms_norm_eps": 0.01}, {"max_position_embeddings": MISSING},
        {"max_position_embeddings": 512}, {"vocab_size": MISSING}, {"num_hidden_layers": 1}, {"hidden_size": 48},
        {"attention_bias": r.choice([True, True, False, MISSING])}, {"attention_bias": True}, {"mlp_bias": True},
        {"attention_out_bias": True}, {"tie_word_embeddings": True}, {"tie_word_embeddings": True},
        {"pad_token_id": r.choice([None, 0, 5, -1, MISSING])}, {"hidden_act": r.choice(["silu", "swish", "gelu"])},
        {"torch_dtype": "bfloat16"}, {"dtype": "float32"}, {"attention_dropout": r.choice([0.0, 0.1, MISSING])},
        {"sliding_window": r.choice([3, 20, None, MISSING])}, {"sliding_window": 7, "use_sliding_window": True},
        {"use_sliding_window": True, "max_window_layers": 1, "sliding_window": 9},
        {"use_sliding_window": True}, {"layer_types": layer_types(r, layers)},
        {"layer_types": layer_types(r, layers), "sliding_window": 11, "use_sliding_window": True},
        {"is_causal": r.choice([True, False])}, {"per_layer_config": r.choice([{}, {"0": {"hidden_act": "gelu"}}])},
        {"residual_dropout": r.choice([0.0, MISSING])}, {"use_cache": False}, {"initializer_range": 0.5},
    ]
    for_experts = [
        {"num_experts_per_tok": MISSING, "num_experts": 12, "num_local_experts": 12}, {"num_experts_per_tok": 1},
        {"num_experts": 6, "num_local_experts": MISSING}, {"num_local_experts": 6, "num_experts": MISSING},
        {"num_experts": 6, "num_local_experts": 5}, {"num_experts": MISSING, "num_local_experts": MISSING},
        {"norm_topk_prob": True}, {"norm_topk_prob": MISSING}, {"decoder_sparse_step": r.choice([1, 2])},
        {"mlp_only_layers": r.choice([[], [0], [1], [7], None])}, {"output_router_logits": r.choice([True, False])},
        {"output_router_logits": True, "router_aux_loss_coef": r.choice([0.5, 0.02])},
        {"moe_intermediate_size": MISSING}, {"swiglu_limit": r.choice([7.0, 2.0, MISSING])},
        {"swiglu_alpha": r.choice([1.702, 1.0, MISSING])}, {"experts_per_token": r.choice([2, 3])},
        {"intermediate_size": 40},
    ]
    return common + 2 * for_experts if experts else common


def usual(kind):
    config = {"model_type": kind} | SMALL
    if kind in ("phi3", "seed_oss"):
        config["pad_token_id"] = None
    if kind == "seed_oss":
        config |= {"attention_dropout": 0.0, "residual_dropout": 0.0}
    if kind in ("qwen3", "seed_oss", "gpt_oss"):
        config["head_dim"] = 8
    if kind == "qwen3_moe":
        config |= {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 12}
    if kind == "gpt_oss":
        config |= {"num_local_experts": 8, "num_experts_per_tok": 2}
    return config


def random_configurations(kind, r):
    """Without end: the fields that are unlike the usual ones, and the configuration."""
    while True:
        config = usual(kind)
        changed = set()
        for change in r.sample(changes(r, kind), r.choice([1, 1, 2, 3, 4])):
            changed |= change.keys()
            for key, value in change.items():
                if value is MISSING:
                    config.pop(key, None)
                else:
                    config[key] = value
        yield sorted(changed), config


def random_cases(kind, count, r):
    made = []
    for changed, config in random_configurations(kind, r):
        if len(made) == count:
            break
        try:
            made.append(case(f"{kind} {len(made)}", config) | {"changed": changed})
            if not math.isfinite(made[-1]["loss"]):
                made.pop()
        except Exception as refused:  # of any kind: transformers has no class of its own for what it cannot do
            print(f"{kind}: transformers refuses {changed}: {type(refused).__name__}", file=sys.stderr)
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", metavar="MODEL_TYPE", nargs="*")
    parser.add_argument("file", nargs="?", type=pathlib.Path, default=HERE / "expected.json")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    if args.random:
        kinds = args.only or ["llama", "mistral", "phi3", "qwen2", "qwen3", "qwen3_moe", "seed_oss", "gpt_oss"]
        made = [c for kind in kinds for c in random_cases(kind, args.random, random.Random(f"{kind} {args.seed}"))]
    else:
        cases = json.loads((HERE / "cases.json").read_text())
        made = [fixed(**c) for c in cases]
    args.file.write_text("[" + ",\n ".join(json.dumps(c) for c in made) + "]\n")


if __name__ == "__main__":
    main()
