#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The guest's first and only program: mounts what a Linux system has, runs /job, and ends.
# What the job says goes to the second serial line, so that kernel messages do not mix into it.
export PATH=/usr/bin HOME=/root TMPDIR=/tmp
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs run /run
mount -t tmpfs tmp /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t bpf bpf /sys/fs/bpf
mount -t tracefs tracefs /sys/kernel/tracing
ip link set lo up
# Its device node is made when the module is loaded; elsewhere udev makes it.
modprobe tun
hostname guest
stty -F /dev/ttyS1 raw
exec </dev/null >/dev/ttyS1 2>&1
/job
sync
poweroff -f
