-- SPDX-License-Identifier: MIT OR Apache-2.0

-- What hosts want stays known: they go back one after the other, and forward again.
ALTER TABLE retention DROP COLUMN told_at;
DROP INDEX other_by_peer;
DROP INDEX other_by_kind;
