-- SPDX-License-Identifier: MIT OR Apache-2.0
-- Everything that was archived goes, too.

DROP SCHEMA fatpath CASCADE;
