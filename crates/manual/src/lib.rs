// SPDX-License-Identifier: MIT OR Apache-2.0
//! A page of the documentation as a man page: Markdown in, roff out (man(7), tbl(1)).
//!
//! It reads the Markdown that docs/ is written in: headings, paragraphs, lists, tables, blocks of code, and bold,
//! code and links inside of a line. It is no reader of all of Markdown: HTML other than comments, images, and lists
//! inside of lists it does not know.
//!
//! Start at [`Page::to_roff`].

mod block;
mod inline;
mod table;

use block::{Block, blocks};
use inline::{escaped, roff_of};
use table::table;

/// A page: its heading, and the text that it has from the documentation.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// Such as `fatpath-policy`.
    pub name: &'a str,
    /// Section of the manual, 1 to 8.
    pub section: u8,
    /// What it is about, in a few words, without a full stop: what apropos(1) shows.
    pub title: &'a str,
    /// Name and version of the program.
    pub source: &'a str,
    /// Markdown. Its first heading, the name of the page there, is left out.
    pub text: &'a str,
    /// Other pages, such as `fatpath(1)`.
    pub see_also: &'a [&'a str],
}

impl Page<'_> {
    /// The page as man(1) reads it.
    pub fn to_roff(&self) -> String {
        let mut roff = self.head();
        let mut text = String::new();
        for block in blocks(self.text) {
            write_block(&mut text, &block);
        }
        // What comes before the first heading describes the whole.
        if !text.starts_with(".SH") {
            roff.push_str(".SH DESCRIPTION\n");
        }
        roff.push_str(&without_idle_breaks(&text));
        roff.push_str(&see_also(self.see_also));
        roff
    }

    /// Up to its name and title.
    pub fn head(&self) -> String {
        // `'\" t`: with tables.
        format!(
            "'\\\" t\n.TH {} {} \"\" \"{}\" \"fatpath\"\n.SH NAME\n{} \\- {}\n",
            escaped(&self.name.to_uppercase()),
            self.section,
            escaped(self.source),
            escaped(self.name),
            escaped(self.title)
        )
    }
}

/// Sections that clap_mangen wrote, without backticks and without breaks beside an empty line, which do nothing.
pub fn tidy(sections: &str) -> String {
    let lines: Vec<&str> = sections.lines().collect();
    let is_space = |at: Option<usize>| {
        at.and_then(|at| lines.get(at))
            .is_some_and(|line| line.is_empty() || *line == ".sp")
    };
    let is_idle = |at: usize| {
        lines[at] == ".br" && (is_space(at.checked_sub(1)) || is_space(at.checked_add(1)))
    };
    let kept = (0..lines.len()).filter(|at| !is_idle(*at));
    kept.map(|at| lines[at].replace('`', "") + "\n").collect()
}

/// A section of text as the terminal shows it: paragraphs, and indented lines, which stay lines.
pub fn plain(heading: &str, text: &str) -> String {
    if text.trim().is_empty() {
        return String::new();
    }
    let mut roff = format!(".SH {heading}\n");
    let mut is_indented = false;
    for line in text.trim_end().lines() {
        let indented = line.starts_with(' ');
        if indented != is_indented && !line.is_empty() {
            roff.push_str(if indented { ".PP\n.nf\n" } else { ".fi\n.PP\n" });
            is_indented = indented;
        }
        match line.is_empty() {
            true if is_indented => {}
            true => roff.push_str(".PP\n"),
            false => roff.push_str(&format!("{}\n", escaped(&line.replace('`', "")))),
        }
    }
    if is_indented {
        roff.push_str(".fi\n");
    }
    without_idle_breaks(&roff)
}

/// The section SEE ALSO: `fatpath(1)` with its name in bold.
pub fn see_also(pages: &[&str]) -> String {
    let named: Vec<String> = pages
        .iter()
        .filter_map(|page| page.split_once('('))
        .map(|(name, section)| format!(".BR {} ({section}", escaped(name)))
        .collect();
    match named.is_empty() {
        true => String::new(),
        false => format!(".SH \"SEE ALSO\"\n{}\n", named.join(" ,\n")),
    }
}

fn write_block(roff: &mut String, block: &Block<'_>) {
    match block {
        Block::Heading(2, text) => {
            roff.push_str(&format!(".SH \"{}\"\n", quotable(&text.to_uppercase())));
        }
        Block::Heading(_, text) => roff.push_str(&format!(".SS \"{}\"\n", quotable(text))),
        Block::Paragraph(text) => roff.push_str(&format!(".PP\n{}\n", roff_of(text))),
        Block::Item(mark, text) => {
            roff.push_str(&format!(".IP {} 4\n{}\n", mark_of(mark), roff_of(text)));
        }
        Block::Code(lines) => {
            let lines: Vec<String> = lines.iter().map(|line| escaped(line)).collect();
            roff.push_str(&format!(
                ".PP\n.RS 4\n.nf\n{}\n.fi\n.RE\n",
                lines.join("\n")
            ));
        }
        Block::Table(rows) => roff.push_str(&table(rows)),
    }
}

fn mark_of(mark: &str) -> String {
    match mark {
        "-" | "*" => "\\(bu".to_owned(),
        number => escaped(number),
    }
}

/// Inside of a quoted argument of a macro.
fn quotable(text: &str) -> String {
    escaped(&text.replace('`', "")).replace('"', "\\(dq")
}

/// `.PP` right behind a heading does nothing, and mandoc(1) says so.
fn without_idle_breaks(roff: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in roff.lines() {
        let is_behind_heading = lines
            .last()
            .is_none_or(|last| last.starts_with(".SH") || last.starts_with(".SS"));
        if line != ".PP" || !is_behind_heading {
            lines.push(line);
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "<!-- a comment -->\n# The file\n\n`/etc/x.toml` says **what** happens:\nsee \
        [policy.md](policy.md#a).\n\n## What it \"gets\"\n\n<!-- generated -->\n| key | value |\n|---|---|\n\
        | `name` | 1 to 63 |\n| `a\\|b` | |\n\n- one `x`\n  and more\n- two\n\n1. first\n\n```toml\n.a = 'b'\n\n\\n = \"c\"\n```\n\n\
        ### Below\n\n'quoted' line\n";

    fn page(text: &str) -> String {
        let page = Page {
            name: "fatpath-x",
            section: 5,
            title: "the file",
            source: "fatpath 0.1.0",
            text,
            see_also: &["fatpath(1)", "fatpath-why(1)"],
        };
        page.to_roff()
    }

    #[test]
    fn each_kind_of_block_has_its_macro() {
        insta::assert_snapshot!(page(TEXT));
    }

    #[test]
    fn a_table_fits_whatever_its_cells_hold() {
        let long = "word ".repeat(40);
        let row = format!("| a | {long} | {} | b |\n", "x".repeat(90));
        let text = format!("| k | v | w | z |\n|---|---|---|---|\n{row}");
        let roff = page(&text);
        let format = roff.lines().find(|line| line.starts_with("lw(")).unwrap();
        let widths = format
            .split("lw(")
            .filter_map(|it| it.split('n').next()?.parse::<usize>().ok());
        assert!(widths.sum::<usize>() + 3 * 3 <= 71, "{format}");
    }

    #[test]
    fn breaks_beside_an_empty_line_and_backticks_go() {
        assert_eq!(tidy("a `b`\n.br\n\n.br\nc\n.br\nd\n"), "a b\n\nc\n.br\nd\n");
    }

    #[test]
    fn no_backtick_is_left() {
        assert!(!page(TEXT).contains('`'));
    }

    proptest! {
        /// A line that begins with a dot or an apostrophe would be a request to roff.
        #[test]
        fn no_text_becomes_a_request(text in "[a.'\\\\|`*\\[\\]() \n#-]{0,120}") {
            let known = ["TH", "SH", "SS", "PP", "IP", "RS", "RE", "nf", "fi", "TS", "TE", "BR", "ad"];
            for line in page(&text).lines().skip(1) {
                let request = line.strip_prefix(['.', '\'']);
                prop_assert!(request.is_none_or(|it| known.iter().any(|name| it.starts_with(name))), "{line}");
            }
        }
    }
}
