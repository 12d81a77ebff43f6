#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Puts a run's timeline beside its plan: bench/offload/compare.py PLAN.json TRACE.json [--skip N]

The files are those that a fine-tuner's --plan and --trace write. The first N traced steps (default 2) are a warm-up and
are left out. Each activity has its number in a step, its total milliseconds and those of one, as planned and as
measured; CPU Adam's are the mean of its threads. Below are the share of the step in which each lane was busy, and the
time that no lane explains: from the last backward of a step to the first forward of the next, and between forwards and
backwards beyond the waits for weights.
"""

import argparse
import collections
import json
import pathlib
import statistics

CPU_ADAM = {
    "speculative update of ": "speculate",
    "commit of ": "commit",
    "commit and speculative update of ": "commit + speculate",
    "commit and update of ": "commit + update",
    "update of ": "update",
    "old weights of ": "old weights",
}
STREAMS = {
    ("device", "forward of "): "forward",
    ("device", "backward of "): "backward",
    ("device Adam", "update of "): "device update",
    ("device Adam, streamed", "update of "): "device update",
    ("gradients to host", "gradient of "): "gradient",
    ("weights to device", "weights of "): "weights",
    ("weights ahead of use", "weights of "): "unit",
    ("sums ahead of use", "sum of "): "sum up",
    ("sums to host", "sum of "): "sum down",
    ("activations to host", "activations of "): "activations down",
    ("activations ahead of use", "activations of "): "activations up",
    ("between ranks", "weights of "): "gather",
    ("between ranks", "gradient of "): "reduce",
    ("state to device", "state of "): "state up",
    ("state to host", "state of "): "state down",
    ("device waits for weights", "wait for "): "wait",
    ("device waits for sums", "wait for "): "wait",
}
LANES = {
    "device": ["forward", "backward"],
    "device_adam": ["device update"],
    "link_down": ["gradient", "sum down", "state down", "activations down"],
    "link_up": ["weights", "unit", "sum up", "state up", "activations up"],
    "cpu_adam": list(CPU_ADAM.values()),
    "collectives": ["gather", "reduce"],
}


def activity_of(row, name):
    if row.startswith("CPU Adam "):
        kinds = {prefix: kind for prefix, kind in CPU_ADAM.items() if name.startswith(prefix)}
        return kinds[max(kinds, key=len)] if kinds else None
    return next((kind for (of, prefix), kind in STREAMS.items() if row == of and name.startswith(prefix)), None)


def measured(trace, skip):
    events = trace["traceEvents"]
    rows = {e["tid"]: e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    slices = [(rows[e["tid"]], e["name"], e["ts"] / 1e3, (e["ts"] + e["dur"]) / 1e3) for e in events if e["ph"] == "X"]
    steps = sorted((begin, end) for row, _, begin, end in slices if row == "steps")[skip:]
    if len(steps) < 2:
        raise SystemExit("compare.py: the trace has too few steps; more with --trace_steps, or --skip fewer")
    first, last = steps[0][0], steps[-1][0]  # whole periods, from step to step
    count, threads = len(steps) - 1, max(1, sum(row.startswith("CPU Adam ") for row in rows.values()))
    sums = collections.defaultdict(lambda: [0.0, 0.0])
    compute = []
    for row, name, begin, end in slices:
        kind = activity_of(row, name)
        inside = min(end, last) - max(begin, first)
        if kind is None or inside <= 0.0:
            continue
        share = 1.0 / threads if row.startswith("CPU Adam ") else 1.0
        if first <= begin < last:
            sums[kind][0] += share / count
        sums[kind][1] += share * inside / count
        if kind in ("forward", "backward", "wait"):
            compute.append((begin, end, kind))
    return (last - first) / count, sums, gaps(sorted(compute))


def gaps(compute):
    """The device's idle ms between two activities: at the turn of the step, and elsewhere."""
    turns, others = [], []
    for (_, end, kind), (begin, _, following) in zip(compute, compute[1:]):
        turn = kind == "backward" and following in ("forward", "wait")
        (turns if turn else others).append(max(0.0, begin - end))
    return turns, others


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("plan", type=pathlib.Path)
    arguments.add_argument("trace", type=pathlib.Path)
    arguments.add_argument("--skip", type=int, default=2)
    chosen = arguments.parse_args()
    plan = json.loads(chosen.plan.read_text())
    period, sums, (turns, others) = measured(json.loads(chosen.trace.read_text()), chosen.skip)

    def row(name, a, b, form="{:10.2f}"):
        ratio = f"{b / a:8.2f}" if a and b and a > 1e-6 else " " * 8
        print(f"  {name:24}" + "".join(form.format(x) if x is not None else " " * 10 for x in (a, b)) + ratio)

    print(f"  {'':24}{'planned':>10}{'measured':>10}{'ratio':>8}")
    row("step, ms", plan["step_time_ms"], period)
    planned = {k: (v["count"], v["ms"]) for k, v in plan["activities"].items()}
    for kind in dict.fromkeys([*planned, *sums]):
        p, m = planned.get(kind), sums.get(kind)
        row(kind + ", number", p and p[0], m and m[0])
        row("  ms in all", p and p[1], m and m[1])
        row("  ms of one", p and p[1] / p[0], m[1] / m[0] if m and m[0] else None)
    for lane, kinds in LANES.items():
        row(lane + ", % busy", 100 * plan["busy"][lane], 100 * sum(sums[k][1] for k in kinds if k in sums) / period)
    row("waits for weights, ms", sum(plan["waits_ms"]), sums["wait"][1])
    if turns:
        row("turn of the step, ms", None, statistics.median(turns))
    if others:
        row("between kernels, ms", None, sum(others) / max(1, len(turns)))


if __name__ == "__main__":
    main()
