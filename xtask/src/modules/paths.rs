// SPDX-License-Identifier: MIT OR Apache-2.0
//! The paths that tokens name: `a::b`, `super::{c, d::*}`, in code, in `use`s and within macros alike.

use super::source::is_punct;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::iter::Peekable;

/// A path as written, and the line where it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub segments: Vec<String>,
    pub line: usize,
}

type Tokens = Peekable<proc_macro2::token_stream::IntoIter>;

/// All paths, in order. A glob is the path of what it stands in.
pub fn paths(tokens: &TokenStream) -> Vec<Named> {
    let mut found = Vec::new();
    let mut tokens = tokens.clone().into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(ident) => {
                let line = ident.span().start().line;
                follow(vec![ident.to_string()], line, &mut tokens, &mut found);
            }
            TokenTree::Group(group) => found.extend(paths(&group.stream())),
            // A method or a field belongs to a value, and `Vec::<u8>::new` to what stands before it.
            token if is_punct(&token, '.') || is_separator(&token, &mut tokens) => {
                tokens.next_if(|next| matches!(next, TokenTree::Ident(_)));
            }
            _ => {}
        }
    }
    found
}

/// Takes `::` when `token` is its first sign.
fn is_separator(token: &TokenTree, tokens: &mut Tokens) -> bool {
    is_punct(token, ':') && tokens.next_if(|next| is_punct(next, ':')).is_some()
}

fn follow(mut segments: Vec<String>, line: usize, tokens: &mut Tokens, found: &mut Vec<Named>) {
    while is_followed_by_separator(tokens) {
        tokens.next();
        tokens.next();
        match tokens.peek() {
            Some(TokenTree::Ident(ident)) => segments.push(ident.to_string()),
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                found.extend(within(&segments, &group.stream()));
                tokens.next();
                return;
            }
            _ => break,
        }
        tokens.next();
    }
    found.push(Named { segments, line });
}

/// `a: ::b` is not told from `a:::b`; neither stands in formatted code.
fn is_followed_by_separator(tokens: &mut Tokens) -> bool {
    let mut ahead = tokens.clone();
    let first = ahead.next().is_some_and(|token| is_punct(&token, ':'));
    first && ahead.next().is_some_and(|token| is_punct(&token, ':'))
}

fn within(outer: &[String], group: &TokenStream) -> Vec<Named> {
    let joined = |inner: Named| Named {
        segments: match inner.segments.as_slice() {
            [only] if only == "self" => outer.to_vec(),
            inner => [outer, inner].concat(),
        },
        line: inner.line,
    };
    let mut found: Vec<Named> = paths(group).into_iter().map(joined).collect();
    found.extend(glob_line(group).map(|line| Named {
        segments: outer.to_vec(),
        line,
    }));
    found
}

/// Of `{a, *}`, not of `{a::*}`.
fn glob_line(group: &TokenStream) -> Option<usize> {
    let mut begins = true;
    for token in group.clone() {
        if begins && is_punct(&token, '*') {
            return Some(token.span().start().line);
        }
        begins = is_punct(&token, ',');
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(text: &str) -> Vec<String> {
        let tokens = text.parse().expect("tokens");
        paths(&tokens)
            .into_iter()
            .map(|p| p.segments.join("::"))
            .collect()
    }

    #[test]
    fn paths_are_found_in_uses_code_and_macros() {
        assert_eq!(
            segments("use super::{a, b::{self, C}, d::*};"),
            ["use", "super::a", "super::b", "super::b::C", "super::d"]
        );
        assert_eq!(
            segments("use crate::a::{B, *}"),
            ["use", "crate::a::B", "crate::a"]
        );
        assert_eq!(
            segments("x.y.z(crate::p::q::<u8>::new(), ::core)"),
            ["x", "crate::p::q", "u8"]
        );
        assert_eq!(
            segments(r#"println!("{}", super::a::f(w))"#),
            ["println", "super::a::f", "w"]
        );
    }
}
