// SPDX-License-Identifier: MIT OR Apache-2.0
//! Moves segments from the spool to a store. The segment is removed after the store has its events durably: a crash
//! between the two moves it again, and the store knows its events by origin and sequence number.

use crate::segment;
use crate::store::{Batch, Put, Store, StoreError};
use crate::{Claimed, SealedSegments};
use std::io;
use std::sync::Arc;

/// Why a segment stays in the spool.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// Of the segment.
    #[error("{0}")]
    Segment(String, #[source] io::Error),
    /// Of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Moves the oldest segment that waits. `None`: none does.
///
/// # Errors
/// When the store does not take it: it waits on, and is moved by a later call.
pub fn move_oldest(
    sealed: &Arc<SealedSegments>,
    store: &mut dyn Store,
) -> Result<Option<Put>, MoveError> {
    let Some(claimed) = sealed.claim_oldest() else {
        return Ok(None);
    };
    let of_segment =
        |claimed: &Claimed, error| MoveError::Segment(claimed.path().display().to_string(), error);
    let bytes = claimed
        .read()
        .map_err(|error| of_segment(&claimed, error))?;
    let Ok((header, events)) = segment::read(&bytes) else {
        // It was whole when it was sealed.
        let path = claimed.path().display().to_string();
        claimed
            .set_aside()
            .map_err(|error| MoveError::Segment(path, error))?;
        return Ok(Some(Put::default()));
    };
    let batch = Batch {
        origin: header.origin,
        kind: header.kind,
        events: events.collect(),
    };
    let put = store.put(&batch)?;
    let path = claimed.path().display().to_string();
    claimed
        .remove()
        .map_err(|error| MoveError::Segment(path, error))?;
    Ok(Some(put))
}
