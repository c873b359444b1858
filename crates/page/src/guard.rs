// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access control: every request, over any socket, passes [`guard`] first.
//!
//! - The control socket takes no request that a browser could send: only `Host: fatpath`, no `Origin`, no
//!   `Sec-Fetch-*`. sshd forwards a socket with the rights of the user who logged in, often root's.
//! - On the others `Host` must name this host by loopback: a name that an attacker's DNS points here
//!   (rebinding) is none. `Origin` and `Sec-Fetch-Site`, which browsers send, must be the page's own: no request
//!   of another site. They only read, whatever the headers say.
//! - Over TCP all but the page's own files needs the token.
//!
//! Every answer carries the headers that keep a browser from running or framing anything else.

use crate::assets::is_asset;
use crate::error::error_answer;
use crate::token::Token;
use axum::extract::connect_info::ConnectInfo;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use std::sync::Arc;

/// Who asks by a Unix socket that every user may open, as the kernel says of whoever connected.
#[derive(Clone, Copy, Debug)]
pub struct Asking {
    /// The user's number.
    pub user: u32,
    /// The process, while it lives.
    pub process: Option<i32>,
}

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug)]
pub enum Peer {
    /// The Unix socket by which root changes things.
    Control {
        /// Whether root is at the other end.
        is_root: bool,
    },
    /// A Unix socket that only reads, whose mode says who may open it.
    View,
    /// The Unix socket that every user may open, and which only reads.
    Gate(Asking),
    /// Anybody on this host.
    Tcp,
}

/// What the command line sends. A browser would add the port: to it, this is a name that a neighbour's DNS may
/// answer for.
const COMMAND_LINE: &str = "fatpath";

/// Names under which a request may ask for this daemon, with any port: `ssh -L` chooses one of its own.
const HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Only the page's own scripts and styles, no framing, no text that becomes markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

const SECURITY_HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// The middleware around all routes; `None`: there is no token, because the daemon does not listen on TCP.
pub async fn guard(
    State(token): State<Option<Arc<Token>>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match refusal(token.as_deref(), peer, &request) {
        None => next.run(request).await,
        Some(refusal) => refusal,
    };
    let headers = response.headers_mut();
    for (name, value) in SECURITY_HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

fn refusal<B>(
    token: Option<&Token>,
    peer: Peer,
    request: &axum::http::Request<B>,
) -> Option<Response> {
    let headers = request.headers();
    if let Peer::Control { .. } = peer {
        return (!is_command_line(headers)).then(|| {
            let what = "this socket is the command line's (Host: fatpath, no browser): view.sock is for reading";
            error_answer(StatusCode::FORBIDDEN, what.into())
        });
    }
    let Some(host) = only(headers, &header::HOST).filter(|host| is_ours(host)) else {
        let what = "the Host of the request must be localhost, 127.0.0.1 or [::1]";
        return Some(error_answer(StatusCode::FORBIDDEN, what.into()));
    };
    if !is_same_origin(headers, host) {
        let what = "the request comes from another site";
        return Some(error_answer(StatusCode::FORBIDDEN, what.into()));
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let what = "over TCP and view.sock the API is read-only";
        return Some(error_answer(StatusCode::METHOD_NOT_ALLOWED, what.into()));
    }
    let is_open = matches!(peer, Peer::View | Peer::Gate(_)) || is_asset(request.uri().path());
    if !is_open && !knows(headers, token) {
        let what =
            "the token is missing or wrong: `fatpath page`, as root, prints the address with it";
        return Some(error_answer(StatusCode::UNAUTHORIZED, what.into()));
    }
    None
}

/// A header that is there once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

fn is_ours(host: &str) -> bool {
    host == COMMAND_LINE
        || HOSTS.iter().any(|name| match host.strip_prefix(name) {
            Some("") => true,
            Some(rest) => rest
                .strip_prefix(':')
                .is_some_and(|port| port.parse::<u16>().is_ok()),
            None => false,
        })
}

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

fn is_same_origin(headers: &HeaderMap, host: &str) -> bool {
    let origin = match headers.contains_key(header::ORIGIN) {
        true => {
            only(headers, &header::ORIGIN).and_then(|o| o.strip_prefix("http://")) == Some(host)
        }
        false => true,
    };
    // "none": the user typed the address.
    let site = match headers.contains_key(&SEC_FETCH_SITE) {
        true => matches!(only(headers, &SEC_FETCH_SITE), Some("same-origin" | "none")),
        false => true,
    };
    origin && site
}

fn is_command_line(headers: &HeaderMap) -> bool {
    let is_browsers =
        |name: &HeaderName| *name == header::ORIGIN || name.as_str().starts_with("sec-fetch-");
    only(headers, &header::HOST) == Some(COMMAND_LINE) && !headers.keys().any(is_browsers)
}

fn knows(headers: &HeaderMap, token: Option<&Token>) -> bool {
    let given = only(headers, &header::AUTHORIZATION).and_then(|text| text.strip_prefix("Bearer "));
    match (given, token) {
        (Some(given), Some(token)) => token.is(given),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTROL: Peer = Peer::Control { is_root: true };
    const GATE: Peer = Peer::Gate(Asking {
        user: 1000,
        process: None,
    });

    /// Status of the refusal of a request with these headers beside its Host; 200 = let in.
    fn asked(peer: Peer, method: Method, path: &str, host: &str, headers: &[(&str, &str)]) -> u16 {
        let dir = tempfile::tempdir().unwrap();
        let token = Token::open(dir.path()).unwrap();
        let text = std::fs::read_to_string(crate::token_file(dir.path())).unwrap();
        let mut request = axum::http::Request::builder().method(method).uri(path);
        for (name, value) in [("host", host)].iter().chain(headers) {
            request = request.header(*name, value.replace("TOKEN", text.trim()));
        }
        let refused = refusal(Some(&token), peer, &request.body(()).unwrap());
        refused.map_or(200, |refusal| refusal.status().as_u16())
    }

    fn get(peer: Peer, path: &str, host: &str, headers: &[(&str, &str)]) -> u16 {
        asked(peer, Method::GET, path, host, headers)
    }

    #[test]
    fn a_host_that_is_not_ours_is_refused_where_one_reads() {
        for host in [
            "fatpath",
            "localhost",
            "localhost:8080",
            "127.0.0.1:1",
            "[::1]:65535",
        ] {
            assert_eq!(get(Peer::View, "/v1/status", host, &[]), 200, "{host}");
            assert_eq!(get(GATE, "/v1/rude/gate", host, &[]), 200, "{host}");
            assert_eq!(get(Peer::Tcp, "/", host, &[]), 200, "{host}");
        }
        let others = [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "127.0.0.1:x",
            "127.0.0.1:",
            "127.0.0.1:99999",
            "localhost@evil",
            "fatpath:7070",
            "[::1]x",
            "LOCALHOST\u{e9}",
        ];
        for host in others {
            assert_eq!(get(Peer::View, "/v1/status", host, &[]), 403, "{host}");
            assert_eq!(get(Peer::Tcp, "/", host, &[]), 403, "{host}");
        }
        let twice = get(Peer::View, "/", "localhost", &[("host", "localhost")]);
        assert_eq!(twice, 403);
    }

    #[test]
    fn other_sites_are_refused() {
        let host = "localhost:7070";
        let own = [
            ("origin", "http://localhost:7070"),
            ("sec-fetch-site", "same-origin"),
        ];
        assert_eq!(get(Peer::View, "/v1/status", host, &own), 200);
        assert_eq!(
            get(
                Peer::View,
                "/v1/status",
                host,
                &[("sec-fetch-site", "none")]
            ),
            200
        );
        let foreign = [
            ("origin", "http://evil.example"),
            ("origin", "http://localhost:7071"),
            ("origin", "https://localhost:7070"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("sec-fetch-site", "?"),
        ];
        for header in foreign {
            assert_eq!(
                get(Peer::View, "/v1/status", host, &[header]),
                403,
                "{header:?}"
            );
        }
    }

    #[test]
    fn the_control_socket_takes_no_browser() {
        assert_eq!(get(CONTROL, "/v1/status", "fatpath", &[]), 200);
        for host in ["localhost", "127.0.0.1:7070", "[::1]", "fatpath:7070", ""] {
            assert_eq!(get(CONTROL, "/v1/status", host, &[]), 403, "{host}");
        }
        let browsers = [
            ("origin", "http://fatpath"),
            ("sec-fetch-site", "none"),
            ("sec-fetch-mode", "navigate"),
            ("host", "fatpath"),
        ];
        for header in browsers {
            let status = get(CONTROL, "/v1/status", "fatpath", &[header]);
            assert_eq!(status, 403, "{header:?}");
        }
    }

    #[test]
    fn tcp_and_the_view_socket_only_read() {
        let token = ("authorization", "Bearer TOKEN");
        for method in [
            Method::POST,
            Method::PUT,
            Method::DELETE,
            Method::OPTIONS,
            Method::CONNECT,
        ] {
            let by_tcp = asked(
                Peer::Tcp,
                method.clone(),
                "/v1/unload",
                "localhost",
                &[token],
            );
            assert_eq!(by_tcp, 405);
            let by_gate = asked(GATE, method.clone(), "/v1/rude/off", "fatpath", &[]);
            assert_eq!(by_gate, 405);
            let by_view = asked(Peer::View, method, "/v1/unload", "fatpath", &[]);
            assert_eq!(by_view, 405);
        }
        assert_eq!(
            asked(CONTROL, Method::POST, "/v1/unload", "fatpath", &[]),
            200
        );
        assert_eq!(
            asked(Peer::Tcp, Method::HEAD, "/v1/status", "localhost", &[token]),
            200
        );
    }

    #[test]
    fn tcp_needs_the_token_for_all_but_the_pages_files() {
        let tcp = |path, headers: &[(&str, &str)]| get(Peer::Tcp, path, "127.0.0.1:80", headers);
        assert_eq!(tcp("/", &[]), 200);
        let closed = [
            "/v1/status",
            "/v1/openapi.json",
            "/metrics",
            "/assets/../v1/status",
            "/assets/%2e%2e/x",
            "//",
            "/favicon.ico",
        ];
        for path in closed {
            assert_eq!(tcp(path, &[]), 401, "{path}");
            assert_eq!(
                tcp(path, &[("authorization", "Bearer TOKEN")]),
                200,
                "{path}"
            );
        }
        for wrong in [
            "Bearer ",
            "Bearer 0",
            "bearer TOKEN",
            "Basic TOKEN",
            "TOKEN",
            "Bearer TOKEN0",
        ] {
            assert_eq!(
                tcp("/v1/status", &[("authorization", wrong)]),
                401,
                "{wrong}"
            );
        }
        let right = ("authorization", "Bearer TOKEN");
        assert_eq!(tcp("/v1/status", &[right, right]), 401);
        assert_eq!(tcp("/v1/status?token=TOKEN", &[]), 401);
    }
}
