#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Rules for the flows of a Slurm job, while it runs on this node: both Prolog and Epilog of slurm.conf, on every node on
# which the fatpath daemon runs.
#
#   Prolog=/etc/slurm/fatpath-job.sh
#   Epilog=/etc/slurm/fatpath-job.sh
#
# A job of the partition NAME gets the rules of /etc/fatpath/slurm/NAME.toml, before those of /etc/fatpath/policy.toml. In the
# file @JOB@ stands for the job's number, and @CGROUP@ for its cgroup:
#
#   [[rule]]
#   name = "mpi-@JOB@"
#   cgroup = "@CGROUP@"
#   ...
#
# A partition without a file gets none. A reload or restart of the daemon leaves the rules of running jobs out until the next job
# begins or ends. Nothing here fails a job: what is wrong is logged.
#
# For another place of one of these, set it in a wrapper: FATPATH, FATPATH_POLICY, FATPATH_SLURM (the folder of the partitions'
# files), FATPATH_JOBS (where jobs are kept), FATPATH_JOBS_CGROUP (above those of jobs, with Slurm's plugin cgroup/v2).
set -uo pipefail

program=${FATPATH:-fatpath}
policy=${FATPATH_POLICY:-/etc/fatpath/policy.toml}
partitions=${FATPATH_SLURM:-/etc/fatpath/slurm}
jobs=${FATPATH_JOBS:-/run/fatpath-slurm}
cgroups=${FATPATH_JOBS_CGROUP:-/system.slice/slurmstepd.scope}

say() {
    logger -t fatpath-slurm -- "job ${SLURM_JOB_ID:-?}: $*" 2>/dev/null || true
}

begin() {
    local rules=$partitions/${SLURM_JOB_PARTITION:-}.toml
    [ -f "$rules" ] || return 1
    sed -e "s|@JOB@|$SLURM_JOB_ID|g" -e "s|@CGROUP@|$cgroups/job_$SLURM_JOB_ID|g" "$rules" >"$jobs/$SLURM_JOB_ID.toml"
}

end() {
    [ -f "$jobs/$SLURM_JOB_ID.toml" ] && rm -f "$jobs/$SLURM_JOB_ID.toml"
}

# The first rule that matches is a flow's rule, so those of jobs come first.
apply() {
    local said
    cat "$jobs"/[0-9]*.toml "$policy" >"$jobs/policy" 2>/dev/null
    said=$("$program" policy apply "$jobs/policy" 2>&1) || say "its rules are not applied: $said"
}

[[ ${SLURM_JOB_ID:-} =~ ^[0-9]+$ && ${SLURM_JOB_PARTITION:-} != */* ]] || exit 0
mkdir -p -m 700 "$jobs" && exec 9>"$jobs/lock" && flock -w 20 9 || { say "cannot keep its rules in $jobs"; exit 0; }
case ${SLURM_SCRIPT_CONTEXT:-} in
prolog*) begin && apply ;;
epilog*) end && apply ;;
esac
exit 0
