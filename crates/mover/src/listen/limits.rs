// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many transfers there may be at a time, and what each of them may have.

use super::ListenArguments;
use anyhow::{Result, ensure};

/// With less a transfer is slow over any path: 8 Mb/s by a second.
const LEAST_WINDOW_BYTES: u64 = 1 << 20;

/// Of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Transfers at a time.
    pub transfers: usize,
    /// Of these, for one key.
    pub per_key: usize,
    /// What may wait in memory for the disk, for each transfer.
    pub window_bytes: u64,
}

impl Limits {
    /// What was asked for.
    ///
    /// # Errors
    /// The memory is too little for so many transfers.
    pub fn of(arguments: &ListenArguments) -> Result<Limits> {
        let (transfers, memory_bytes) = (arguments.transfers, arguments.memory);
        let window_bytes = memory_bytes / u64::from(transfers);
        ensure!(
            window_bytes >= LEAST_WINDOW_BYTES,
            "--memory: give {transfers}MiB or more, which is 1 MiB for each of --transfers"
        );
        let half = transfers.div_ceil(2);
        let per_key = arguments.transfers_per_key.unwrap_or(half).min(transfers);
        Ok(Limits {
            transfers: transfers.into(),
            per_key: per_key.into(),
            window_bytes,
        })
    }

    /// Whether `key` may have one more transfer, while `owners` have those that run.
    ///
    /// # Errors
    /// Why not, for whoever asks.
    pub fn permit<K: PartialEq>(
        &self,
        owners: impl Iterator<Item = K> + Clone,
        key: K,
    ) -> Result<(), String> {
        if owners.clone().count() >= self.transfers {
            return Err(format!(
                "the listener has as many transfers as it takes at a time (--transfers {}): try again later",
                self.transfers
            ));
        }
        if owners.filter(|owner| *owner == key).count() >= self.per_key {
            return Err(format!(
                "the listener has as many transfers as it takes of one key at a time (--transfers-per-key {}): try again when one \
                 of yours has ended",
                self.per_key
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;
    use crate::RecvArguments;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        arguments: RecvArguments,
    }

    fn limits(words: &str) -> Result<Limits> {
        let always = ["recv", "--listen", "4747", "--into", "/"].into_iter();
        Limits::of(
            &Command::parse_from(always.chain(words.split_whitespace()))
                .arguments
                .listening,
        )
    }

    #[test]
    fn a_key_has_its_part_and_all_have_theirs() {
        let limits = limits("--transfers 3").unwrap();
        let permit = |owners: &'static str, key| limits.permit(owners.chars(), key);
        assert_eq!(permit("", 'a'), Ok(()));
        assert_eq!(permit("a", 'a'), Ok(()));
        assert!(
            permit("aa", 'a')
                .unwrap_err()
                .contains("--transfers-per-key 2")
        );
        assert_eq!(permit("aa", 'b'), Ok(()));
        assert!(permit("aab", 'c').unwrap_err().contains("--transfers 3"));
    }

    #[test]
    fn transfers_have_equal_parts_and_a_key_has_half_of_them() {
        let of = |transfers, per_key, window_bytes| Limits {
            transfers,
            per_key,
            window_bytes,
        };
        assert_eq!(limits("").unwrap(), of(8, 4, 256 << 20));
        let few = "--transfers 3 --memory 96MiB";
        assert_eq!(limits(few).unwrap(), of(3, 2, 32 << 20));
        let alone = "--transfers 1 --transfers-per-key 7";
        assert_eq!(limits(alone).unwrap(), of(1, 1, 2 << 30));
        let little = limits("--transfers 100 --memory 99MiB").unwrap_err();
        assert!(little.to_string().contains("give 100MiB"), "{little}");
    }
}
