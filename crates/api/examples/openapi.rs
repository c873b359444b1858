// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the OpenAPI document; `cargo xtask openapi` writes it to crates/api/openapi.json.

#[expect(clippy::disallowed_macros, reason = "an example is not the pure crate")]
fn main() {
    println!("{:#}", fatpath_api::document::document());
}
