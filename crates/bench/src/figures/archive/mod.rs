// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the archive takes and answers, with ends of flows as the daemon archives them, on the disk of the temporary folder.

mod history;
mod lost;
mod rate;

pub use history::{QUERY_MS, QUERY_MS_POSTGRES};
pub use lost::LOST_OR_DOUBLED;
pub use rate::{CORE_SHARE, EVENTS_PER_S};

use fatpath_archive::{Event, Origin};
use std::net::{IpAddr, Ipv4Addr};

/// So many paths, a /24 each: 10.0.0.0/24, 10.0.1.0/24 and so on.
const PATHS: u32 = 1_000;

fn origin() -> Origin {
    Origin {
        host: "bench".into(),
        boot: "1".into(),
    }
}

/// The n-th end of a flow: consecutive ones are of different paths.
fn flow(n: u64, time_us: i64) -> Event {
    let path = (n.wrapping_mul(7_919) % u64::from(PATHS)) as u32;
    let peer = Ipv4Addr::from(0x0a00_0000 | (path << 8) | (1 + (n % 200) as u32));
    let (goodput_mbps, srtt_us) = (10 + n % 900, 5_000 + n * 31 % 95_000);
    Event {
        time_us,
        name: "flow.end".into(),
        peer: Some(IpAddr::V4(peer)),
        rule: Some("far".into()),
        value: Some(3e6),
        weight: 1,
        body: format!(
            "{{\"cookie\":{n},\"local\":\"192.0.2.1:{port}\",\"remote\":\"{peer}:443\",\"opened\":\"active\",\
             \"law\":\"fp_cubic\",\"rule\":\"far\",\"duration_s\":1.25,\"bytes_acked\":3000000,\"bytes_received\":420,\
             \"goodput_mbps\":{goodput_mbps},\"segments_sent\":2072,\"segments_received\":1040,\
             \"segments_retransmitted\":{lost},\"srtt_us\":{srtt_us},\"min_rtt_us\":{min},\"cwnd_pkts\":312,\
             \"settings\":{{\"send_buffer\":{{\"asked\":8388608,\"has\":16777216}},\"congestion_control\":{{\"asked\":\
             \"fp_cubic\",\"has\":\"fp_cubic\"}}}}}}",
            port = 1024 + n % 60_000,
            lost = n % 3,
            min = srtt_us * 9 / 10,
        ),
    }
}
