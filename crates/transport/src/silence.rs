// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long the other end has said nothing that verifies, while something was expected of it. Without a limit, TCP would
//! send again for ever to a peer that has gone.

/// The silence of the other end.
#[derive(Debug)]
pub(crate) struct Silence {
    limit_ns: u64,
    /// Since when it is silent; `None`: nothing is expected of it.
    since_ns: Option<u64>,
    /// When it said something last, whether that was expected or not.
    heard_ns: u64,
}

impl Silence {
    pub(crate) fn new(limit_ns: u64) -> Silence {
        Silence {
            limit_ns,
            since_ns: None,
            heard_ns: 0,
        }
    }

    /// Whether something is expected now.
    pub(crate) fn expect(&mut self, now_ns: u64, is_expected: bool) {
        match is_expected {
            true => _ = self.since_ns.get_or_insert(now_ns),
            false => self.since_ns = None,
        }
    }

    /// It said something.
    pub(crate) fn heard(&mut self, now_ns: u64) {
        self.since_ns = self.since_ns.map(|_| now_ns);
        self.heard_ns = now_ns;
    }

    pub(crate) fn heard_ns(&self) -> u64 {
        self.heard_ns
    }

    /// Since when it is silent, if something is expected of it.
    pub(crate) fn since_ns(&self) -> Option<u64> {
        self.since_ns
    }

    /// When it has been silent for too long.
    pub(crate) fn ends_ns(&self) -> Option<u64> {
        self.since_ns
            .map(|since_ns| since_ns.saturating_add(self.limit_ns))
    }

    pub(crate) fn is_over(&self, now_ns: u64) -> bool {
        self.ends_ns().is_some_and(|ends_ns| ends_ns <= now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_while_something_is_expected() {
        let mut silence = Silence::new(10);
        assert!(!silence.is_over(1000));
        silence.expect(5, true);
        silence.expect(9, true);
        assert_eq!(
            (silence.ends_ns(), silence.is_over(14), silence.is_over(15)),
            (Some(15), false, true)
        );
        silence.heard(12);
        assert_eq!(silence.ends_ns(), Some(22));
        silence.expect(13, false);
        silence.heard(14);
        assert_eq!((silence.ends_ns(), silence.heard_ns()), (None, 14));
    }
}
