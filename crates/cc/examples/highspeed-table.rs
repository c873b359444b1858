// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints RFC 3649's Appendix B from its formulas: `cargo run -p fatpath-cc --example highspeed-table`.
#![allow(clippy::disallowed_macros)] // prints a table

fn main() {
    println!("     w  a(w)  b(w)\n  ----  ----  ----");
    for row in fatpath_cc::rfc3649::appendix_b() {
        let b = f64::from(row.b_percent) / 100.0;
        println!("{:6}  {:4}  {b:.2}", row.window_pkts, row.a_pkts);
    }
}
