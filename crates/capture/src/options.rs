// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options of a TCP header, of which some may be cut off or malformed.

/// Option kinds, as IANA lists them.
mod kind {
    pub const END: u8 = 0;
    pub const NOP: u8 = 1;
    pub const MSS: u8 = 2;
    pub const WINDOW_SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
    pub const TIMESTAMPS: u8 = 8;
}

/// What 40 bytes of options have room for (RFC 2018, section 3).
pub const MAX_SACK_BLOCKS: usize = 4;

/// RFC 7323, section 2.3: a larger shift counts as this one.
const MAX_WINDOW_SCALE: u8 = 14;

/// The options of one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size (RFC 9293, section 3.7.1).
    pub mss_bytes: Option<u16>,
    /// Shift of the window, 0 to 14 (RFC 7323).
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018).
    pub sack_permitted: bool,
    /// TSval and TSecr (RFC 7323).
    pub timestamps: Option<(u32, u32)>,
    sack: [(u32, u32); MAX_SACK_BLOCKS],
    sack_count: u8,
    /// The snaplen cut options off.
    pub is_cut: bool,
    /// An option that its own length contradicts.
    pub is_malformed: bool,
}

impl Options {
    /// Reads `bytes`, what was captured of the options.
    #[inline]
    pub fn read(bytes: &[u8], is_cut: bool) -> Options {
        let mut options = Options {
            is_cut,
            ..Options::default()
        };
        // What Linux sends with every segment but the first: two NOPs and timestamps.
        if let [1, 1, kind::TIMESTAMPS, 10, value @ ..] = bytes
            && value.len() == 8
        {
            options.take(kind::TIMESTAMPS, value);
            return options;
        }
        options.read_all(bytes);
        options
    }

    fn read_all(&mut self, mut bytes: &[u8]) {
        loop {
            match *bytes {
                [] | [kind::END, ..] => return,
                [kind::NOP, ref rest @ ..] => bytes = rest,
                [kind, length @ (2..), ref rest @ ..] if rest.len() >= usize::from(length) - 2 => {
                    let (value, after) = rest.split_at(usize::from(length) - 2);
                    self.take(kind, value);
                    bytes = after;
                }
                // The rest of an option that the snaplen cut is no fault of its sender.
                [_] | [_, (2..), ..] if self.is_cut => return,
                _ => {
                    self.is_malformed = true;
                    return;
                }
            }
        }
    }

    fn take(&mut self, kind: u8, value: &[u8]) {
        match (kind, value) {
            (kind::MSS, &[high, low]) => self.mss_bytes = Some(u16::from_be_bytes([high, low])),
            (kind::WINDOW_SCALE, &[shift]) => {
                self.window_scale = Some(shift.min(MAX_WINDOW_SCALE));
            }
            (kind::SACK_PERMITTED, []) => self.sack_permitted = true,
            (kind::TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
                let both = [[a, b, c, d], [e, f, g, h]].map(u32::from_be_bytes);
                self.timestamps = Some(both.into());
            }
            (kind::SACK, blocks) if !blocks.is_empty() && blocks.len().is_multiple_of(8) => {
                self.take_sack(blocks);
            }
            (kind::MSS | kind::WINDOW_SCALE | kind::SACK_PERMITTED, _) => self.is_malformed = true,
            (kind::TIMESTAMPS | kind::SACK, _) => self.is_malformed = true,
            // Others are none of ours.
            _ => {}
        }
    }

    fn take_sack(&mut self, blocks: &[u8]) {
        let number = |at: &[u8]| u32::from_be_bytes([at[0], at[1], at[2], at[3]]);
        let blocks = blocks.chunks_exact(8).take(MAX_SACK_BLOCKS);
        self.sack_count = blocks.len() as u8;
        for (kept, block) in self.sack.iter_mut().zip(blocks) {
            *kept = (number(block), number(&block[4..]));
        }
    }

    /// Blocks of a SACK option: first and one past the last sequence number of each.
    pub fn sack(&self) -> &[(u32, u32)] {
        &self.sack[..usize::from(self.sack_count)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_syn_of_linux() {
        let bytes = [
            2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 7, 1, 3, 3, 40,
        ];
        let options = Options::read(&bytes, false);
        assert_eq!(options.mss_bytes, Some(1460));
        assert_eq!(options.window_scale, Some(14), "40 counts as 14");
        assert!(options.sack_permitted && !options.is_malformed);
        assert_eq!(options.timestamps, Some((9, 7)));
    }

    #[test]
    fn blocks_of_a_sack() {
        let mut bytes = vec![1, 1, 5, 18];
        for number in [10_u32, 20, 40, 50] {
            bytes.extend(number.to_be_bytes());
        }
        assert_eq!(Options::read(&bytes, false).sack(), [(10, 20), (40, 50)]);
    }

    #[test]
    fn an_unknown_option_is_passed_over_and_a_wrong_length_is_counted() {
        let unknown = Options::read(&[254, 4, 9, 9, 4, 2], false);
        assert!(unknown.sack_permitted && !unknown.is_malformed);
        for wrong in [
            &[3, 0, 1][..],
            &[3, 1, 1],
            &[2, 40, 1],
            &[5, 3, 1],
            &[8, 4, 1, 1],
            &[7],
        ] {
            assert!(Options::read(wrong, false).is_malformed, "{wrong:?}");
        }
    }

    #[test]
    fn what_the_snaplen_cut_is_no_fault() {
        let cut = Options::read(&[4, 2, 8, 10, 0, 0], true);
        assert!(cut.sack_permitted && !cut.is_malformed && cut.timestamps.is_none());
    }
}
