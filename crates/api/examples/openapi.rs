// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the OpenAPI document; `cargo xtask openapi` writes it to crates/api/openapi.json.

fn main() {
    println!("{:#}", fatpath_api::document::document());
}
