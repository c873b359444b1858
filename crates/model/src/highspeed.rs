// SPDX-License-Identifier: MIT OR Apache-2.0
//! HighSpeed TCP, RFC 3649: the loss rate at which its mean window is W is the law itself.

use crate::mathis;
use crate::{Bound, Losses, Model, Quantity};
use fatpath_cc::Law;
use fatpath_cc::rfc3649::Response;

/// Section 5's response function.
pub const MODEL: Model = Model {
    name: "highspeed",
    formula: "W = 0.12 / p^0.835; Reno's up to Low_Window",
    source: "RFC 3649, section 5 and table 5",
    losses: Losses::Regular,
    range: &[
        Bound {
            of: Quantity::WindowPkts,
            min: 12.0,
            max: f64::INFINITY,
            why: "small windows end in timeouts",
        },
        Bound {
            of: Quantity::WindowPkts,
            min: 0.0,
            max: 83_000.0,
            why: "beyond High_Window the line is only extended",
        },
        Bound {
            of: Quantity::Loss,
            min: 0.0,
            max: 0.01,
            why: "several losses in a round trip are one congestion event",
        },
    ],
    sim_error: Some(0.05),
};

/// The RFC's rounded response function, its section 5.
const FACTOR: f64 = 0.12;
const POWER: f64 = 0.835;

/// The mean window, segments, at a loss rate above 0, with the parameters of `law`, which is highspeed.
pub fn window_pkts(law: &Law, loss: f64) -> f64 {
    let response = response(law);
    let high_pkts = match response == Response::RFC {
        true => FACTOR / loss.powf(POWER),
        false => of_response_pkts(&response, loss),
    };
    match high_pkts > response.low_window_pkts {
        true => high_pkts,
        false => mathis::window_pkts(mathis::C_REGULAR, loss).min(response.low_window_pkts),
    }
}

/// The four numbers of section 5 as the law has them.
pub fn response(law: &Law) -> Response {
    Response {
        low_window_pkts: law.number("low_window"),
        high_window_pkts: law.number("high_window"),
        high_p: law.number("high_p"),
        high_decrease: law.number("high_decrease"),
    }
}

/// The line from (Low_Window, Low_P) to (High_Window, High_P) in logarithms, section 5.
fn of_response_pkts(response: &Response, loss: f64) -> f64 {
    let low_p = response.p(response.low_window_pkts);
    let place = (loss / low_p).ln() / (response.high_p / low_p).ln();
    let ratio = response.high_window_pkts / response.low_window_pkts;
    response.low_window_pkts * ratio.powf(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3649, table 5: loss rate and window.
    const TABLE_5: [(f64, f64); 8] = [
        (1e-3, 38.0),
        (1e-4, 263.0),
        (1e-5, 1_795.0),
        (1e-6, 12_279.0),
        (1e-7, 83_981.0),
        (1e-8, 574_356.0),
        (1e-9, 3_928_088.0),
        (1e-10, 26_864_653.0),
    ];

    #[test]
    fn the_rfc_s_table() {
        let law = Law::named("highspeed").unwrap();
        for (loss, expected) in TABLE_5 {
            let window = window_pkts(&law, loss);
            assert!((window / expected - 1.0).abs() < 0.011, "{loss}: {window}");
        }
        // 12 in the table, of 1.2 / sqrt(p).
        assert!((window_pkts(&law, 1e-2) - 12.0).abs() < 0.3);
    }

    #[test]
    fn other_numbers_go_through_their_two_points() {
        let law = Law::named("highspeed").unwrap();
        let law = law
            .with_all(&[("high_window", 20_000.0), ("high_p", 1e-6)])
            .unwrap();
        let window = window_pkts(&law, 1e-6);
        assert!((window / 20_000.0 - 1.0).abs() < 1e-3, "{window}");
        assert!(window_pkts(&law, 1e-4) < 20_000.0);
    }
}
