-- SPDX-License-Identifier: MIT OR Apache-2.0

DROP TABLE rollup_kept;
ALTER TABLE rollup RESET (fillfactor);
ALTER TABLE record ADD CONSTRAINT record_origin_fkey FOREIGN KEY (origin) REFERENCES origin (id);
