#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""One transfer and its goodput, as who receives sees it: transfer.py receive PORT STOP_S, and
transfer.py send HOST PORT BYTES, which prints the sums of `iperf3 --json`.

iperf3 itself ends a test of so many bytes when the last of them is in the send buffer, which here is larger than most
transfers. The time is from the call of connect() to the last byte, by the clock that both ends share; STOP_S after the
connection is there, what has come counts."""

import json
import select
import socket
import struct
import sys
import time

CHUNK = bytes(1 << 18)
REPORT = struct.Struct("!Qd")  # bytes, and when the last of them came
# struct tcp_info of linux/tcp.h.
TCP_INFO_BYTES = 104
TOTAL_RETRANS_AT = 100


def receive(port, stop_s):
    with socket.create_server(("", int(port))) as server:
        connection, _ = server.accept()
    with connection:
        connection.sendall(REPORT.pack(*received(connection, float(stop_s))))
        drain(connection)


def received(connection, stop_s):
    """Bytes until the end of the data or for stop_s, and when that was."""
    end_s, got_bytes, room = time.monotonic() + stop_s, 0, bytearray(len(CHUNK))
    while (left_s := end_s - time.monotonic()) > 0:
        connection.settimeout(left_s)
        try:
            got = connection.recv_into(room)
        except TimeoutError:
            break
        if got == 0:
            return got_bytes, time.monotonic()
        got_bytes += got
    return got_bytes, end_s


def drain(connection):
    """Until the sender has the report: a socket closed with data unread would reset the connection."""
    connection.settimeout(None)
    try:
        while connection.recv(len(CHUNK)):
            pass
    except ConnectionResetError:
        pass


def send(host, port, size):
    begin_s = time.monotonic()
    with socket.create_connection((host, port)) as connection:
        fill(connection, int(size))
        got_bytes, end_s = REPORT.unpack(all_of(connection, REPORT.size))
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
        (retransmits,) = struct.unpack_from("=I", info, TOTAL_RETRANS_AT)
        # What is unsent is of no interest any more.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, 0))
    seconds = end_s - begin_s
    got = {"bits_per_second": 8 * got_bytes / seconds, "seconds": seconds}
    json.dump({"end": {"sum_received": got, "sum_sent": {"retransmits": retransmits}}}, sys.stdout)


def fill(connection, left_bytes):
    """Sends so many bytes, or fewer when the report comes first."""
    connection.setblocking(False)
    while left_bytes > 0:
        report_has_come, has_room, _ = select.select([connection], [connection], [])
        if report_has_come:
            break
        if has_room:
            left_bytes -= connection.send(CHUNK[:left_bytes])
    else:
        connection.shutdown(socket.SHUT_WR)
    connection.setblocking(True)


def all_of(connection, length):
    text = b""
    while len(text) < length:
        more = connection.recv(length - len(text))
        if not more:
            sys.exit("the receiver has gone")
        text += more
    return text


{"send": send, "receive": receive}[sys.argv[1]](*sys.argv[2:])
