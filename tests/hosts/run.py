#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks on several hosts, which are network namespaces of this machine, started by mpirun.

run.py --program FINETUNE_LLAMA [--mpirun MPIRUN] --suite runs|faults [--plain FINETUNE_LLAMA] [--long]

runs: weights are those of one host bit for bit; a run goes on with other numbers of hosts, and from output directories that
each host has for itself; what hosts have not in common is refused. faults: ranks and hosts end, stop and are cut off; all ranks
end in time, and the last checkpoint is valid. --long: more than sixty of these. Prints one line a case, and at the end one line
of JSON with the counts. Exit status: 0 all held, 1 not, 77 skipped, with the reason.
"""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import network

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "examples/models/tiny_llama"
DATA = ROOT / "examples/data/alpaca_en_demo.json"
HOSTS = ["north", "east", "south"]
# mpirun itself waits for ever for a host that is cut off, unless it looks for signs of life.
NOTICES = ["--mca", "oob_tcp_keepalive_time", "4", "--mca", "oob_tcp_keepalive_intvl", "1", "--mca",
           "oob_tcp_keepalive_probes", "8"]
# Of the ranks, which mpirun passes on; it has its own for a rank that was killed and for a host that it lost.
INTERRUPTED, RANK_FAILED, KILLED, LOST = 7, 10, 128 + signal.SIGKILL, 205
MOST_SECONDS = 30


class Bench:
    """Hosts, and runs on them."""

    def __init__(self, options, scratch):
        self.options, self.scratch = options, scratch
        self.program = pathlib.Path(options.program).resolve()
        self.addresses = network.make(HOSTS)
        self.environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                            "SUPEROFFLOAD_NUM_THREADS": "1", "SUPEROFFLOAD_TEST_HOSTS": " ".join(HOSTS),
                            "SUPEROFFLOAD_TEST_HOST": HOSTS[0]}

    def arguments(self, output, steps, *more):
        return ["--model", str(MODEL), "--dataset", str(DATA), "--dataset_percentage", "10", "--device", "cpu",
                "--output_dir", str(output), "--max_length", "64", "--batch_size", "4", "--lr", "1e-3",
                "--lr_scheduler", "constant", "--max_steps", str(steps), "--bind_cores_to_rank", "off", *more]

    def on_one_host(self, output, steps, *more, ranks=4):
        command = [self.program, *self.arguments(output, steps, "--ranks", str(ranks), *more)]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)

    def command(self, slots, program_command):
        """mpirun with so many ranks on each host; program_command is one list, or one a host."""
        hostfile = self.scratch / "hosts"
        names = list(slots)
        hostfile.write_text("".join(f"{self.addresses[name]} slots={count}\n" for name, count in slots.items()))
        if not isinstance(program_command, dict):
            last = ["-n", str(sum(slots.values())), *map(str, program_command)]
        else:  # one after the other, in the order of the hosts
            last = []
            for name in names:
                last += [":"] * bool(last) + ["-n", str(slots[name]), *map(str, program_command[name])]
        return network.on(names[0], [
            self.options.mpirun, "--hostfile", str(hostfile), "--map-by", "slot", "--bind-to", "none", "--mca",
            "plm_rsh_agent", str(ROOT / "tests/hosts/network.py"), *NOTICES, *last])

    def start(self, slots, program_command):
        self.log = open(self.scratch / "log", "w+", encoding="utf8", errors="replace")
        return subprocess.Popen(self.command(slots, program_command), env=self.environment, stdin=subprocess.DEVNULL,
                                stdout=self.log, stderr=subprocess.STDOUT)

    def said(self):
        return (self.scratch / "log").read_text(encoding="utf8", errors="replace")

    def run(self, slots, program_command):
        """The exit status, and what was said."""
        process = self.start(slots, program_command)
        process.wait(120)
        return process.returncode, self.said()

    def on_hosts(self, slots, output, steps, *more):
        return self.run(slots, [self.program, *self.arguments(output, steps, *more)])[0]


    def disks(self, name):
        """A new directory for each host."""
        made = {host: self.scratch / f"{name}-of-{host}" for host in HOSTS}
        for path in made.values():
            path.mkdir()
        return made

    def on_disks(self, disks, slots, output, steps, *more):
        """The commands of hosts that have their disks at `output`, an empty directory."""
        program = [self.program, *self.arguments(output, steps, "--save_on_each_node", *more)]
        return {name: ["sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', disks[name], output, *program]
                for name in slots}


def weights_of(output):
    return hashlib.sha256((output / "model/model.safetensors").read_bytes()).hexdigest()


def own_directories(bench, expect, whole):
    """Every host has an output directory of its own, in which its ranks write their parts of the checkpoints."""
    output = bench.scratch / "local"
    output.mkdir()
    disks = bench.disks("disk")

    def on_own_disks(slots, steps, *more):
        return bench.run(slots, bench.on_disks(disks, slots, output, steps, "--save_steps", "3", *more))

    def parts(name, step):
        return sorted(path.name for path in (disks[name] / f"checkpoint-{step}").iterdir())

    two = {"north": 2, "east": 2}
    code, said = on_own_disks(two, 6)
    expect(code == 0 and parts("north", 6) == ["manifest.json", "rank-00000.bin", "rank-00001.bin"]
           and parts("east", 6) == ["manifest.json", "rank-00002.bin", "rank-00003.bin"]
           and not (disks["east"] / "model").exists(), "directories of their own: each host has its ranks' parts", said)

    # A save that ended between the hosts: the second one lacks the newest checkpoint.
    shutil.rmtree(disks["east"] / "checkpoint-6")
    code, said = on_own_disks(two, 9, "--resume", "auto")
    expect(code == 0 and "passed over: rank 2: " in said and "resumed at step 3 " in said,
           "a checkpoint that one host lacks is passed over", said)
    code, said = on_own_disks(two, 12, "--resume", "auto")
    expect(code == 0 and "resumed at step 9 " in said and weights_of(disks["north"]) == weights_of(whole),
           "and the run goes on to the weights of one host, bit for bit", said)

    code, said = on_own_disks({"north": 3, "east": 1}, 15, "--resume", str(output / "checkpoint-12"))
    expect(code == 2 and "rank-00002.bin: is not here, but where it was saved, on host 'east'" in said,
           "where ranks would need parts of another host, that is refused by name", said)
    gathered = bench.scratch / "gathered"
    for name in two:
        shutil.copytree(disks[name] / "checkpoint-9", gathered / "checkpoint-9", dirs_exist_ok=True)
    resumed = ["--resume", str(gathered / "checkpoint-9")]
    alone = bench.scratch / "alone"
    done = bench.on_one_host(alone, 12, *resumed)
    expect(done.returncode == 0 and weights_of(alone) == weights_of(whole), "gathered, it goes on on one host", done.stderr)
    disks = bench.disks("new-disk")
    code, said = on_own_disks({"north": 2, "east": 1, "south": 1}, 12, *resumed)
    expect(code == 0 and weights_of(disks["north"]) == weights_of(whole), "gathered, it goes on on three hosts", said)


def runs(bench, expect):
    whole = bench.scratch / "whole"
    done = bench.on_one_host(whole, 12)
    expect(done.returncode == 0, "one host of four ranks", done.stderr)
    layouts = [{"north": 2, "east": 2}, {"north": 2, "east": 2}, {"north": 2, "east": 1, "south": 1},
               {"north": 3, "south": 1}]
    for number, slots in enumerate(layouts):
        output = bench.scratch / f"layout-{number}"
        code = bench.on_hosts(slots, output, 12)
        expect(code == 0 and weights_of(output) == weights_of(whole), f"{slots}: the weights of one host, bit for bit",
               bench.said())

    # A copy of the weights on each host.
    slots, copies = {"north": 2, "east": 2}, ["--hybrid_sharding", "2"]
    output = bench.scratch / "copies"
    code = bench.on_hosts(slots, output, 12, *copies)
    expect(code == 0 and weights_of(output) == weights_of(whole), "a copy of the weights on each host: the same weights",
           bench.said())
    sums = [bench.scratch / f"sums-{number}" for number in range(2)]
    codes = [bench.on_hosts({"north": 1, "east": 1}, output, 6, "--hybrid_sharding", "1", "--gradient_accumulation_steps", "2")
             for output in sums]
    expect(codes == [0, 0] and weights_of(sums[0]) == weights_of(sums[1]), "sums within hosts: the same bits, twice",
           bench.said())

    # One host, two, three, and one again.
    chain = bench.scratch / "chain"
    resumed = ["--resume", "auto", "--save_steps", "3"]
    codes = [bench.on_one_host(chain, 3, *resumed).returncode,
             bench.on_hosts({"north": 2, "east": 2}, chain, 6, *resumed),
             bench.on_hosts({"north": 2, "east": 1, "south": 1}, chain, 9, *resumed),
             bench.on_one_host(chain, 12, *resumed).returncode]
    expect(codes == [0] * 4 and weights_of(chain) == weights_of(whole), "one host, two, three and one again", str(codes))

    own_directories(bench, expect, whole)

    # What hosts have not in common.
    slots = {"north": 1, "east": 1}
    other = bench.scratch / "other_model"
    shutil.copytree(MODEL, other)
    config = json.loads((other / "config.json").read_text())
    config["rms_norm_eps"] = config["rms_norm_eps"] * 2
    (other / "config.json").write_text(json.dumps(config))
    for what, changed, named in (
            ("other flags", ["--lr", "2e-3"], "--lr"), ("another model", ["--model", str(other)], "config.json")):
        output = bench.scratch / what.replace(" ", "_")
        own = [bench.program, *bench.arguments(output, 4)]
        theirs = list(own)
        theirs[theirs.index(changed[0]) + 1] = changed[1]
        code, said = bench.run(slots, {"north": own, "east": theirs})
        expect(code == 2 and "rank 1" in said and named in said, f"{what} on one host are refused", said)
    own = [bench.program, *bench.arguments(bench.scratch / "one_flag", 4)]
    code, said = bench.run(slots, {"north": own, "east": [*own, "--save_on_each_node"]})
    expect(code == 2 and "ranks differ in --save_on_each_node" in said, "one more flag on one host is refused", said)
    build = bench.scratch / "other_build"
    build.write_bytes(bench.program.read_bytes() + b"\0")  # what comes after an executable's parts is not loaded
    build.chmod(0o755)
    arguments = bench.arguments(bench.scratch / "builds", 4)
    code, said = bench.run(slots, {"north": [bench.program, *arguments], "east": [build, *arguments]})
    expect(code == 2 and "ranks differ in the program: rank 0" in said and "rank 1 has" in said,
           "another build on one host is refused", said)
    output = bench.scratch / "apart"
    output.mkdir()
    own = [bench.program, *bench.arguments(output, 4)]
    elsewhere = ["sh", "-c", 'mount -t tmpfs tmpfs "$0" && exec "$@"', output, *own]
    code, said = bench.run(slots, {"north": own, "east": elsewhere})
    expect(code == 2 and "expected a directory that all hosts share" in said,
           "an output directory that the hosts do not share is refused", said)
    code, said = bench.run(slots, [bench.program, *bench.arguments(bench.scratch / "one", 4, "--save_on_each_node")])
    expect(code == 2 and "one: is the directory of rank 1 as well" in said,
           "one output directory for hosts that are said to have their own is refused", said)
    output = bench.scratch / "full"
    own = [bench.program, *bench.arguments(output, 40, "--save_steps", "5")]
    code, said = bench.run(slots, {"north": own, "east": ["sh", "-c", 'ulimit -f 100 && exec "$@"', "sh", *own]})
    # mpirun has the status of the process that ends first: 4 of the rank that failed, or 10 of one that heard of it.
    expect(code in (4, 10) and "rank-00001.bin" in said and not list(output.glob("checkpoint-*")),
           "a checkpoint that one host cannot write ends all ranks, and is none", said)
    if bench.options.plain:
        plain = [pathlib.Path(bench.options.plain).resolve(), *bench.arguments(bench.scratch / "plain", 4)]
        code, said = bench.run(slots, plain)
        expect(code == 2 and "built without MPI" in said, "a program without MPI is refused by name", said)


def ranks_of(bench):
    return network.processes(bench.program)


class Fault:
    """What happens to a run of two ranks on each of two hosts, mpirun's exit status after it, and a part of what is said."""

    def __init__(self, name, act, codes, says):
        self.name, self.act, self.codes, self.says = name, act, codes, says


def kill(rank, number):
    return lambda bench: os.kill(ranks_of(bench)[rank][0], number)


def flap(bench):
    """The cable is out for a moment, again and again; the run does not notice."""
    for _ in range(5):
        network.cut("east")
        time.sleep(0.2)
        network.cut("east", False)
        time.sleep(0.8)
    if len(ranks_of(bench)) != 4:
        raise RuntimeError("a rank ended")
    os.kill(ranks_of(bench)[0][0], signal.SIGTERM)


def lose(bench):
    """Packets are late and get lost, and the run goes on."""
    network.disturb("east", "delay", "5ms", "loss", "3%")
    time.sleep(5)
    if len(ranks_of(bench)) != 4:
        raise RuntimeError("a rank ended")
    os.kill(ranks_of(bench)[0][0], signal.SIGTERM)


def faults(long):
    """In a short run a few of each kind."""
    silent = "gave no sign of life"
    found = [Fault(f"rank {rank} is killed", kill(rank, signal.SIGKILL), [KILLED], "exited on signal 9")
             for rank in ([0, 1, 2, 3] * 5 if long else [0, 3])]
    found += [Fault(f"rank {rank} is stopped", kill(rank, signal.SIGSTOP), [RANK_FAILED], silent)
              for rank in ([0, 1, 2, 3] * 3 if long else [3])]
    found += [Fault("the cable of a host is out", lambda bench: network.cut("east"), [LOST, RANK_FAILED],
                    "lost communication")] * (16 if long else 1)
    found += [Fault("the cable of a host is out for a moment, again and again; then SIGTERM", flap, [INTERRUPTED],
                    "saved")] * (8 if long else 1)
    if network.disturbs():
        found += [Fault("packets are late and get lost; then SIGTERM", lose, [INTERRUPTED], "saved")] * (4 if long else 1)
    else:
        print("not tried: packets that are late or lost; this kernel has no netem", flush=True)
    found += [Fault(f"SIGTERM to rank {rank}", kill(rank, signal.SIGTERM), [INTERRUPTED], "saved")
              for rank in ([0, 1, 2, 3] if long else [1])]
    return found


def fault(bench, expect, number, one):
    bench.addresses = network.make(HOSTS)
    output = bench.scratch / f"fault-{number}"
    slots = {"north": 2, "east": 2}
    saving = ["--save_steps", "20", "--save_total_limit", "2", "--log_interval", "1000"]
    process = bench.start(slots, [bench.program, *bench.arguments(output, 1_000_000, *saving)])
    trains = network.wait_for(lambda: len(ranks_of(bench)) == 4 and len(list(output.glob("checkpoint-*"))) >= 2, 60)
    begin = time.monotonic()
    try:
        if trains:
            one.act(bench)
            begin = time.monotonic()
        network.wait_for(lambda: process.poll() is not None and not ranks_of(bench), MOST_SECONDS)
        seconds, code, left = time.monotonic() - begin, process.poll(), ranks_of(bench)
    finally:
        process.kill()
        for name in ("orted", "mpirun"):
            subprocess.run(["pkill", "-9", "-x", name], check=False)
        process.wait()
    said = bench.said()
    checkpoints = sorted(int(path.name.split("-")[1]) for path in output.glob("checkpoint-*"))
    goes_on = bench.on_one_host(output, checkpoints[-1] + 2, "--resume", "auto", ranks=2) if checkpoints else None
    valid = goes_on is not None and goes_on.returncode == 0
    expect(trains and code in one.codes and not left and one.says in said and valid,
           f"{one.name}: all ended within {seconds:.1f} s, exit status {code}; the last checkpoint is valid",
           f"trained: {trains}, left: {left}, {goes_on}\n{said}")


def killed_while_saving(bench, expect, number):
    """Ranks are killed while hosts save to directories of their own; the run goes on from what all have."""
    bench.addresses = network.make(HOSTS)
    output = bench.scratch / f"killed-{number}"
    output.mkdir()
    disks = bench.disks(f"killed-{number}")
    slots = {"north": 2, "east": 2}
    saving = ["--save_steps", "1", "--save_total_limit", "1", "--log_interval", "1000"]
    process = bench.start(slots, bench.on_disks(disks, slots, output, 1_000_000, *saving))
    trains = network.wait_for(lambda: list(disks["east"].glob("checkpoint-*")), 60)
    time.sleep(0.37 * (number % 7))
    for rank in ranks_of(bench):
        os.kill(rank[0], signal.SIGKILL)
    process.wait(60)
    saved = {name: sorted(path.name for path in disks[name].glob("checkpoint-*")) for name in slots}
    latest = max(int(name.split("-")[1]) for name in saved["north"])
    code, said = bench.run(slots, bench.on_disks(disks, slots, output, latest + 3, "--resume", "auto"))
    expect(trains and code == 0 and "resumed at step" in said,
           f"ranks are killed while hosts save each for itself; {saved}: the run goes on", said)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--mpirun", default="mpirun")
    parser.add_argument("--suite", choices=["runs", "faults"], required=True)
    parser.add_argument("--plain")
    parser.add_argument("--long", action="store_true")
    options = parser.parse_args()
    if why := network.enter():
        print(f"skipped: {why}")
        sys.exit(77)
    counts = {"tried": 0, "survived": 0}

    def expect(holds, what, otherwise):
        counts["tried"] += 1
        counts["survived"] += bool(holds)
        print(("held: " if holds else "FAILED: ") + what, flush=True)
        if not holds:
            print(otherwise, flush=True)

    with tempfile.TemporaryDirectory(prefix="superoffload-hosts-") as scratch:
        bench = Bench(options, pathlib.Path(scratch))
        if options.suite == "runs":
            runs(bench, expect)
        else:
            for number, one in enumerate(faults(options.long)):
                fault(bench, expect, number, one)
            for number in range(20 if options.long else 2):
                killed_while_saving(bench, expect, number)
    print(json.dumps(counts))
    sys.exit(0 if counts["tried"] == counts["survived"] else 1)


if __name__ == "__main__":
    main()
