#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The daemon is not started by installing it: the administrator writes a policy, and enables it. An upgrade starts it
# anew where it runs; what it loaded goes on tuning meanwhile, and the new build takes live flows over.
set -e
[ "$1" = configure ] || exit 0

if command -v systemd-sysusers >/dev/null; then
    systemd-sysusers fatpath.conf
else
    getent group fatpath >/dev/null || groupadd --system fatpath
fi
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
if [ -n "$2" ] && systemctl --quiet is-active fatpath.service; then
    systemctl restart fatpath.service
fi
