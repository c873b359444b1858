-- SPDX-License-Identifier: MIT OR Apache-2.0

DROP TABLE retention;
DROP INDEX other_by_peer;
DROP INDEX other_by_kind;
