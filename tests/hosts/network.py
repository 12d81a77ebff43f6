#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The superoffload authors
# SPDX-License-Identifier: Apache-2.0
"""Hosts that are network namespaces of this machine, each with a name, an address and a link to one switch.

enter() moves the calling script into namespaces of its own, in which it may make hosts; all of it vanishes with the script.
network.py ADDRESS COMMAND... runs a command on the host with that address: it is what mpirun calls instead of ssh.
"""

import os
import pathlib
import subprocess
import sys
import time

PREFIX = "10.77.0."


def enter():
    """Restarts the script in namespaces of its own. Returns why that is not possible, or nothing when it is done."""
    if os.environ.get("SUPEROFFLOAD_HOSTS") == "entered":
        for command in (["mount", "-t", "tmpfs", "tmpfs", "/run/netns"], ["ip", "link", "set", "lo", "up"]):
            subprocess.run(command, check=True)
        return None
    if os.access("/run", os.W_OK):
        os.makedirs("/run/netns", exist_ok=True)
    own = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    for tried in (own + ["mount", "-t", "tmpfs", "tmpfs", "/run/netns"], ["ip", "-V"], ["tc", "-V"]):
        try:
            done = subprocess.run(tried, capture_output=True, text=True)
        except FileNotFoundError:
            return f"there is no {tried[0]} (Debian, Ubuntu: apt install iproute2)"
        if done.returncode != 0:
            return f"no right to make network namespaces: {done.stderr.strip() or 'no reason is given'}"
    os.environ["SUPEROFFLOAD_HOSTS"] = "entered"
    os.execvp(own[0], own + [sys.executable] + sys.argv)


def run(*command):
    subprocess.run(command, check=True)


def make(names):
    """Hosts with these names, instead of those that there were. Returns their addresses."""
    for path in pathlib.Path("/run/netns").iterdir():
        run("ip", "netns", "delete", path.name)
    subprocess.run(["ip", "link", "delete", "switch"], capture_output=True, check=False)
    run("ip", "link", "add", "switch", "type", "bridge")
    run("ip", "link", "set", "switch", "up")
    addresses = {}
    for number, name in enumerate(names, 1):
        addresses[name] = f"{PREFIX}{number}"
        run("ip", "netns", "add", name)
        subprocess.run(["ip", "link", "delete", f"to-{name}"], capture_output=True, check=False)
        run("ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
        run("ip", "link", "set", f"to-{name}", "master", "switch", "up")
        for command in (["link", "set", "lo", "up"], ["link", "set", "eth0", "up"],
                        ["address", "add", f"{PREFIX}{number}/24", "dev", "eth0"]):
            run("ip", "-n", name, *command)
    return addresses


def on(name, command):
    """The command that runs another one on a host."""
    return ["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', name, *command]


def cut(name, is_cut=True):
    """The host's cable is out, or in again."""
    run("ip", "link", "set", f"to-{name}", "down" if is_cut else "up")


def disturbs():
    """Whether this kernel can delay and lose what is sent to a host (tc's netem)."""
    tried = ["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1us"]
    done = subprocess.run(tried, capture_output=True, check=False)
    subprocess.run(["tc", "qdisc", "del", "dev", "lo", "root"], capture_output=True, check=False)
    return done.returncode == 0


def disturb(name, *how):
    """What netem does to what is sent to the host, as "delay 20ms loss 5%"."""
    run("tc", "qdisc", "replace", "dev", f"to-{name}", "root", "netem", *how)


def processes(program):
    """The ranks that run: of each its process, its host and its number."""
    found = []
    for place in pathlib.Path("/proc").iterdir():
        if not place.name.isdigit():
            continue
        try:
            if pathlib.Path(os.readlink(place / "exe")) != program:
                continue
            variables = dict(part.split("=", 1) for part in (place / "environ").read_text().split("\0") if "=" in part)
            found.append((int(place.name), variables["SUPEROFFLOAD_TEST_HOST"], int(variables["OMPI_COMM_WORLD_RANK"])))
        except (OSError, KeyError):
            pass  # it has just ended, or is none of the ranks
    return sorted(found, key=lambda one: one[2])


def wait_for(condition, seconds, interval=0.05):
    """Whether the condition became true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(interval)
    return True


def main():
    names = os.environ["SUPEROFFLOAD_TEST_HOSTS"].split()
    address = sys.argv[1]
    if not address.startswith(PREFIX):
        sys.exit(f"network.py: there is no host {address}")
    name = names[int(address[len(PREFIX):]) - 1]
    os.environ["SUPEROFFLOAD_TEST_HOST"] = name
    command = on(name, ["sh", "-c", " ".join(sys.argv[2:])])
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
