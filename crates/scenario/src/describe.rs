// SPDX-License-Identifier: MIT OR Apache-2.0
//! A link in words, for people who have just changed it.
//!
//! Pure. It says what matters; the JSON of a link says all. Start with [`directions`].

use fatpath_link::{
    CellSpec, ChainSpec, DelaySpec, Discipline, LossSpec, QueueSpec, RateSpec, Service,
};
use fatpath_units::{show_bytes, show_rate, show_time};

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
    let cells: Vec<String> = chain.cells.iter().map(cell).collect();
    match cells.is_empty() {
        true => "nothing happens to packets".to_owned(),
        false => cells.join(", "),
    }
}

fn cell(cell: &CellSpec) -> String {
    match cell {
        CellSpec::Delay(one) => delay(one),
        CellSpec::Rate(one) => rate(one),
        CellSpec::Loss(one) => loss(one),
        CellSpec::Reorder(one) => format!(
            "reorder {} by {}",
            percent(one.probability),
            one.displacement_packets
        ),
        CellSpec::Duplicate(one) => format!("duplicate {}", percent(one.probability)),
        CellSpec::Corrupt(one) => format!("corrupt {}", percent(one.probability)),
        CellSpec::Mtu(one) => format!("path mtu {} B", one.mtu_bytes),
    }
}

fn delay(delay: &DelaySpec) -> String {
    let constant = format!("delay {}", show_time(delay.delay_ns / 1000));
    match delay.jitter {
        Some(_) => constant + " with jitter",
        None => constant,
    }
}

fn rate(rate: &RateSpec) -> String {
    let service = match &rate.service {
        Service::Unlimited => "rate unlimited".to_owned(),
        Service::Constant { rate_bps } => format!("rate {}", show_rate(*rate_bps)),
        Service::Steps { steps, .. } => format!("rate in {} steps", steps.len()),
        Service::Opportunities { at_ms } => format!("rate trace of {} packets", at_ms.len()),
    };
    format!("{service}, {}", queue(&rate.queue))
}

fn queue(queue: &QueueSpec) -> String {
    let discipline = match queue.discipline {
        Discipline::DropTail => "drop-tail",
        Discipline::DropHead => "drop-head",
        Discipline::Codel { .. } => "codel",
        Discipline::Red { .. } => "red",
    };
    let limits = [
        queue.limit_bytes.map(show_bytes),
        queue.limit_packets.map(|packets| format!("{packets} pkts")),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    let limit = match limits.is_empty() {
        true => "no limit".to_owned(),
        false => limits.join(" and "),
    };
    let mark = queue.mark_above_bytes;
    let mark = mark.map(|bytes| format!(", marks above {}", show_bytes(bytes)));
    format!("queue {limit} ({discipline}){}", mark.unwrap_or_default())
}

fn loss(loss: &LossSpec) -> String {
    match loss {
        LossSpec::Independent { probability } => format!("loss {}", percent(*probability)),
        LossSpec::GilbertElliott { .. } => "loss in bursts".to_owned(),
        LossSpec::Packets { packets, .. } => format!("loss of {} exact packets", packets.len()),
        LossSpec::Periodic { every, .. } => format!("loss of one in {every}"),
        LossSpec::Windows { windows } => format!("loss in {} windows of time", windows.len()),
    }
}

fn percent(share: f64) -> String {
    let percent = (share * 1e11).round() / 1e9;
    format!("{percent} %")
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
            directions: [there, ChainSpec::default()],
        };
        insta::assert_snapshot!(directions(&link).join("\n"), @r"
        a to b: rate 500 Mb/s, queue 128 KiB (drop-tail), loss 1 %, delay 20 ms
        b to a: nothing happens to packets
        ");
    }
}
