-- SPDX-License-Identifier: MIT OR Apache-2.0

-- Flows and samples are nearly all events: the others are found without reading these.
CREATE INDEX other_by_kind ON record (kind, time_us) WHERE kind NOT IN ('flow', 'sample');
CREATE INDEX other_by_peer ON record USING gist (peer inet_ops) WHERE kind NOT IN ('flow', 'sample');

-- For how many days each host wants events kept: a day goes when it is too old for all.
CREATE TABLE IF NOT EXISTS retention (host text PRIMARY KEY, days bigint NOT NULL);

-- When the host told it first, by this version: none is dropped before each had the time to tell.
ALTER TABLE retention ADD COLUMN told_at timestamptz NOT NULL DEFAULT now();
