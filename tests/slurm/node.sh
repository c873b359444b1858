#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# A Slurm of one node in the folder $1, with a loopback, a host name and processes of its own: it is the first process
# of their namespace, so all of them end with it. What the file more.conf there has is added to its configuration.
set -eu
cd "$1"
ip link set lo up
# getaddrinfo() of AI_ADDRCONFIG, by which slurmd finds what to listen on, counts no address of 127.0.0.0/8.
ip address add 192.0.2.1/32 dev lo
hostname node
mkdir state spool
head -c 128 /dev/urandom >munge.key
chmod 400 munge.key
cat >slurm.conf <<EOF
ClusterName=test
SlurmctldHost=node(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket=$1/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$1/state
SlurmdSpoolDir=$1/spool
SlurmctldPidFile=$1/slurmctld.pid
SlurmdPidFile=$1/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=node NodeAddr=127.0.0.1 CPUs=2
PartitionName=all Nodes=node Default=YES MaxTime=INFINITE State=UP
EOF
if [ -f more.conf ]; then
    cat more.conf >>slurm.conf
fi
export SLURM_CONF="$1/slurm.conf"
# Returns when it listens.
munged --origin=127.0.0.1 --key-file="$1/munge.key" --socket="$1/munge.socket" \
    --pid-file="$1/munged.pid" --log-file="$1/munged.log" --seed-file="$1/munged.seed"
slurmctld -D -i >slurmctld.log 2>&1 &
slurmd -D -N node >slurmd.log 2>&1 &
wait
