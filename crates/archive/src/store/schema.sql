-- SPDX-License-Identifier: MIT OR Apache-2.0
-- Events of one day (UTC). The views are for queries from outside, and stay as they are; the tables may change.

CREATE TABLE origin (
    id INTEGER PRIMARY KEY,
    host TEXT NOT NULL,
    boot TEXT NOT NULL,
    UNIQUE (host, boot)
);

CREATE TABLE record (
    origin INTEGER NOT NULL REFERENCES origin (id),
    sequence INTEGER NOT NULL,
    time_us INTEGER NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    peer TEXT,
    -- 16 bytes, of IPv4 the mapped address of IPv6.
    peer_key BLOB,
    rule TEXT,
    value REAL,
    weight INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (origin, sequence)
);
CREATE INDEX record_by_time ON record (time_us);
CREATE INDEX record_by_peer ON record (peer_key, time_us) WHERE peer_key IS NOT NULL;

-- Flows and samples are nearly all events: the others are found without reading these. Days of earlier versions lack
-- the two, and are read more slowly.
CREATE INDEX other_by_kind ON record (kind, time_us) WHERE kind NOT IN ('flow', 'sample');
CREATE INDEX other_by_peer ON record (peer_key, time_us) WHERE kind NOT IN ('flow', 'sample');

-- Of the flows that ended in an interval, by path: a /24 of IPv4, a /48 of IPv6.
CREATE TABLE rollup (
    path BLOB NOT NULL,
    width_s INTEGER NOT NULL,
    measure TEXT NOT NULL,
    begin_s INTEGER NOT NULL,
    n INTEGER NOT NULL,
    sum_ln REAL NOT NULL,
    sum_ln2 REAL NOT NULL,
    histogram BLOB NOT NULL,
    PRIMARY KEY (path, width_s, measure, begin_s)
) WITHOUT ROWID;

-- Days whose roll-ups were added here, and whose database is about to be removed.
CREATE TABLE taken (day TEXT PRIMARY KEY);

CREATE VIEW event AS
SELECT host, boot, sequence, time_us,
    strftime('%Y-%m-%dT%H:%M:%fZ', time_us / 1e6, 'unixepoch') AS time,
    kind, name, peer, rule, value, weight, body
FROM record JOIN origin ON origin.id = record.origin;

CREATE VIEW flow AS
SELECT host, boot, sequence, time_us, time, peer,
    body ->> 'local' AS local, body ->> 'remote' AS remote, rule, weight,
    body ->> 'opened' AS opened, body ->> 'law' AS law,
    body ->> 'duration_s' AS duration_s,
    body ->> 'bytes_acked' AS bytes_acked, body ->> 'bytes_received' AS bytes_received,
    body ->> 'goodput_mbps' AS goodput_mbps,
    body ->> 'segments_sent' AS segments_sent,
    body ->> 'segments_retransmitted' AS segments_retransmitted,
    body ->> 'srtt_us' AS srtt_us, body ->> 'min_rtt_us' AS min_rtt_us,
    body
FROM event WHERE kind = 'flow';

CREATE VIEW test AS SELECT * FROM event WHERE kind = 'test';

CREATE VIEW path AS SELECT * FROM event WHERE kind = 'path';

CREATE VIEW decision AS SELECT * FROM event WHERE kind = 'decision';
