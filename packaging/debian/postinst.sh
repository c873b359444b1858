#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The daemon is not started by installing it: the administrator looks at the policy, and enables it. Nor is the responder.
# An upgrade starts either anew where it runs; what the daemon loaded goes on tuning meanwhile, and the new build takes live
# flows over.
set -e
[ "$1" = configure ] || exit 0

if command -v systemd-sysusers >/dev/null; then
    systemd-sysusers fatpath.conf
else
    getent group fatpath >/dev/null || groupadd --system fatpath
fi
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
[ -n "$2" ] || exit 0
for unit in fatpath.service fatpath-responder.service; do
    systemctl --quiet is-active "$unit" || continue
    # The package is there all the same.
    systemctl restart "$unit" || echo "fatpath: $unit does not start: journalctl -u $unit" >&2
done
