// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands behind the `?` of an address, and the answer when a question could not be answered.

#[cfg(feature = "document")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The address takes no query.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct NoQuery {}

/// `?flow=COOKIE` or `?prefix=P`; without either every flow.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct FlowsQuery {
    /// Cookie of one flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<u64>,
    /// Flows to this prefix, 10.0.0.0/8 or 2001:db8::/32.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

impl FlowsQuery {
    /// One flow.
    pub fn flow(cookie: u64) -> FlowsQuery {
        FlowsQuery {
            flow: Some(cookie),
            prefix: None,
        }
    }

    /// The flows to a prefix.
    pub fn prefix(prefix: String) -> FlowsQuery {
        FlowsQuery {
            flow: None,
            prefix: Some(prefix),
        }
    }
}

/// `?seconds=10`
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct CaptureQuery {
    /// For so long, 1 to 60.
    #[serde(default = "ten")]
    pub seconds: u64,
}

fn ten() -> u64 {
    10
}

/// `?file=NAME`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct ApplyQuery {
    /// What the problems are named after.
    pub file: String,
}

/// `?mark=0x200&netns=a,b`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct RudeOnQuery {
    /// Mark of rude segments, as [`RudeMark`](crate::RudeMark) is written: 0x200, or dscp=N.
    pub mark: String,
    /// Network namespaces that mark, with commas between.
    pub netns: String,
}

/// `?destination=10.5.128.74:50000`
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct RudePermissionQuery {
    /// Where the datagrams go, with the UDP port.
    pub destination: SocketAddr,
}

/// `?local=10.0.0.1:40112&remote=10.5.128.74:443&settings=…&for_s=60`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct TuneQuery {
    /// This host's end of the flow.
    pub local: SocketAddr,
    /// The peer's end.
    pub remote: SocketAddr,
    /// Lines of a policy's rule, `key = value`; without any the flow has what its rule gives.
    pub settings: String,
    /// For so many seconds, 1 to 86,400; without it until the flow or the daemon ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_s: Option<u64>,
}

impl TuneQuery {
    /// The flow has what its rule gives.
    pub fn end(local: SocketAddr, remote: SocketAddr) -> TuneQuery {
        TuneQuery {
            local,
            remote,
            settings: String::new(),
            for_s: None,
        }
    }
}

/// `?test=NAME`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct RunTestQuery {
    /// Name of the test in the daemon's file.
    pub test: String,
}

/// Every answer that is no success.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "document", derive(JsonSchema))]
pub struct Error {
    /// What was wrong; of a policy, file:line:column of every problem.
    pub error: String,
}
