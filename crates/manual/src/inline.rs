// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is inside of a line: code and bold become bold, a link its text.

/// Text as roff prints it. A line may not begin with what roff takes for a request.
pub(crate) fn escaped(text: &str) -> String {
    let mut roff = String::with_capacity(text.len());
    if text.starts_with(['.', '\'']) {
        roff.push_str("\\&");
    }
    for c in text.chars() {
        match c {
            '\\' => roff.push_str("\\e"),
            '-' => roff.push_str("\\-"),
            '~' => roff.push_str("\\(ti"),
            '^' => roff.push_str("\\(ha"),
            '`' => roff.push_str("\\(ga"),
            c if c.is_control() => roff.push(' '),
            c => roff.push(c),
        }
    }
    roff
}

/// A paragraph, a cell or an item, on one line.
pub(crate) fn roff_of(text: &str) -> String {
    let mut roff = String::new();
    let mut rest = text;
    while let Some((before, marked, after)) = next_mark(rest) {
        roff.push_str(&escaped(before));
        match marked {
            Marked::Strong(inside) => roff.push_str(&format!("\\fB{}\\fR", escaped(inside))),
            Marked::Link(inside) => roff.push_str(&roff_of(inside)),
        }
        rest = after;
    }
    roff.push_str(&escaped(rest));
    match roff.starts_with(['.', '\'']) {
        true => format!("\\&{roff}"),
        false => roff,
    }
}

enum Marked<'t> {
    Strong(&'t str),
    Link(&'t str),
}

/// What comes before the first mark, what is marked, and what comes after.
fn next_mark(text: &str) -> Option<(&str, Marked<'_>, &str)> {
    let between = |open: &str, close: &str| {
        let from = text.find(open)?;
        let inside = from + open.len();
        let to = inside + text[inside..].find(close)?;
        Some((from, &text[inside..to], &text[to + close.len()..]))
    };
    let code = between("`", "`").map(|(at, inside, after)| (at, Marked::Strong(inside), after));
    let bold = between("**", "**").map(|(at, inside, after)| (at, Marked::Strong(inside), after));
    let link = between("[", "](").and_then(|(at, inside, after)| {
        let (_, after) = after.split_once(')')?;
        Some((at, Marked::Link(inside), after))
    });
    let first = [code, bold, link]
        .into_iter()
        .flatten()
        .min_by_key(|(at, ..)| *at)?;
    let (at, marked, after) = first;
    Some((&text[..at], marked, after))
}
