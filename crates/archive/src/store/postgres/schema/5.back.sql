-- SPDX-License-Identifier: MIT OR Apache-2.0

-- The days of what comes back.
DO $$
DECLARE
    begin_us bigint;
    day text;
BEGIN
    FOR begin_us IN
        SELECT DISTINCT time_us / 86400000000 * 86400000000 FROM other
        WHERE time_us >= 0 AND time_us < 253402300800000000
    LOOP
        day := 'record_' || to_char(to_timestamp(begin_us / 1e6) AT TIME ZONE 'UTC', 'YYYYMMDD');
        IF to_regclass('fatpath.' || day) IS NULL THEN
            EXECUTE format('CREATE TABLE %I PARTITION OF record FOR VALUES FROM (%s) TO (%s)',
                day, begin_us, begin_us + 86400000000);
        END IF;
    END LOOP;
END
$$;

CREATE OR REPLACE VIEW event AS
SELECT host, boot, sequence, time_us, to_timestamp(time_us / 1e6) AS time,
    kind, name, peer, rule, value, weight, body
FROM record JOIN origin ON origin.id = record.origin;

INSERT INTO record SELECT * FROM other ON CONFLICT DO NOTHING;
DROP TABLE other;
CREATE INDEX other_by_kind ON record (kind, time_us) WHERE kind NOT IN ('flow', 'sample');
CREATE INDEX other_by_peer ON record USING gist (peer inet_ops) WHERE kind NOT IN ('flow', 'sample');
CREATE INDEX other_by_origin ON record (origin, kind, time_us) WHERE kind NOT IN ('flow', 'sample');
