// SPDX-License-Identifier: MIT OR Apache-2.0
//! A source file as tokens, without its tests and documentation.

use anyhow::{Context, Result};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::path::Path;

/// The tokens of a file that are neither documentation nor compiled for tests only.
pub fn read(file: &Path) -> Result<TokenStream> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let tokens: TokenStream = text
        .parse()
        .map_err(|why| anyhow::anyhow!("{}: {why}", file.display()))?;
    Ok(without_tests(tokens))
}

/// How many lines have a token: blank lines and comments have none.
pub fn code_lines(tokens: &TokenStream) -> usize {
    let mut lines = BTreeSet::new();
    add_lines(tokens, &mut lines);
    lines.len()
}

fn add_lines(tokens: &TokenStream, lines: &mut BTreeSet<usize>) {
    for token in tokens.clone() {
        match token {
            TokenTree::Group(group) => {
                lines.insert(group.span_open().start().line);
                add_lines(&group.stream(), lines);
                lines.insert(group.span_close().end().line);
            }
            // A literal text may go over several lines.
            token => lines.extend(token.span().start().line..=token.span().end().line),
        }
    }
}

fn without_tests(tokens: TokenStream) -> TokenStream {
    let mut kept = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        if is_punct(&token, '#') {
            let inner = tokens.next_if(|next| is_punct(next, '!'));
            match tokens.next_if(is_attribute) {
                Some(attribute) if is_documentation(&attribute) => continue,
                Some(attribute) if is_for_tests(&attribute) => {
                    skip_item(&mut tokens);
                    continue;
                }
                attribute => kept.extend([Some(token), inner, attribute].into_iter().flatten()),
            }
            continue;
        }
        kept.push(match token {
            TokenTree::Group(group) => TokenTree::Group(group_without_tests(&group)),
            token => token,
        });
    }
    kept.into_iter().collect()
}

fn group_without_tests(group: &Group) -> Group {
    let mut stripped = Group::new(group.delimiter(), without_tests(group.stream()));
    stripped.set_span(group.span());
    stripped
}

/// An item, a statement, a field or a match arm: each ends with a semicolon, a comma or a block.
fn skip_item(tokens: &mut impl Iterator<Item = TokenTree>) {
    for token in tokens {
        let is_block =
            matches!(&token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
        if is_block || is_punct(&token, ';') || is_punct(&token, ',') {
            return;
        }
    }
}

fn is_attribute(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket)
}

fn is_documentation(attribute: &TokenTree) -> bool {
    words(attribute).first().is_some_and(|word| word == "doc")
}

/// `#[cfg(test)]` and `#[cfg(any(test, …))]`, not `#[cfg(not(test))]`.
fn is_for_tests(attribute: &TokenTree) -> bool {
    let words = words(attribute);
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    words.first().is_some_and(|word| word == "cfg") && has("test") && !has("not")
}

fn words(token: &TokenTree) -> Vec<String> {
    match token {
        TokenTree::Ident(ident) => vec![ident.to_string()],
        TokenTree::Group(group) => group.stream().into_iter().flat_map(|t| words(&t)).collect(),
        _ => Vec::new(),
    }
}

/// Whether the token is this sign.
pub fn is_punct(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}
