#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# dpkg removes the configuration files at a purge; with them go keys, the archive, the logs and the group that owns these.
set -e
[ ! -d /run/systemd/system ] || systemctl daemon-reload
[ "$1" = purge ] || exit 0

rm -rf /etc/fatpath /var/lib/fatpath /var/lib/fatpath-responder /var/lib/private/fatpath-responder /var/log/fatpath
# What could not be put back is in the journal: another installation of fatpath can do it until the next boot.
[ -e /run/fatpath/changes.json ] || rm -rf /run/fatpath
if getent group fatpath >/dev/null; then
    groupdel fatpath || echo "fatpath: the group fatpath stays" >&2
fi
