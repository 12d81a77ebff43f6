# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""What the trainers of this directory share: the work, which is that of bench_train, and what they print."""

import argparse
import json
import pathlib
import statistics
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}, expected at least 1")
    return value


def not_negative(text):
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}, expected 0 or more")
    return value


def parser(summary):
    flags = argparse.ArgumentParser(description=summary, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    flags.add_argument("--model", type=pathlib.Path, default=ROOT / "tests/data/configs/llama-8b",
                       help="directory with the config.json of a model; its weights are random")
    flags.add_argument("--layers", type=positive, help="another number of layers than the model's")
    flags.add_argument("--batch", type=positive, default=4, help="sequences of a step")
    flags.add_argument("--seq", type=positive, default=2048, help="tokens of a sequence")
    flags.add_argument("--warm_up", type=positive, default=3, help="steps before the first that counts")
    flags.add_argument("--steps", type=positive, default=6, help="steps that count")
    flags.add_argument("--lr", type=not_negative, default=1e-5)
    flags.add_argument("--max_grad_norm", type=not_negative, default=0.0, help="0: no clipping")
    flags.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: to try the script out")
    flags.add_argument("--dry_run", action="store_true", help="print the work as JSON and stop; needs no PyTorch")
    return flags


def shape(options):
    """The model's config.json, with the layers that were asked for."""
    file = options.model / "config.json"
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as reason:
        raise SystemExit(f"{file}: {reason}; expected the configuration of a model")
    if options.layers:
        config["num_hidden_layers"] = options.layers
        if isinstance(config.get("layer_types"), list):
            config["layer_types"] = config["layer_types"][:options.layers]
    return config


def say_work(options, **more):
    work = {name: value for name, value in vars(options).items() if name not in ("model", "dry_run", "layers")}
    print(json.dumps({"model_type": shape(options)["model_type"], "layers": shape(options)["num_hidden_layers"], **work, **more}))


def random_model(options, recompute):
    """transformers' model in bf16, made on the device, with random weights."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = shape(options)
    config = transformers.CONFIG_MAPPING[config["model_type"]].from_dict({**config, "use_cache": False})
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(options.device):
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
    torch.set_default_dtype(before)
    if recompute:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model.train()


def random_tokens(options, rows=None, columns=None):
    import torch

    generator = torch.Generator(device=options.device).manual_seed(1)
    return torch.randint(0, shape(options)["vocab_size"], (rows or options.batch, columns or options.seq), device=options.device,
                         generator=generator)


def batches_of(file, steps):
    """The lengths of each step's rows: a list of numbers a line. If there are too few, from the first line again."""
    try:
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, json.JSONDecodeError) as reason:
        raise SystemExit(f"{file}: {reason}; expected a list of lengths a line")
    if not lines or not all(isinstance(line, list) and line and all(isinstance(one, int) and one > 1 for one in line) for line in lines):
        raise SystemExit(f"{file}: expected a list of lengths of at least 2 a line, such as [12, 340]")
    return [lines[step % len(lines)] for step in range(steps)]


class PeakOfHost:
    """The most memory that programs of this host had since the start: anonymous and shared, from /proc/meminfo. Trainers with
    several processes, and pinned memory that a process does not own, are in it."""

    def __init__(self):
        self.before, self.most = self.used(), 0
        threading.Thread(target=self.watch, daemon=True).start()

    @staticmethod
    def used():
        fields = dict(line.split(":") for line in pathlib.Path("/proc/meminfo").read_text().splitlines())
        return sum(int(fields[name].split()[0]) * 1024 for name in ("AnonPages", "Shmem"))

    def watch(self):
        while True:
            self.most = max(self.most, self.used() - self.before)
            time.sleep(0.2)


def measure(options, step, tokens=None, **more):
    """Runs `step`, which returns the loss as a tensor, and prints the result as one line of JSON. `tokens`: of each step, if they
    are not the same."""
    import torch

    on_gpu = options.device == "cuda"
    host = PeakOfHost()
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    milliseconds, losses = [], []
    for _ in range(options.warm_up + options.steps):
        wait()
        begin = time.perf_counter()
        loss = step()
        wait()
        milliseconds.append(1e3 * (time.perf_counter() - begin))
        losses.append(round(loss.item(), 4))
    counted = milliseconds[options.warm_up:]
    median = statistics.median(counted)
    rate = options.batch * options.seq / median if tokens is None else sum(tokens[options.warm_up:]) / sum(counted)
    say_work(options, **more, torch=torch.__version__, processor=torch.cuda.get_device_name() if on_gpu else "cpu",
             step_time_ms=round(median, 3), tokens_per_second=round(1e3 * rate, 1),
             every_step_ms=[round(value, 1) for value in milliseconds], losses=losses,
             device_bytes=torch.cuda.max_memory_allocated() if on_gpu else 0, host_bytes=max(host.most, 0))
