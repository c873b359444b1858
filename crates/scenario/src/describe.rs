// SPDX-License-Identifier: MIT OR Apache-2.0
//! A link in words, for people who have just changed it.
//!
//! Pure. It says what matters; the JSON of a link says all. Start with [`directions`].

use fatpath_link::{CellSpec, ChainSpec};

use super::Link;

/// A line for each direction.
pub fn directions(link: &Link) -> [String; 2] {
    let [a, b] = &link.between;
    let [there, back] = &link.directions;
    [
        format!("{a} to {b}: {}", chain(there)),
        format!("{b} to {a}: {}", chain(back)),
    ]
}

fn chain(chain: &ChainSpec) -> String {
    let cells: Vec<String> = chain.cells.iter().map(CellSpec::to_string).collect();
    match cells.is_empty() {
        true => "nothing happens to packets".to_owned(),
        false => cells.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_direction_does_is_told_in_its_order() {
        let there = ChainSpec::of([
            CellSpec::rate(500_000_000, Some(128 * 1024)),
            CellSpec::loss(0.01),
            CellSpec::delay(20_000_000),
        ]);
        let link = Link {
            name: "wan".into(),
            between: ["a".into(), "b".into()],
            mtu_bytes: 1500,
            exact: false,
            emulated: true,
            directions: [there, ChainSpec::default()],
        };
        insta::assert_snapshot!(directions(&link).join("\n"), @r"
        a to b: rate 500 Mb/s, queue 128 KiB (drop-tail), loss 1 %, delay 20 ms
        b to a: nothing happens to packets
        ");
    }
}
