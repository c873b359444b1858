#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A flow that is rude for some seconds, then goes polite nicely: nicely.py send HOST PORT RUDE_S LASTING_S, or
nicely.py receive PORT. Of experiments/rude/nicely.toml; writes a line each half second: seconds, state, the
congestion window in segments (RUDE_OFF_NICELY's R while it goes polite), goodput in Mb/s."""

import socket
import struct
import sys
import threading
import time

# Of include/fatpath/rude.h.
TCP_RUDE = 0x7001
RUDE_ON = 1
RUDE_OFF_NICELY = 2
STATES = ["polite", "rude", "going polite"]

EVERY_S = 0.5
CHUNK = bytes(1 << 18)
# struct tcp_info of linux/tcp.h.
TCP_INFO_BYTES = 128
SND_CWND_AT = 80
BYTES_ACKED_AT = 120


def look(connection):
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
    (cwnd_pkts,) = struct.unpack_from("=I", info, SND_CWND_AT)
    (acked_bytes,) = struct.unpack_from("=Q", info, BYTES_ACKED_AT)
    state = connection.getsockopt(socket.IPPROTO_TCP, TCP_RUDE)
    return STATES[state], cwnd_pkts, acked_bytes


def watch(connection, begin_s, rude_s, lasting_s):
    before_bytes, due_s, is_off = 0, 0.0, False
    print("seconds,state,cwnd_pkts,goodput_mbps")
    while due_s < lasting_s:
        due_s += EVERY_S
        time.sleep(max(0.0, begin_s + due_s - time.monotonic()))
        if due_s >= rude_s and not is_off:
            connection.setsockopt(socket.IPPROTO_TCP, TCP_RUDE, RUDE_OFF_NICELY)
            is_off = True
        state, cwnd_pkts, acked_bytes = look(connection)
        mbps = (acked_bytes - before_bytes) * 8e-6 / EVERY_S
        before_bytes = acked_bytes
        print(f"{due_s},{state},{cwnd_pkts},{mbps:.1f}", flush=True)
    connection.shutdown(socket.SHUT_RDWR)


def fill(connection):
    try:
        while True:
            connection.sendall(CHUNK)
    except OSError:
        pass  # it was shut down


def send(host, port, rude_s, lasting_s):
    with socket.create_connection((host, port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, TCP_RUDE, RUDE_ON)
        begin_s = time.monotonic()
        threading.Thread(target=fill, args=[connection], daemon=True).start()
        watch(connection, begin_s, float(rude_s), float(lasting_s))


def receive(port):
    with socket.create_server(("", int(port))) as server:
        connection, _ = server.accept()
        room = bytearray(len(CHUNK))
        try:
            while connection.recv_into(room):
                pass
        except ConnectionResetError:
            pass  # the sender had more


{"send": send, "receive": receive}[sys.argv[1]](*sys.argv[2:])
