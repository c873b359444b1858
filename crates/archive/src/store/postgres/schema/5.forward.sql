-- SPDX-License-Identifier: MIT OR Apache-2.0

-- What is neither flow nor sample is little, and is asked for over long times: in tables of a day each, a new connection had to
-- learn of all days' tables and indexes first, which took it longer than the events.
CREATE TABLE other (
    LIKE record INCLUDING DEFAULTS,
    CHECK (kind NOT IN ('flow', 'sample')),
    PRIMARY KEY (origin, sequence, time_us)
);
WITH moved AS (DELETE FROM record WHERE kind NOT IN ('flow', 'sample') RETURNING *)
INSERT INTO other SELECT * FROM moved;
DROP INDEX other_by_kind;
DROP INDEX other_by_peer;
DROP INDEX other_by_origin;
CREATE INDEX other_by_time ON other (time_us);
CREATE INDEX other_by_kind ON other (kind, time_us);
CREATE INDEX other_by_peer ON other USING gist (peer inet_ops);
CREATE INDEX other_by_origin ON other (origin, kind, time_us);
ANALYZE other;

-- By the condition of the first half the server leaves out all days where it is asked for another kind.
CREATE OR REPLACE VIEW event AS
SELECT host, boot, sequence, time_us, to_timestamp(time_us / 1e6) AS time,
    kind, name, peer, rule, value, weight, body
FROM record JOIN origin ON origin.id = record.origin WHERE kind IN ('flow', 'sample')
UNION ALL
SELECT host, boot, sequence, time_us, to_timestamp(time_us / 1e6) AS time,
    kind, name, peer, rule, value, weight, body
FROM other JOIN origin ON origin.id = other.origin WHERE kind NOT IN ('flow', 'sample');
