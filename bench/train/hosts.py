#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Plans training on 1 to 64 hosts of 8 GPUs: bench/train/hosts.py [--programs DIR] [--hardware FILE]

Llama-70B's shape, and one of Llama 3.1 405B's: two sequences of 4,096 tokens on each GPU, with the description's network
and with an eighth of it (one adapter a host). Llama-70B's also with eight such micro-batches a step: with one copy of the
weights, with the copies that the plan chooses, and with one on each host and sums within hosts (--hybrid_sharding). Nothing is
measured: these are simulated steps. Prints one JSON object a plan.
bench/record.py hosts_planned bench/train/hosts.py
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOSTS = [1, 2, 4, 8, 16, 32, 64]
LLAMA_70B = ROOT / "tests/data/configs/llama-70b/config.json"
# Beside those of the 70B: shape as published for Llama 3.1 405B.
LLAMA_405B = {"hidden_size": 16384, "intermediate_size": 53248, "num_attention_heads": 128, "num_hidden_layers": 126}


def planned(program, model, hardware, gpus, scratch, micro_batches=1, weight_ranks=None):
    file = scratch / "plan.json"
    file.unlink(missing_ok=True)
    command = [program, "--model", model, "--dataset", ROOT / "examples/data/alpaca_en_demo.json", "--hardware", hardware,
               "--batch_size", 2 * gpus * micro_batches, "--gradient_accumulation_steps", micro_batches, "--max_length", 4096,
               "--plan", file, "--output_dir", scratch / "run", "--dry_run",
               *(["--gpus", gpus] if gpus > 1 else []),
               *(["--hybrid_sharding", weight_ranks] if weight_ranks else [])]
    done = subprocess.run([str(a) for a in command], capture_output=True, text=True)
    if not file.exists():
        sys.exit(f"hosts.py: {done.stderr}")
    return json.loads(file.read_text())


def described_by(plan, name, hosts, gpus, rate, micro_batches, sharding):
    line = {"shape": name, "hosts": hosts, "gpus": gpus, "network_gb_per_s": rate, "micro_batches": micro_batches,
            "sharding": sharding, "fits": plan["fits"],
            "device_gib": round(plan["device_bytes"]["total"] / 2**30, 2),
            "host_gib": round(plan["host_bytes"]["total"] / 2**30, 2)}
    if plan["fits"]:
        line.update({"weight_ranks": plan["collectives"]["weight_ranks"] or gpus,
                     "tokens_per_second": round(plan["tokens_per_second"]),
                     "step_ms": round(plan["step_time_ms"], 1),
                     "model_tflops_per_gpu": round(plan["model_tflops"] / gpus, 1),
                     "collectives_ms": round(plan["collectives"]["ms"], 1),
                     "exposed_ms": round(plan["collectives"]["waited_ms"], 1)})
    return line


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--hardware", type=pathlib.Path, default=ROOT / "bench/hardware/h200_hosts.json")
    options = parser.parse_args()
    described = json.loads(options.hardware.read_text())
    with tempfile.TemporaryDirectory() as temporary:
        scratch = pathlib.Path(temporary)
        for name, changes in (("llama-70b", {}), ("llama-405b", LLAMA_405B)):
            model = scratch / name
            model.mkdir()
            (model / "config.json").write_text(json.dumps({**json.loads(LLAMA_70B.read_text()), **changes}))
            for share in (1, 8):
                machine = json.loads(json.dumps(described))
                machine["peers"]["network"]["gb_per_s"] /= share
                hardware = scratch / "machine.json"
                hardware.write_text(json.dumps(machine))
                of_host, rate = (machine["peers"]["network"][key] for key in ("ranks_of_host", "gb_per_s"))
                for hosts in HOSTS:
                    gpus = hosts * of_host
                    ways = [(1, "plan", None)]
                    if name == "llama-70b":
                        ways.append((8, "one copy", gpus))
                        if hosts > 1:
                            ways += [(8, "plan", None), (8, "hybrid", of_host)]
                    for micro_batches, sharding, weight_ranks in ways:
                        plan = planned(options.programs / "finetune_llama", model, hardware, gpus, scratch, micro_batches,
                                       weight_ranks)
                        print(json.dumps(described_by(plan, name, hosts, gpus, rate, micro_batches, sharding)), flush=True)


if __name__ == "__main__":
    main()
