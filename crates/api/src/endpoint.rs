// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every question that the daemon answers with JSON: its address, and the types of its query and its answer.
//!
//! The daemon routes by these, the command line asks by these, and the document lists these; so none of
//! them spells an address or reads another type. What is not JSON (the page's files, the streams, the
//! metrics) has its address here too.

use crate::{
    Applied, ApplyQuery, ArchivePage, ArchiveQuery, FlowDetail, FlowView, FlowsQuery,
    ForgetPathsQuery, ForgottenPaths, Gated, LatestPage, LatestQuery, LearnedPaths, Listing,
    ListingQuery, MeshGrid, NoQuery, PathHistory, PathHistoryQuery, PathsQuery, Phases, RudeGate,
    RudeOnQuery, RudePermission, RudePermissionQuery, RudeStatus, RunTestQuery, Status,
    TestOutcome, TuneQuery, TunedByHand, TunedFlow, UnloadReport, Why,
};
#[cfg(feature = "document")]
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// It only reads.
    Get,
    /// It changes something: root, on the control socket.
    Post,
}

/// One question.
pub trait Endpoint {
    /// How it is asked.
    const METHOD: Method;
    /// Where; a part in braces stands for a value.
    const PATH: &'static str;
    /// In one sentence.
    const SUMMARY: &'static str;
    /// What stands behind the `?`.
    type Query: Serialize + DeserializeOwned;
    /// What a success answers.
    type Answer: Serialize + DeserializeOwned;
}

/// Takes each endpoint in turn.
#[cfg(feature = "document")]
pub(crate) trait Visitor {
    fn visit<E: Endpoint<Query: JsonSchema, Answer: JsonSchema>>(&mut self);
}

macro_rules! endpoints {
    ($($name:ident: $method:ident $path:literal, $query:ty => $answer:ty, $summary:literal;)*) => {
        $(
            #[doc = concat!("`", $path, "`: ", $summary, ".")]
            #[derive(Clone, Copy, Debug)]
            pub struct $name;

            impl Endpoint for $name {
                const METHOD: Method = Method::$method;
                const PATH: &'static str = $path;
                const SUMMARY: &'static str = $summary;
                type Query = $query;
                type Answer = $answer;
            }
        )*

        /// Calls the visitor with each endpoint.
        #[cfg(feature = "document")]
        pub(crate) fn each(visitor: &mut impl Visitor) {
            $(visitor.visit::<$name>();)*
        }
    };
}

endpoints! {
    GetStatus: Get "/v1/status", NoQuery => Status, "What is loaded, changed, pinned and lost";
    GetFlows: Get "/v1/flows", NoQuery => Vec<TunedFlow>, "The flows that are tuned now";
    ApplyPolicy: Post "/v1/policy/apply", ApplyQuery => Applied, "Make a policy live; root, on the control socket";
    GetRude: Get "/v1/rude", NoQuery => RudeStatus, "The gate of Rude TCP, and the rude flows";
    GetRudeGate: Get "/v1/rude/gate", NoQuery => RudeGate, "Whether Rude TCP is enabled; also on the socket that every user may open";
    GetRudePermission: Get "/v1/rude/permission", RudePermissionQuery => RudePermission, "Whether a program of the user who asks may send datagrams without congestion control; only on the socket that every user may open";
    RudeOn: Post "/v1/rude/on", RudeOnQuery => Gated, "Open the gate; root, on the control socket";
    RudeOff: Post "/v1/rude/off", NoQuery => Gated, "Close the gate; root, on the control socket";
    Unload: Post "/v1/unload", NoQuery => UnloadReport, "Remove everything and end; root, on the control socket";
    TuneFlow: Post "/v1/flows/tune", TuneQuery => TunedByHand, "Give one live flow other settings, or those of its rule again; root, on the control socket";
    GetFlowViews: Get "/v1/instruments/flows", NoQuery => Vec<FlowView>, "Every known flow as it is now";
    GetFlowDetail: Get "/v1/instruments/flows/{cookie}", NoQuery => FlowDetail, "One flow with its past";
    GetListing: Get "/v1/instruments/listing", ListingQuery => Listing, "A part of the table of flows: so many lines of those that a filter lets pass, in an order";
    GetArchive: Get "/v1/archive/events", ArchiveQuery => ArchivePage, "Archived events, page by page from the newest";
    GetPathHistory: Get "/v1/archive/path", PathHistoryQuery => PathHistory, "What flows to a path measured by time, and what happened to it";
    GetLatest: Get "/v1/archive/latest", LatestQuery => LatestPage, "The newest event of each name and path, from memory, page by page";
    GetPaths: Get "/v1/paths", PathsQuery => LearnedPaths, "What was learned of paths, and what their flows get for it";
    ForgetPaths: Post "/v1/paths/forget", ForgetPathsQuery => ForgottenPaths, "Forget what was learned of paths; root, on the control socket";
    GetPhases: Get "/v1/phases", NoQuery => Phases, "The phases of programs that are followed, and of which processes";
    GetMeshes: Get "/v1/measure/mesh", NoQuery => Vec<MeshGrid>, "Hosts that all test one another, with the newest result of each pair that the archive has";
    RunTest: Post "/v1/measure/run", RunTestQuery => TestOutcome, "Run a scheduled test now, and answer when it has ended; root, on the control socket";
    GetWhy: Get "/v1/instruments/why", FlowsQuery => Vec<Why>, "Why flows are slow";
}

/// The live policy as it was read.
pub const POLICY: &str = "/v1/policy";
/// The OpenAPI document.
pub const DOCUMENT: &str = "/v1/openapi.json";
/// What changes, as server-sent events: a [`LiveFrame`](crate::LiveFrame) each.
pub const LIVE: &str = "/v1/instruments/live";
/// Samples as they come: a [`SampleLine`](crate::SampleLine) each line, chosen by a [`FlowsQuery`].
pub const SAMPLES: &str = "/v1/instruments/samples";
/// A flow's plots, an HTML file, from a capture that begins with the question; see [`CaptureQuery`](crate::CaptureQuery).
pub const CAPTURE: &str = "/v1/instruments/flows/{cookie}/capture";

/// Header of an answer to [`CAPTURE`]: what is missing in the plots, where something is.
pub const CAPTURE_WARNING: &str = "fatpath-warning";
/// Metrics for Prometheus, in the text form of OpenMetrics.
pub const METRICS: &str = "/metrics";
