// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of NetLogger: `ts=2026-11-24T02:00:00Z event=rtt.end rtt=12.5 host="a b"`.

/// The keys and values of a line; a value in quotation marks may have spaces. Whatever is no `key=value` is left out.
pub(super) fn pairs(line: &str) -> Vec<(&str, &str)> {
    let (mut rest, mut pairs) = (line.trim(), Vec::new());
    while let Some((before, after)) = rest.split_once('=') {
        let key = before
            .rsplit(char::is_whitespace)
            .next()
            .unwrap_or_default();
        let (value, behind) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_once(char::is_whitespace).unwrap_or((after, "")),
        };
        pairs.push((key, value));
        rest = behind;
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read() {
        let line = "ts=2026 event=rtt.end  host=\"a b=c\" rtt=12.5\n";
        let wanted = [
            ("ts", "2026"),
            ("event", "rtt.end"),
            ("host", "a b=c"),
            ("rtt", "12.5"),
        ];
        assert_eq!(pairs(line), wanted);
        assert!(pairs("no pair at all").is_empty());
        assert_eq!(pairs("a=\"open"), [("a", "open")]);
    }
}
