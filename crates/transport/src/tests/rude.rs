// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flows without congestion control, and how they get it again.

use std::cell::Cell;
use std::rc::Rc;

use fatpath_cc::Law;
use fatpath_link::{ChainSpec, Ecn};
use fatpath_tcp::{OutOfRange, RudeRate, RudeSpec};
use proptest::prelude::*;

use super::super::{Spec, SpecError};
use super::delivery::{spec, way};
use super::transfer::{MS, Transfer};

/// Of a path of 100 Mb/s, as UDP payload.
const SHARE_BPS: u64 = 80_000_000;

fn rude(law: Law) -> Spec {
    let mut spec = spec(law);
    spec.tcp.pacing = true;
    spec.tcp.pacing_rate_bps = Some(SHARE_BPS);
    spec.tcp.rude = Some(RudeSpec {
        rate: RudeRate::Share(SHARE_BPS),
        off: None,
        converged_milli: 10,
    });
    spec
}

fn ways(loss: f64, seed: u64) -> [ChainSpec; 2] {
    let harm = (loss, 0.0, 0.0, 0.0);
    [
        way(100_000_000, harm, seed),
        way(100_000_000, harm, seed + 1),
    ]
}

/// To the end; nanoseconds.
fn moved(spec: &Spec, bytes: usize, loss: f64) -> (Transfer, u64) {
    let mut transfer = Transfer::new(spec, &[bytes], ways(loss, 7));
    transfer.run(600_000 * MS);
    transfer.check_complete();
    let lasted_ns = transfer.now_ns;
    (transfer, lasted_ns)
}

/// It fills its share whatever is lost, and says with no datagram that it would slow down for a mark.
#[test]
fn losses_do_not_slow_it() {
    const BYTES: usize = 4_000_000;
    let (transfer, rude_ns) = moved(&rude(Law::RENO), BYTES, 0.05);
    let mut polite = rude(Law::RENO);
    polite.tcp.rude = None;
    let (_, polite_ns) = moved(&polite, BYTES, 0.05);
    assert!(rude_ns * 5 < polite_ns, "{rude_ns} of {polite_ns}");
    let share_ns = BYTES as u64 * 8 * 1000 / (SHARE_BPS / 1_000_000);
    assert!(rude_ns < share_ns * 3 / 2, "{rude_ns} of {share_ns}");
    assert!(transfer.sender.is_rude());
    assert!(transfer.log.iter().all(|sent| sent.ecn == Ecn::NotCapable));
}

/// Retransmissions among it, in no 100 ms does more than a twentieth above its share arrive.
#[test]
fn no_more_than_its_share_leaves() {
    const SPAN_NS: u64 = 100 * MS;
    let mut transfer = Transfer::new(&rude(Law::RENO), &[4_000_000], ways(0.05, 7));
    let most = Rc::new(Cell::new(0));
    let (seen, mut span) = (most.clone(), (0, 0));
    transfer.attack = Box::new(move |now_ns, datagram, _, _| {
        if !datagram.has_data {
            return;
        }
        if now_ns / SPAN_NS != span.0 {
            span = (now_ns / SPAN_NS, 0);
        }
        span.1 += datagram.payload.len() as u64;
        seen.set(seen.get().max(span.1));
    });
    transfer.run(600_000 * MS);
    transfer.check_complete();
    let share_bytes = SHARE_BPS / 8 / 10;
    assert!(most.get() <= share_bytes * 21 / 20, "{most:?}");
    assert!(most.get() >= share_bytes * 8 / 10, "{most:?}");
}

#[test]
fn a_law_without_a_window_has_no_fair_one() {
    let refused = rude(Law::named("bbr").unwrap()).check();
    assert!(
        matches!(refused, Err(SpecError::Tcp(OutOfRange(why))) if why.contains("fair window")),
        "{refused:?}"
    );
}

/// Made polite when this arrives: windows before and after, and the fair one.
fn made_polite(law: Law, loss: f64, seed: u64, at_ns: u64) -> Option<(u32, u32, u32)> {
    let mut transfer = Transfer::new(&rude(law), &[2_000_000], ways(loss, seed));
    let windows = Rc::new(Cell::new(None));
    let seen = windows.clone();
    transfer.attack = Box::new(move |now_ns, _, sender, _| {
        if now_ns < at_ns || !sender.is_rude() {
            return;
        }
        let before = sender.figures();
        sender.be_polite_now();
        let after = sender.figures();
        assert_eq!(after.fair_pkts, None);
        seen.set(Some((
            before.cwnd_pkts,
            after.cwnd_pkts,
            before.fair_pkts.unwrap(),
        )));
    });
    transfer.run(6_000_000 * MS);
    transfer.check_complete();
    assert_eq!(transfer.sender.is_rude(), windows.get().is_none());
    windows.get()
}

#[test]
fn it_goes_on_with_its_fair_window() {
    let (before, after, fair) = made_polite(Law::RENO, 0.05, 3, 100 * MS).unwrap();
    assert!(
        after == fair && after < before / 2,
        "{before} {after} {fair}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whenever it is made polite, in recovery or after a timeout too, everything arrives once.
    #[test]
    fn made_polite_at_any_time_it_brings_everything_once(
        law in prop_oneof![Just("reno"), Just("cubic"), Just("aimd"), Just("scalable")],
        loss in 0.0..0.25,
        seed in any::<u64>(),
        at_ms in 0..1500_u64,
    ) {
        made_polite(Law::named(law).unwrap(), loss, seed >> 1, at_ms * MS);
    }
}
