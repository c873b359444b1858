#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs a program, one rank on each host of a lab, with the MPI that is installed: ranks.py PROGRAM, on the lab's host
`front`, which has no rank. PROGRAM is a part of programs.c by Open MPI (`one`, `alltoall:32768`) or by MPICH (`mpich-one`),
a test of HPCC (`hpcc-ptrans`, of Debian's hpcc, which is all of it each time), or one of NPB (`npb-is`), whose source is in the folder that the
environment's NPB names (NPB3.x-MPI), of class NPB_CLASS. Prints the sums of `iperf3 --json`: bytes, and the time.

Both libraries start their daemons by a command that takes a host and a command line, as ssh does (ranks.py --on). A lab's host
is a network namespace; each daemon gets a host name and an /etc/hosts of its own, without which Open MPI asks the DNS."""

import glob
import json
import os
import re
import shlex
import shutil
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


def build(folder, compiler):
    subprocess.run([compiler, "-O2", "-o", f"{folder}/programs", f"{HERE}/programs.c"], check=True)
    return [f"{folder}/programs"]


# The tests of HPCC by what its summary says of each: seconds, and bytes.
HPCC = {
    "ptrans": lambda of: (of["PTRANS_time"], 8 * of["PTRANS_n"] ** 2),
    "fft": lambda of: (sum(of[f"MPIFFT_time{step}"] for step in range(7)), 16 * of["MPIFFT_N"]),
    "randomaccess": lambda of: (of["MPIRandomAccess_time"], 8 * of["MPIRandomAccess_ExeUpdates"]),
    "ring": lambda of: (1.0, 1e9 * of["RandomlyOrderedRingBandwidth_GBytes"]),  # of b_eff
}


def hpcc_input(folder):
    """A small problem on a square of processes, in Debian's example."""
    example = open("/usr/share/doc/hpcc/examples/_hpccinf.txt").read()
    for what, value in {"Ns": 1280, "Ps": 4, "Qs": 4}.items():
        example = re.sub(rf"^\d+ +{what}$", f"{value} {what}", example, flags=re.MULTILINE)
    with open(f"{folder}/hpccinf.txt", "w") as file:
        file.write(example)


def hpcc_summary(folder):
    lines = open(f"{folder}/hpccoutf.txt").read().rpartition("Begin of Summary section.")[2].splitlines()
    pairs = (line.split("=", 1) for line in lines if "=" in line)
    return {name: float(value) for name, value in pairs if re.fullmatch(r"[-+.e\d]+", value)}


# For its Makefiles, of 3.3 and of 3.4.
NPB_MAKE = """MPIFC = mpif90.openmpi
MPIF77 = mpif77.openmpi
FLINK = mpif90.openmpi
MPICC = mpicc.openmpi
CLINK = mpicc.openmpi
FFLAGS = -O2 -fallow-argument-mismatch
FLINKFLAGS = -O2
CFLAGS = -O2
CLINKFLAGS = -O2
UCC = cc
BINDIR = ../bin
RAND = randi8
"""


def build_npb(folder, name, ranks):
    """Of IS class A, the shape of which is the paper's; W of the others, which wait for processors in larger ones."""
    source = os.environ.get("NPB") or sys.exit("NPB=DIR names the folder NPB3.x-MPI of NPB's source")
    shutil.copytree(source, f"{folder}/npb")
    os.makedirs(f"{folder}/npb/bin", exist_ok=True)
    with open(f"{folder}/npb/config/make.def", "w") as file:
        file.write(NPB_MAKE)
    size = os.environ.get("NPB_CLASS", "A" if name == "is" else "W")
    words = ["make", "-C", f"{folder}/npb", name, f"CLASS={size}", f"NPROCS={ranks}"]
    subprocess.run(words, check=True, stdout=sys.stderr)
    built = glob.glob(f"{folder}/npb/bin/{name}.{size}.*")
    return built[:1] or sys.exit(f"{source} makes no bin/{name}.{size}.*")


def npb_result(text):
    """It counts operations and no bytes: a megabyte stands for all of it."""
    return float(re.search(r"Time in seconds *= *([\d.]+)", text)[1]), 1e6


def as_host(folder, name, words):
    """A command line that runs on a host of the lab, with its name, the names of the others, and its interfaces in /sys,
    where MPICH's UCX looks for them."""
    namespace = dict(line.split() for line in open(f"{folder}/namespaces"))[name]
    script = f"hostname {name} && mount --bind {folder}/hosts /etc/hosts && mount -t sysfs sysfs /sys && exec " + words
    return ["nsenter", f"--net={NETNS}/{namespace}", "unshare", "--uts", "--mount", "sh", "-c", script]


def by_openmpi(folder, hosts):
    words = ["mpirun.openmpi", "--allow-run-as-root", "--bind-to", "none", "--wdir", folder,
             "--host", ",".join(f"{name}:1" for _, name, _ in hosts)]
    for key, value in {
        "plm_rsh_agent": f"{folder}/agent", "plm_rsh_no_tree_spawn": "1", "btl": "tcp,self", "pml": "ob1",
        "btl_tcp_if_include": "10.0.0.0/8", "oob_tcp_if_include": "10.0.0.0/8", "mpi_yield_when_idle": "1",
    }.items():
        words += ["--mca", key, value]
    return words + ["-x", f"LD_PRELOAD={folder}/yield.so"]


def by_mpich(folder, hosts):
    return ["mpiexec.mpich", "-launcher", "rsh", "-launcher-exec", f"{folder}/agent", "-wdir", folder, "-ppn", "1",
            "-hosts", ",".join(name for _, name, _ in hosts), "-n", str(len(hosts)),
            "-genv", "UCX_TLS", "tcp,self", "-genv", "LD_PRELOAD", f"{folder}/yield.so"]


def prepare(folder, hosts, flags):
    with open(f"{folder}/hosts", "w") as file:
        file.write("127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for _, name, address in hosts))
    with open(f"{folder}/namespaces", "w") as file:
        file.write("".join(f"{name} {namespace}\n" for namespace, name, _ in hosts))
    with open(f"{folder}/agent", "w") as file:
        file.write(f'#!/bin/sh\nexec {sys.executable} {os.path.abspath(__file__)} --on {folder} "$@"\n')
    os.chmod(f"{folder}/agent", 0o755)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", *flags, "-o", f"{folder}/yield.so", f"{HERE}/yield.c"], check=True)


def all_lines(words):
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout


def first_line(words):
    """MPICH 4.0.2 over UCX: some ranks never come out of MPI_Finalize, where they close their connections."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as ran:
        line = ran.stdout.readline()
        ran.terminate()
    return line


def run(program):
    kind, _, part = program.rpartition("-")
    with tempfile.TemporaryDirectory() as folder:
        front, *ranks = hosts_of_this_lab()
        prepare(folder, [front, *ranks], ["-DPOLLS"] if kind == "mpich" else [])
        library = by_mpich if kind == "mpich" else by_openmpi
        if kind == "hpcc":
            hpcc_input(folder)
            words = ["hpcc"]
        elif kind == "npb":
            words = build_npb(folder, part, len(ranks))
        else:
            words = build(folder, "mpicc.mpich" if kind == "mpich" else "mpicc.openmpi") + part.split(":")
        command = shlex.join(library(folder, ranks) + words)
        said = (first_line if kind == "mpich" else all_lines)(as_host(folder, front[1], command))
        if kind == "hpcc":
            seconds, count = HPCC[part](hpcc_summary(folder))
        elif kind == "npb":
            seconds, count = npb_result(said)
        else:
            seconds, count = map(float, said.split())
    got = {"bits_per_second": 8 * count / seconds, "seconds": seconds, "bytes": int(count)}
    json.dump({"end": {"sum_received": got, "sum_sent": {"retransmits": 0}}}, sys.stdout)


if __name__ == "__main__":
    if sys.argv[1] == "--on":
        _, _, folder, host, *words = sys.argv
        command = as_host(folder, host, "sh -c " + shlex.quote(" ".join(words)))
        os.execvp(command[0], command)
    run(sys.argv[1])
