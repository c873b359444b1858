// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys that are renewed after few datagrams, so that many phases go over a link that loses, reorders, doubles and damages.

use fatpath_cc::Law;
use proptest::prelude::*;

use super::super::{Cipher, Header, Spec};
use super::delivery::{Harm, harm, spec, way};
use super::transfer::{MS, RTT, Transfer};

const MBIT_20: u64 = 20_000_000;
const CLEAN: Harm = (0.0, 0.0, 0.0, 0.0);

fn transfer(spec: &Spec, bytes: usize, renewal: u64, harms: [Harm; 2], seed: u64) -> Transfer {
    let [there, back] = harms;
    let ways = [way(MBIT_20, there, seed), way(MBIT_20, back, !seed)];
    let mut transfer = Transfer::new(spec, &[bytes], ways);
    transfer.sender.limit_key(renewal, u64::MAX);
    transfer
}

/// Of data and acknowledgements: how many each phase sealed. Phases never go back, and none is left out.
fn sealed(transfer: &Transfer) -> [Vec<u64>; 2] {
    [true, false].map(|has_data| {
        let (mut counts, mut phase) = (vec![0], 0);
        let ways = transfer.log.iter();
        for datagram in ways.filter(|datagram| datagram.has_data == has_data) {
            let its = Header::decode(&datagram.payload).unwrap().phase;
            if its != phase {
                phase = phase.wrapping_add(1);
                assert_eq!(its, phase);
                counts.push(0);
            }
            *counts.last_mut().unwrap() += 1;
        }
        counts
    })
}

/// A phase lasts until it is due and was answered: its own number, and what leaves within a round trip of its first.
#[test]
fn a_clean_path_renews_when_it_is_due() {
    let mut transfer = transfer(&spec(Law::RENO), 3_000_000, 100, [CLEAN; 2], 1);
    transfer.run(60_000 * MS);
    transfer.check_complete();
    assert_eq!(transfer.refused, []);
    let [data, acks] = sealed(&transfer);
    let total = transfer.sender.figures().sent_pkts;
    assert_eq!(data.iter().sum::<u64>(), total);
    assert!(data.len() as u64 >= total / 200, "{data:?}");
    let (last, others) = data.split_last().unwrap();
    assert!(
        *last > 0 && others.iter().all(|count| (100..400).contains(count)),
        "{data:?}"
    );
    assert!(acks.len() + 1 >= data.len(), "{acks:?}");
}

/// While nothing comes back, the sender goes on in its phase; then it renews once, not for each that was due.
#[test]
fn a_phase_goes_on_until_it_is_answered() {
    let mut transfer = transfer(&spec(Law::RENO), 100_000, 3, [CLEAN; 2], 1);
    transfer.run(RTT / 4);
    assert_eq!(transfer.sender.phase(), 1);
    transfer.run(RTT * 3 / 4);
    assert_eq!(transfer.sender.phase(), 1);
    transfer.run(RTT + RTT / 4);
    assert_eq!(transfer.sender.phase(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn everything_arrives_once_by_any_number_of_keys(
        harms in [harm(), harm()],
        seed in any::<u64>(),
        bytes in 50_000usize..200_000,
        renewal in 1u64..60,
        law in prop::sample::select(vec!["reno", "cubic", "bbr"]),
        cipher in prop::sample::select(vec![Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305]),
    ) {
        let mut spec = spec(Law::named(law).unwrap());
        spec.cipher = cipher;
        let mut transfer = transfer(&spec, bytes, renewal, harms, seed);
        transfer.run(36_000_000 * MS);
        transfer.check_complete();
        let [data, acks] = sealed(&transfer);
        let (_, others) = data.split_last().unwrap();
        prop_assert!(others.iter().all(|count| *count >= renewal), "{:?}", data);
        prop_assert!(acks.len() <= data.len(), "{:?} {:?}", data, acks);
    }
}
