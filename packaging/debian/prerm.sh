#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# An upgrade leaves the daemon and its tuning alone. Removal ends both while the program that can do it is still there.
set -e
[ "$1" = remove ] || exit 0

if [ -d /run/systemd/system ]; then
    systemctl stop fatpath-responder.service fatpath.service fatpath-bpffs.service
fi
if command -v systemctl >/dev/null; then
    systemctl --quiet disable fatpath.service fatpath-responder.service || true
fi
# Where nothing is loaded and nothing of the host is changed, there may be no root of a kernel to ask.
# In a chroot it would be the host's.
if command -v ischroot >/dev/null && ischroot; then exit 0; fi
if [ -d /sys/fs/bpf/fatpath ] || [ -e /run/fatpath/changes.json ]; then
    fatpath unload || echo "fatpath: not everything could be unloaded; a reboot ends what is left" >&2
fi
