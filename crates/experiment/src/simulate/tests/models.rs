// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models beside runs.

use super::*;
use crate::results::Row;

/// What models say of the one case of a file, of which a run gave 100 Mb/s.
fn models_of(link: &str, flows: &str) -> CaseModels {
    let reno = "\"net.ipv4.tcp_congestion_control\" = \"reno\"";
    let text = text_of(reno, &format!("{link}\n{flows}"));
    let scenario = Scenario::parse("x.toml", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
    let how = How {
        jobs: 1,
        seed: None,
    };
    let row = Row {
        path: "default".to_owned(),
        variant: "default".to_owned(),
        goodput_mbps: Some(100.0),
        repeat: 1,
        ..Row::default()
    };
    let simulator = Simulator::of(&scenario, how).unwrap();
    let mut all = simulator.models(&[row]);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[test]
fn each_model_of_the_law_is_asked_with_the_cases_path() {
    // In the direction of the data only.
    let one = models_of("forward.loss = \"0.1%\"\nbackward.loss = \"5%\"", BULK);
    assert_eq!((one.none, one.goodput_mbps), (None, Some(100.0)));
    let named = |name: &str| one.models.iter().find(|model| model.model == name).unwrap();
    let mathis = named("mathis");
    // sqrt(3/2 / p) segments of 1448 bytes each 20 ms.
    let expected_mbps = (1.5 / 0.001_f64).sqrt() * 1448.0 * 8.0 / 0.02 / 1e6;
    let mbps = mathis.goodput_mbps.unwrap();
    assert!(
        (mbps / expected_mbps - 1.0).abs() < 0.01,
        "{mbps} {expected_mbps}"
    );
    let error = mathis.error.unwrap();
    assert!((error - (100.0 / mbps - 1.0)).abs() < 1e-9);
    assert!(named("pftk").goodput_mbps.unwrap() < mbps);
    let lines = crate::simulate::models::lines(&[one]);
    assert!(lines[0].contains("expects") && lines.iter().any(|line| line.contains("mathis")));
}

#[test]
fn without_loss_the_bottleneck_is_expected() {
    let one = models_of("", BULK);
    let mbps = one.models[0].goodput_mbps.unwrap();
    assert!((950.0..1000.0).contains(&mbps), "{mbps}");
}

#[test]
fn what_no_model_is_of_is_said() {
    let pieces = format!("{BULK}bytes = \"2MB\"\n");
    for (link, flows) in [
        ("forward.reorder = { share = \"1%\", by = 3 }", BULK),
        ("", &BULK.repeat(2)),
        ("forward.loss = { packets = [20] }", BULK),
        ("", &pieces),
    ] {
        let one = models_of(link, flows);
        assert!(
            one.models.is_empty() && one.none.is_some(),
            "{link} {one:?}"
        );
    }
}
