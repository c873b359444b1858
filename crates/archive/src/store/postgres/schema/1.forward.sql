-- SPDX-License-Identifier: MIT OR Apache-2.0
-- Events of many hosts. The views are for queries from outside, and stay as they are; the tables may change.

CREATE SCHEMA IF NOT EXISTS fatpath;

CREATE TABLE schema_version (version bigint NOT NULL);
INSERT INTO schema_version VALUES (1);

CREATE TABLE origin (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    host text NOT NULL,
    boot text NOT NULL,
    UNIQUE (host, boot)
);

-- A partition for each day is made when its first event comes. The key of a partitioned table has the column that
-- divides it; an event that is stored again has the same time.
CREATE TABLE record (
    origin bigint NOT NULL REFERENCES origin (id),
    sequence bigint NOT NULL,
    time_us bigint NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    peer inet,
    rule text,
    value double precision,
    weight bigint NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (origin, sequence, time_us)
) PARTITION BY RANGE (time_us);
CREATE INDEX record_by_time ON record USING brin (time_us);
CREATE INDEX record_by_peer ON record USING gist (peer inet_ops);

-- Events of a clock that is far off: before 1970, after 9999. What has a date is refused here, so that a day that another
-- host dropped meanwhile is made again.
CREATE TABLE record_other PARTITION OF record (
    CHECK (time_us < 0 OR time_us >= 253402300800000000)
) DEFAULT;

-- Of the flows that ended in an interval, by path (a /24 of IPv4, a /48 of IPv6) and by the host that saw them.
CREATE TABLE rollup (
    path inet NOT NULL,
    width_s bigint NOT NULL,
    measure text NOT NULL,
    begin_s bigint NOT NULL,
    host text NOT NULL,
    n bigint NOT NULL,
    sum_ln double precision NOT NULL,
    sum_ln2 double precision NOT NULL,
    histogram bytea NOT NULL,
    PRIMARY KEY (path, width_s, measure, begin_s, host)
);

CREATE VIEW event AS
SELECT host, boot, sequence, time_us, to_timestamp(time_us / 1e6) AS time,
    kind, name, peer, rule, value, weight, body
FROM record JOIN origin ON origin.id = record.origin;

CREATE VIEW flow AS
SELECT host, boot, sequence, time_us, time, peer,
    body::json ->> 'local' AS local, body::json ->> 'remote' AS remote, rule, weight,
    body::json ->> 'opened' AS opened, body::json ->> 'law' AS law,
    (body::json ->> 'duration_s')::double precision AS duration_s,
    (body::json ->> 'bytes_acked')::double precision AS bytes_acked,
    (body::json ->> 'bytes_received')::double precision AS bytes_received,
    (body::json ->> 'goodput_mbps')::double precision AS goodput_mbps,
    (body::json ->> 'segments_sent')::double precision AS segments_sent,
    (body::json ->> 'segments_retransmitted')::double precision AS segments_retransmitted,
    (body::json ->> 'srtt_us')::double precision AS srtt_us,
    (body::json ->> 'min_rtt_us')::double precision AS min_rtt_us,
    body
FROM event WHERE kind = 'flow';

CREATE VIEW test AS SELECT * FROM event WHERE kind = 'test';

CREATE VIEW path AS SELECT * FROM event WHERE kind = 'path';

CREATE VIEW decision AS SELECT * FROM event WHERE kind = 'decision';
