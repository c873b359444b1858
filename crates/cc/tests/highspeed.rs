// SPDX-License-Identifier: MIT OR Apache-2.0
//! HighSpeed against RFC 3649: its table, its formulas, its response function.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_cc::rfc3649::{Response, appendix_b};
use fatpath_cc::{Control, Law, Start};
use proptest::prelude::*;
use support::{avoiding, mean_window};

/// RFC 3649, Appendix B: w, a(w), b(w) in hundredths. Every row.
const APPENDIX_B: [(u32, u32, u32); 73] = [
    (38, 1, 50),
    (118, 2, 44),
    (221, 3, 41),
    (347, 4, 38),
    (495, 5, 37),
    (663, 6, 35),
    (851, 7, 34),
    (1058, 8, 33),
    (1284, 9, 32),
    (1529, 10, 31),
    (1793, 11, 30),
    (2076, 12, 29),
    (2378, 13, 28),
    (2699, 14, 28),
    (3039, 15, 27),
    (3399, 16, 27),
    (3778, 17, 26),
    (4177, 18, 26),
    (4596, 19, 25),
    (5036, 20, 25),
    (5497, 21, 24),
    (5979, 22, 24),
    (6483, 23, 23),
    (7009, 24, 23),
    (7558, 25, 22),
    (8130, 26, 22),
    (8726, 27, 22),
    (9346, 28, 21),
    (9991, 29, 21),
    (10661, 30, 21),
    (11358, 31, 20),
    (12082, 32, 20),
    (12834, 33, 20),
    (13614, 34, 19),
    (14424, 35, 19),
    (15265, 36, 19),
    (16137, 37, 19),
    (17042, 38, 18),
    (17981, 39, 18),
    (18955, 40, 18),
    (19965, 41, 17),
    (21013, 42, 17),
    (22101, 43, 17),
    (23230, 44, 17),
    (24402, 45, 16),
    (25618, 46, 16),
    (26881, 47, 16),
    (28193, 48, 16),
    (29557, 49, 15),
    (30975, 50, 15),
    (32450, 51, 15),
    (33986, 52, 15),
    (35586, 53, 14),
    (37253, 54, 14),
    (38992, 55, 14),
    (40808, 56, 14),
    (42707, 57, 13),
    (44694, 58, 13),
    (46776, 59, 13),
    (48961, 60, 13),
    (51258, 61, 13),
    (53677, 62, 12),
    (56230, 63, 12),
    (58932, 64, 12),
    (61799, 65, 12),
    (64851, 66, 11),
    (68113, 67, 11),
    (71617, 68, 11),
    (75401, 69, 10),
    (79517, 70, 10),
    (84035, 71, 10),
    (89053, 72, 10),
    (94717, 73, 9),
];

fn highspeed() -> Law {
    Law::named("highspeed").unwrap()
}

/// a(w) and b(w) of the C: what a million acknowledged windows add, and what an event takes.
fn a_and_b(law: Law, window_pkts: u32) -> (f64, f64) {
    let mut control = Control::new(law, Start::default());
    // Ten thousand times the window at once: the window does not move while it is counted.
    let times = (u32::MAX / window_pkts).min(10_000);
    let mut window = avoiding(window_pkts);
    control.acked(&mut window, window_pkts * times);
    let a = f64::from(window.cwnd_pkts - window_pkts) / f64::from(times);
    let mut window = avoiding(window_pkts);
    let b = 1.0 - f64::from(control.ssthresh(&mut window, window_pkts)) / f64::from(window_pkts);
    (a, b)
}

#[test]
fn the_table_from_the_formulas_is_appendix_b() {
    let table: Vec<_> = appendix_b()
        .iter()
        .map(|row| (row.window_pkts, row.a_pkts, row.b_percent))
        .collect();
    assert_eq!(table, APPENDIX_B);
}

#[test]
fn the_integers_are_the_formulas_at_every_row() {
    for (w, _, _) in APPENDIX_B {
        let (a, b) = a_and_b(highspeed(), w);
        let wanted = Response::RFC.a(f64::from(w));
        assert!(
            (a / wanted - 1.0).abs() < 2e-4,
            "a({w}) = {a}, not {wanted}"
        );
        // What is kept is a whole number of segments.
        let wanted = Response::RFC.b(f64::from(w));
        let rounding = 1.0 / f64::from(w);
        assert!(
            b - wanted < rounding + 1e-5 && b > wanted - 1e-5,
            "b({w}) = {b}, not {wanted}"
        );
    }
}

#[test]
fn up_to_low_window_it_is_reno() {
    for w in 4..=38 {
        let (a, b) = a_and_b(highspeed(), w);
        assert!((a - 1.0).abs() < 1e-3, "a({w}) = {a}");
        let kept = f64::from(w) * (1.0 - b);
        assert_eq!(kept.round(), f64::from(w / 2), "b({w}) = {b}");
    }
}

/// Section 5: w = 0.12 / p^0.835 follows from the three numbers.
#[test]
fn the_mean_window_is_that_of_the_response_function() {
    for p in [1e-3, 1e-4, 1e-5, 1e-6] {
        let mean = mean_window(highspeed(), p);
        let wanted = 0.12 / p.powf(0.835);
        assert!(
            (mean / wanted - 1.0).abs() < 0.15,
            "p = {p}: {mean} for {wanted}"
        );
    }
}

#[test]
fn static_highspeed_of_2_mb_is_that_of_the_wad() {
    // Seed 003, 4.3: (0.31, 11) from the table of a draft; the RFC's own has (0.31, 10).
    assert_eq!(
        Law::static_highspeed(2_000_000, 1448).unwrap(),
        Law::aimd(10.0, 0.31).unwrap()
    );
    assert_eq!(
        Law::static_highspeed(1, 1448).unwrap(),
        Law::aimd(1.0, 0.5).unwrap()
    );
    assert_eq!(
        Law::static_highspeed(1 << 40, 1448).unwrap(),
        Law::aimd(73.0, 0.09).unwrap()
    );
}

#[test]
fn parameters_that_contradict_each_other_are_refused() {
    for given in [
        [("low_window", 100.0), ("high_window", 100.0)],
        [("low_window", 100.0), ("high_window", 99.0)],
        // Reno loses 1.44e-4 at 100 segments: more than that at 83,000 is no line down.
        [("low_window", 100.0), ("high_p", 2e-4)],
    ] {
        let refused = highspeed().with_all(&given).unwrap_err().to_string();
        assert!(refused.contains("contradict"), "{given:?}: {refused}");
    }
}

/// At the far end of all ranges a(w) stops rising where its bound is, and does not wrap.
#[test]
fn a_never_falls_where_b_is_constant() {
    let given = [
        ("low_window", 2.0),
        ("high_window", f64::from(1 << 30)),
        ("high_p", 1e-3),
        ("high_decrease", 0.5),
    ];
    let law = highspeed().with_all(&given).unwrap();
    let mut last = 0.0;
    for exponent in 30..310 {
        let window_pkts = (f64::from(exponent) / 10.0).exp2() as u32;
        let (a, b) = a_and_b(law, window_pkts);
        assert!(a >= last - 1.0, "a({window_pkts}) = {a} after {last}");
        assert!(b >= 0.5);
        last = a;
    }
    assert!(last >= 1e5, "{last}");
}

proptest! {
    /// The whole range of windows, with the RFC's numbers and with others.
    #[test]
    fn a_is_within_two_ten_thousandths_of_the_formula(
        exponent in 0.0f64..1.0,
        low_window_pkts in 2u32..1000,
        ratio in 2u32..5000,
        high_p_exponent in 6.0f64..9.0,
        high_decrease_milli in 10u32..=500,
        is_rfc in any::<bool>(),
    ) {
        let (law, response) = if is_rfc {
            (highspeed(), Response::RFC)
        } else {
            let response = Response {
                low_window_pkts: f64::from(low_window_pkts),
                high_window_pkts: f64::from(low_window_pkts * ratio),
                high_p: (10f64.powf(12.0 - high_p_exponent)).round() / 1e12,
                high_decrease: f64::from(high_decrease_milli) / 1e3,
            };
            let given = [
                ("low_window", response.low_window_pkts),
                ("high_window", response.high_window_pkts),
                ("high_p", response.high_p),
                ("high_decrease", response.high_decrease),
            ];
            let law = highspeed().with_all(&given);
            prop_assume!(law.is_ok());
            (law.unwrap(), response)
        };
        // From Low_Window to 2^22 segments, evenly in the logarithm.
        let top = f64::from(1 << 22) / response.low_window_pkts;
        let w = (response.low_window_pkts * top.powf(exponent)).round();
        let wanted = response.a(w);
        // The C's bounds on a(w): see cc_highspeed_a().
        prop_assume!(w * w * response.p(w) < f64::from(1 << 20) && wanted < 1e5);
        // What the window can grow in one call is bounded by the ACK's 32 bits.
        let (a, _) = a_and_b(law, w as u32);
        let counted = 1.0 / (f64::from(u32::MAX) / w).floor().min(1e4);
        prop_assert!((a - wanted).abs() <= wanted * 2e-4 + counted, "a({}) = {}, not {}", w, a, wanted);
    }
}
