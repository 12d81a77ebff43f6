#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Compares finetune_llama on real rows with bench_train on equally many tokens, and with padding as trainers in PyTorch do it:
bench/train/real_rows.py [--programs DIR] [--scratch DIR] [--steps N] [--cases N] [--peer]

The model has a published shape and random weights. The rows are the bundled ones, and rows whose lengths are distributed
log-normally; both unpacked and packed. The first run finds no measured GEMMs; the second is the same, with a cache. Prints one
JSON object a run. On a machine with a GPU: bench/record.py gpu_real_rows bench/train/real_rows.py --peer
"""

import argparse
import array
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUNDLED = ROOT / "examples/data/alpaca_en_demo.json"
TINY = ROOT / "examples/models/tiny_llama"
# data set, how sequences are made, and its flags
CASES = (("bundled", "unpacked", ("--max_length", "1024", "--batch_size", "16")),
         ("bundled", "packed", ("--max_length", "2048", "--batch_size", "4", "--packing", "on")),
         ("log-normal", "unpacked", ("--max_length", "2048", "--batch_size", "8")),
         ("log-normal", "packed", ("--max_length", "2048", "--batch_size", "4", "--packing", "on")))


def tensors_of(config):
    """The names and shapes of a Llama's tensors, a list for each file."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    keys = hidden // config["num_attention_heads"] * config["num_key_value_heads"]
    yield [("model.embed_tokens.weight", (config["vocab_size"], hidden)), ("lm_head.weight", (config["vocab_size"], hidden)),
           ("model.norm.weight", (hidden,))]
    for n in range(config["num_hidden_layers"]):
        at = f"model.layers.{n}."
        yield [(at + "input_layernorm.weight", (hidden,)), (at + "post_attention_layernorm.weight", (hidden,)),
               (at + "self_attn.q_proj.weight", (hidden, hidden)), (at + "self_attn.k_proj.weight", (keys, hidden)),
               (at + "self_attn.v_proj.weight", (keys, hidden)), (at + "self_attn.o_proj.weight", (hidden, hidden)),
               (at + "mlp.gate_proj.weight", (inner, hidden)), (at + "mlp.up_proj.weight", (inner, hidden)),
               (at + "mlp.down_proj.weight", (hidden, inner))]


def bfloat16(values):
    return array.array("H", (bits >> 16 for bits in array.array("I", array.array("f", values).tobytes()))).tobytes()


def write_model(directory, config):
    """A checkpoint with random weights; the tokenizer is that of the bundled model."""
    tiny = json.loads((TINY / "config.json").read_text())
    config |= {name: tiny[name] for name in ("bos_token_id", "eos_token_id", "pad_token_id") if name in tiny}
    directory.mkdir(parents=True)
    for file in TINY.iterdir():
        if file.suffix == ".json" and file.name != "config.json":
            shutil.copy(file, directory)
    # Every row is another piece of the noise: equal rows would give activations that a GPU multiplies with less power, and faster.
    numbers = random.Random(0)
    noise = bfloat16(numbers.gauss(0, 0.02) for _ in range(1 << 20))
    places = {}
    for part, tensors in enumerate(tensors_of(config)):
        header, end = {}, 0
        name = f"model-{part + 1:05d}.safetensors"
        for tensor, dimensions in tensors:
            bytes_of = 2
            for size in dimensions:
                bytes_of *= size
            header[tensor] = {"dtype": "BF16", "shape": dimensions, "data_offsets": [end, end + bytes_of]}
            end += bytes_of
            places[tensor] = name
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(directory / name, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for tensor, _ in tensors:
                begin, stop = header[tensor]["data_offsets"]
                columns = 2 * header[tensor]["shape"][-1]
                if "norm" in tensor:
                    file.write(bfloat16([1.0]) * (columns // 2))
                    continue
                for _ in range(begin, stop, columns):
                    at = 2 * numbers.randrange((len(noise) - columns) // 2)
                    file.write(noise[at:at + columns])
    (directory / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    (directory / "config.json").write_text(json.dumps(config))  # last: its file says that the model is whole


def write_log_normal(file):
    """Rows of the bundled words, 150 in the median, 1 in 40 longer than 6 times that."""
    words = " ".join(row["output"] for row in json.loads(BUNDLED.read_text())).split()
    numbers, rows = random.Random(1), []
    for _ in range(2000):
        length = max(16, min(3000, round(numbers.lognormvariate(5.0, 0.9))))
        at = numbers.randrange(len(words) - length)
        rows.append({"instruction": " ".join(words[at:at + 12]), "input": "", "output": " ".join(words[at + 12:at + length])})
    file.write_text(json.dumps(rows))


class Bench:
    def __init__(self, options):
        self.options = options
        self.model = options.scratch / options.shape
        self.data = {"bundled": BUNDLED, "log-normal": options.scratch / "log_normal.json"}
        self.environment = os.environ | {"SUPEROFFLOAD_TUNING": str(options.scratch / "gemms.txt")}

    def run(self, command):
        """Runs it. Returns its lines, each with the seconds from the start."""
        if self.options.dry_run:
            print(json.dumps({"command": [str(word) for word in command]}))
            return None
        begin, lines = time.monotonic(), []
        program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.environment)
        for line in program.stdout:
            lines.append((round(time.monotonic() - begin, 2), line.rstrip("\n")))
        if program.wait() != 0:
            sys.exit(f"real_rows.py: {command[0]} ended with status {program.returncode}: {lines[-1:]}")
        return lines

    def fine_tune(self, name, rows, packing, flags):
        metrics = self.options.scratch / "metrics.jsonl"
        metrics.unlink(missing_ok=True)
        lines = self.run([self.options.programs / "finetune_llama", "--model", self.model, "--dataset", self.data[rows], *flags,
                          "--max_grad_norm", "0", "--num_train_epochs", "100", "--max_steps", str(self.options.steps),
                          "--export", "off", "--metrics", metrics, "--output_dir", self.options.scratch / "output",
                          "--overwrite_output_dir"])
        if lines is None:
            return None
        steps = [one for one in map(json.loads, metrics.read_text().splitlines()) if "step_time_ms" in one]
        times, tokens = [one["step_time_ms"] for one in steps], [one["tokens"] for one in steps]
        said = {text: line.strip() for text in ("optimizer state:", "recompute:", "reading the weights", "measuring GEMMs",
                                                   "measuring and planning", "planned for")
                for _, line in lines if text in line}
        result = {"run": name, "rows": rows, "batch": f"{packing}: {' '.join(flags)}", "said": said,
                  "first_step_ends_s": next(seconds for seconds, line in lines if line.startswith("step 1/")),
                  "step_time_ms": times, "tokens": tokens,
                  "first_step_of_median": round(times[0] / statistics.median(times[1:]), 2),
                  "tokens_per_second_from_step_2": round(1e3 * sum(tokens[1:]) / sum(times[1:]), 1)}
        print(json.dumps(result), flush=True)
        return result

    def beside(self, result, sequences):
        """bench_train on sequences of the mean length, for as many steps. Both rates are those of all steps but the first."""
        tokens = statistics.mean(result["tokens"][1:]) if result else sequences
        lines = self.run([self.options.programs / "bench_train", "--device", "cuda", "--dtype", "bf16", "--shape", self.options.shape,
                          "--batch", str(sequences), "--seq", str(max(2, round(tokens / sequences))), "--max_grad_norm", "0",
                          "--warm_up", "1", "--steps", str(self.options.steps - 1)])
        if lines is None:
            return
        measured = next(json.loads(line) for _, line in lines if line.startswith("{"))
        times = measured["every_step_ms"]
        rate = 1e3 * sequences * round(tokens / sequences) * len(times) / sum(times)
        keys = ("step_time_ms", "every_step_ms", "tokens_per_second", "measured_bound_ms", "share_of_measured_bound")
        print(json.dumps({"run": f"bench_train beside {result['run']}", "batch": f"{sequences} x {round(tokens / sequences)}",
                          **{key: measured[key] for key in keys}, "tokens_per_second_of_all_steps": round(rate, 1),
                          "real_rows_share": round(result["tokens_per_second_from_step_2"] / rate, 3)}),
              flush=True)

    def peer(self, rows, flags):
        """PyTorch on batches of the same rows, each padded to its longest."""
        most, batch = int(flags[1]), int(flags[3])
        ids = self.options.scratch / "ids.jsonl"
        self.run([self.options.programs / "tokenize", "--model", self.model, "--dataset", self.data[rows], "--output", ids])
        lengths = self.options.scratch / "lengths.jsonl"
        if not self.options.dry_run:
            of_rows = [min(most, len(json.loads(line)["ids"])) for line in ids.read_text().splitlines()]
            random.Random(0).shuffle(of_rows)
            batches = [of_rows[at:at + batch] for at in range(0, len(of_rows) - batch + 1, batch)]
            lengths.write_text("".join(json.dumps(one) + "\n" for one in batches))
        lines = self.run([sys.executable, ROOT / "bench/peers/train_pytorch.py", "--model", self.model, "--lengths", lengths,
                          "--recompute", "--steps", str(self.options.steps - 1), "--warm_up", "2"])
        if lines is not None:
            print(json.dumps({"run": f"PyTorch, {rows} rows padded to the longest of a batch"} |
                             next(json.loads(line) for _, line in lines if line.startswith("{"))), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/bench/bin",
                        help="directory of finetune_llama, bench_train and, for --peer, tokenize")
    parser.add_argument("--scratch", type=pathlib.Path, default=pathlib.Path("/tmp/superoffload_real_rows"),
                        help="directory for model and data; a model in it is used again")
    parser.add_argument("--shape", default="llama-8b", help="a Llama of tests/data/configs that bench_train knows")
    parser.add_argument("--steps", type=int, default=40,
                        help="the clock of a GPU at its power limit swings for some seconds after the start")
    parser.add_argument("--cases", type=int, default=len(CASES), help="only the first N of the four")
    parser.add_argument("--peer", action="store_true", help="also the unpacked rows in PyTorch")
    parser.add_argument("--only_model", action="store_true", help="write model and data, and stop")
    parser.add_argument("--dry_run", action="store_true", help="print the commands and stop")
    options = parser.parse_args()
    bench = Bench(options)
    if not options.dry_run:
        if not (bench.model / "config.json").exists():
            write_model(bench.model, json.loads((ROOT / "tests/data/configs" / options.shape / "config.json").read_text()))
        write_log_normal(bench.data["log-normal"])
    if options.only_model:
        return
    (options.scratch / "gemms.txt").unlink(missing_ok=True)
    bench.fine_tune("no GEMMs measured before", *CASES[0])
    for rows, packing, flags in CASES[:options.cases]:
        result = bench.fine_tune(f"{rows}, {packing}", rows, packing, flags)
        bench.beside(result, int(flags[3]) if packing == "packed" else 4)
        if options.peer and packing == "unpacked":
            bench.peer(rows, flags)


if __name__ == "__main__":
    main()
