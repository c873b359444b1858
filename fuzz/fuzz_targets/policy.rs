// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every parser of fatpath-policy against arbitrary bytes: an answer or problems, never a panic.
#![no_main]

use fatpath_policy::{Classifier, Flow, Prefix, explain, import_wad, parse, parse_bytes, routes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(policy) = parse_bytes(bytes, None) {
        let classifier = Classifier::build(&policy);
        routes(&policy, &classifier);
        let flow = Flow::parse("10.5.1.7:443").expect("a destination");
        explain(&policy, &flow).to_string();
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(prefix) = text.parse::<Prefix>() {
        assert_eq!(prefix.to_string().parse(), Ok(prefix));
    }
    if let Ok(flow) = Flow::parse(text) {
        flow.to_string();
    }
    if let Ok(imported) = import_wad(text) {
        parse(&imported.toml, None).expect("what import writes, parse reads");
    }
});
