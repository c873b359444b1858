// SPDX-License-Identifier: MIT OR Apache-2.0
//! Proves that bytes are of a test: HMAC-SHA256 by a secret that only both ends have, cut to half of its length (RFC 2104, 5).

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac::{Context, HMAC_SHA256, Key};

/// Length of a proof.
pub const TAG_BYTES: usize = 16;

/// Of one test.
pub struct Secret(Key);

impl Secret {
    /// Of what only both ends know.
    pub fn new(secret: &[u8; 32]) -> Secret {
        Secret(Key::new(HMAC_SHA256, secret))
    }

    /// The proof of bytes, which come in parts.
    pub fn tag<const PARTS: usize>(&self, parts: [&[u8]; PARTS]) -> [u8; TAG_BYTES] {
        let mut context = Context::with_key(&self.0);
        parts.iter().for_each(|part| context.update(part));
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(&context.sign().as_ref()[..TAG_BYTES]);
        tag
    }

    /// Whether `tag` is the proof of bytes; it takes as long whatever the answer.
    pub fn proves<const PARTS: usize>(&self, parts: [&[u8]; PARTS], tag: &[u8]) -> bool {
        verify_slices_are_equal(&self.tag(parts), tag).is_ok()
    }
}
