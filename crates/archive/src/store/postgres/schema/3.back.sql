-- SPDX-License-Identifier: MIT OR Apache-2.0

DROP INDEX other_by_origin;
