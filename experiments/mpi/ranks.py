#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs a part of programs.c, one rank on each host of a lab, with the MPI that is installed: ranks.py PART, on the
lab's host `front`, which has no rank. Prints the sums of `iperf3 --json`: the bytes that crossed between the clusters, and the time.

Open MPI starts its daemons by a command that takes a host and a command line, as ssh does (ranks.py --on). A lab's host
is a network namespace; each daemon gets a host name and an /etc/hosts of its own, without which Open MPI asks the DNS."""

import json
import os
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
NETNS = "/run/netns"


def hosts_of_this_lab():
    """Namespace, name and address of each host: this one, the first cluster, the second."""
    own = subprocess.run(["ip", "netns", "identify"], capture_output=True, text=True, check=True)
    lab = own.stdout.split()[0].removesuffix("-front")
    found = [(f"{lab}-front", "front", address_of(f"{lab}-front"))]
    for side in ("left", "right"):
        names = [name for name in os.listdir(NETNS) if name.startswith(f"{lab}-{side}")]
        for name in sorted(names, key=lambda name: int("".join(filter(str.isdigit, name.rsplit(side, 1)[1])) or 0)):
            found.append((name, name.rsplit(lab + "-", 1)[1], address_of(name)))
    return found


def address_of(namespace):
    shown = subprocess.run(
        ["nsenter", f"--net={NETNS}/{namespace}", "ip", "-j", "-4", "addr", "show", "scope", "global"],
        capture_output=True, text=True, check=True)
    return json.loads(shown.stdout)[0]["addr_info"][0]["local"]


def build(folder):
    subprocess.run(["mpicc", "-O2", "-o", f"{folder}/programs", f"{HERE}/programs.c"], check=True)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", f"{folder}/yield.so", f"{HERE}/yield.c"], check=True)


def as_host(folder, name, words):
    """A command line that runs on a host of the lab, with its name and the names of the others."""
    namespace = dict(line.split() for line in open(f"{folder}/namespaces"))[name]
    script = f"hostname {name} && mount --bind {folder}/hosts /etc/hosts && exec " + words
    return ["nsenter", f"--net={NETNS}/{namespace}", "unshare", "--uts", "--mount", "sh", "-c", script]


def run(part):
    with tempfile.TemporaryDirectory() as folder:
        hosts = hosts_of_this_lab()
        build(folder)
        with open(f"{folder}/hosts", "w") as file:
            file.write("127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for _, name, address in hosts))
        with open(f"{folder}/namespaces", "w") as file:
            file.write("".join(f"{name} {namespace}\n" for namespace, name, _ in hosts))
        agent = f"{sys.executable} {os.path.abspath(__file__)} --on {folder}"
        words = ["mpirun", "--allow-run-as-root", "--bind-to", "none",
                 "--host", ",".join(f"{name}:1" for _, name, _ in hosts[1:])]
        for key, value in {
            "plm_rsh_agent": agent, "plm_rsh_no_tree_spawn": "1", "btl": "tcp,self", "pml": "ob1",
            "btl_tcp_if_include": "10.0.0.0/8", "oob_tcp_if_include": "10.0.0.0/8", "mpi_yield_when_idle": "1",
        }.items():
            words += ["--mca", key, value]
        words += ["-x", f"LD_PRELOAD={folder}/yield.so", f"{folder}/programs", part]
        ran = subprocess.run(as_host(folder, hosts[0][1], shlex.join(words)), stdout=subprocess.PIPE, text=True, check=True)
    seconds, count = map(float, ran.stdout.split())
    got = {"bits_per_second": 8 * count / seconds, "seconds": seconds, "bytes": int(count)}
    json.dump({"end": {"sum_received": got, "sum_sent": {"retransmits": 0}}}, sys.stdout)


if __name__ == "__main__":
    if sys.argv[1] == "--on":
        _, _, folder, host, *words = sys.argv
        command = as_host(folder, host, "sh -c " + shlex.quote(" ".join(words)))
        os.execvp(command[0], command)
    run(sys.argv[1])
