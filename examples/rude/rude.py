#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sends standard input to HOST PORT, rudely where that is allowed: rude.py HOST PORT < FILE"""

import shutil
import socket
import sys

# Of include/fatpath/rude.h.
TCP_RUDE = 0x7001
RUDE_ON = 1
STATES = ["polite", "rude", "going polite"]


def be_rude(connection):
    """Where it is refused, the connection goes on with congestion control."""
    try:
        connection.setsockopt(socket.IPPROTO_TCP, TCP_RUDE, RUDE_ON)
        return STATES[connection.getsockopt(socket.IPPROTO_TCP, TCP_RUDE)]
    except OSError as error:
        print(f"not rude: {error.strerror}", file=sys.stderr)
        return "polite"


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: rude.py HOST PORT < FILE")
    with socket.create_connection((sys.argv[1], sys.argv[2])) as connection:
        print(be_rude(connection), flush=True)
        with connection.makefile("wb") as stream:
            shutil.copyfileobj(sys.stdin.buffer, stream)


main()
