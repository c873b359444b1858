-- SPDX-License-Identifier: MIT OR Apache-2.0

-- What one host stored is found without reading that of all.
CREATE INDEX other_by_origin ON record (origin, kind, time_us) WHERE kind NOT IN ('flow', 'sample');
