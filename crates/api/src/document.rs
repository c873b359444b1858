// SPDX-License-Identifier: MIT OR Apache-2.0
//! The OpenAPI document, made from the endpoints and their types.
//!
//! A schema says what the daemon sends: a field that may be absent is not required, one that may be null
//! says so, and there is no field that it does not name.

use crate::endpoint::{
    self, CAPTURE, CAPTURE_WARNING, DOCUMENT, Endpoint, LIVE, METRICS, Method, POLICY, SAMPLES,
    Visitor,
};
use crate::{
    CaptureQuery, Error, FlowLogLine, FlowsQuery, LiveFrame, SampleLine, StatusWithoutDaemon,
};
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

const DESCRIPTION: &str = "The API of the fatpath daemon: HTTP on a Unix socket by which root changes \
    things (Host: fatpath, no request of a browser), on another one that only reads, whose modes say who may \
    connect, and where --listen is given on loopback TCP, only to read and with the token. There Host must \
    name loopback (or fatpath); Origin and Sec-Fetch-Site, when sent, must be the page's own. Times of a \
    flow (t_s) are seconds since fatpath first saw it; what is not known is null.";

/// The document.
pub fn document() -> Value {
    let mut document = Document::new();
    endpoint::each(&mut document);
    document.page();
    document.streams();
    document.capture();
    // Types that files and the command line hold, of the same parts.
    document.schema_of::<FlowLogLine>();
    document.schema_of::<StatusWithoutDaemon>();
    document.whole()
}

struct Document {
    schemas: SchemaGenerator,
    paths: Map<String, Value>,
}

impl Visitor for Document {
    fn visit<E: Endpoint<Query: JsonSchema, Answer: JsonSchema>>(&mut self) {
        let answer = json_content(self.schema_of::<E::Answer>());
        let mut operation = operation(E::SUMMARY, "It is so", answer);
        let mut parameters = path_parameters(E::PATH);
        parameters.extend(self.query_parameters::<E::Query>());
        self.add_refusals(&mut operation, &parameters, E::METHOD);
        operation["parameters"] = json!(parameters);
        let method = match E::METHOD {
            Method::Get => "get",
            Method::Post => "post",
        };
        if E::PATH == endpoint::ApplyPolicy::PATH {
            operation["requestBody"] =
                json!({ "required": true, "content": text_content("application/toml") });
            operation["responses"]["422"] = self.refusal("Refused; nothing changed");
        }
        self.paths
            .insert(E::PATH.to_owned(), json!({ method: operation }));
    }
}

impl Document {
    fn new() -> Document {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        let settings = settings.with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        Document {
            schemas: settings
                .with_transform(RecursiveTransform(close))
                .into_generator(),
            paths: Map::new(),
        }
    }

    fn schema_of<T: JsonSchema>(&mut self) -> Value {
        self.schemas.subschema_for::<T>().to_value()
    }

    fn refusal(&mut self, description: &str) -> Value {
        let content = json_content(self.schema_of::<Error>());
        json!({ "description": description, "content": content })
    }

    /// What every address may answer, and what this one may beside it.
    fn add_refusals(&mut self, operation: &mut Value, parameters: &[Value], method: Method) {
        let responses = &mut operation["responses"];
        if !parameters.is_empty() {
            responses["400"] = self.refusal("A parameter is none");
        }
        if parameters.iter().any(|parameter| parameter["in"] == "path") {
            responses["404"] = self.refusal("There is none");
        }
        if method == Method::Post {
            responses["405"] = self.refusal("Over TCP, or from a browser");
            operation["security"] = json!([]);
        }
    }

    /// A query's fields, one parameter each.
    fn query_parameters<Q: JsonSchema>(&mut self) -> Vec<Value> {
        let mut schema = Q::json_schema(&mut self.schemas).to_value();
        let required = schema["required"].take();
        let Value::Object(fields) = schema["properties"].take() else {
            return Vec::new();
        };
        let is_required = |name: &str| {
            let names = required.as_array().into_iter().flatten();
            names.into_iter().any(|required| required == name)
        };
        let parameter = |(name, mut schema): (String, Value)| {
            let description = schema.as_object_mut().and_then(|s| s.remove("description"));
            // A field with a default need not be sent, though it is always serialized.
            let must = is_required(&name) && schema.get("default").is_none();
            json!({ "name": name, "in": "query", "required": must, "description": description, "schema": schema })
        };
        fields.into_iter().map(parameter).collect()
    }

    /// What is no JSON of an endpoint's: the page's files, this document, the policy, the metrics.
    fn page(&mut self) {
        let mut page = operation("The page", "HTML", text_content("text/html"));
        page["security"] = json!([]);
        self.add_get("/", page);
        let mut asset = operation("A file of the page", "The file", json!({}));
        asset["security"] = json!([]);
        asset["parameters"] = json!([
            { "name": "path", "in": "path", "required": true, "schema": { "type": "string" } }
        ]);
        self.add_get("/assets/{path}", asset);
        let document = json!({ "type": "object", "required": ["openapi", "paths"] });
        let document = operation("This document", "It is so", json_content(document));
        self.add_get(DOCUMENT, document);
        let policy = json!({
            "type": "object",
            "description": "The live policy as it was read, as `fatpath policy check --json` prints it",
            "required": ["host", "rules", "instruments", "warnings"],
            "properties": { "rules": { "type": "array", "items": { "type": "object" } } }
        });
        self.add_get(
            POLICY,
            operation("The live policy", "It is so", json_content(policy)),
        );
        let metrics = text_content("application/openmetrics-text");
        self.add_get(
            METRICS,
            operation("Metrics for Prometheus", "OpenMetrics 1.0", metrics),
        );
    }

    fn streams(&mut self) {
        let busy = "Too many streams: Retry-After says when to ask again";
        self.schema_of::<LiveFrame>();
        let summary = "What changes, as server-sent events, at most four times a second";
        let described = "Events: name and data of a LiveFrame each";
        let mut live = operation(summary, described, text_content("text/event-stream"));
        live["responses"]["503"] = self.refusal(busy);
        self.add_get(LIVE, live);
        self.schema_of::<SampleLine>();
        let summary = "Every sample of chosen flows as it comes, a SampleLine each line";
        let mut samples = operation(summary, "Lines", text_content("application/x-ndjson"));
        samples["responses"]["503"] = self.refusal(busy);
        samples["parameters"] = json!(self.query_parameters::<FlowsQuery>());
        self.add_get(SAMPLES, samples);
    }

    fn capture(&mut self) {
        let summary = "Captures a flow, headers only, and plots it: one HTML file";
        let mut capture = operation(summary, "The file", text_content("text/html"));
        let mut parameters = path_parameters(CAPTURE);
        parameters.extend(self.query_parameters::<CaptureQuery>());
        self.add_refusals(&mut capture, &parameters, Method::Get);
        capture["responses"]["200"]["headers"] = json!({ CAPTURE_WARNING: {
            "description": "What is missing in the plots, where something is",
            "schema": { "type": "string" },
        } });
        capture["responses"]["422"] = self.refusal("Nothing was captured: the text says why");
        capture["responses"]["503"] = self.refusal("Another flow is captured at this moment");
        capture["parameters"] = json!(parameters);
        self.add_get(CAPTURE, capture);
    }

    fn add_get(&mut self, path: &str, operation: Value) {
        self.paths
            .insert(path.to_owned(), json!({ "get": operation }));
    }

    fn whole(mut self) -> Value {
        let error = json_content(self.schema_of::<Error>());
        let schemas = self.schemas.take_definitions(true);
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "fatpath",
                "version": "1",
                "license": { "name": "MIT OR Apache-2.0" },
                "description": DESCRIPTION,
            },
            "security": [{ "token": [] }],
            "paths": self.paths,
            "components": {
                "securitySchemes": { "token": {
                    "type": "http", "scheme": "bearer", "description": "Over TCP; `fatpath page` prints it"
                } },
                "responses": {
                    "Unauthorized": { "description": "Over TCP, without the token", "content": error },
                    "Forbidden": {
                        "description": "Another site, an unknown Host, or not root", "content": error
                    }
                },
                "schemas": schemas,
            }
        })
    }
}

fn operation(summary: &str, described: &str, content: Value) -> Value {
    json!({
        "summary": summary,
        "responses": {
            "200": { "description": described, "content": content },
            "401": { "$ref": "#/components/responses/Unauthorized" },
            "403": { "$ref": "#/components/responses/Forbidden" },
        }
    })
}

fn json_content(schema: Value) -> Value {
    json!({ "application/json": { "schema": schema } })
}

fn text_content(kind: &str) -> Value {
    json!({ kind: { "schema": { "type": "string" } } })
}

/// The parts of an address that stand in braces: numbers, all of them.
fn path_parameters(path: &str) -> Vec<Value> {
    let names = path.split('/').filter_map(|part| {
        let name = part.strip_prefix('{')?.strip_suffix('}')?;
        let schema = json!({ "type": "integer", "minimum": 0 });
        Some(json!({ "name": name, "in": "path", "required": true, "schema": schema }))
    });
    names.collect()
}

/// An object with named fields has no others.
fn close(schema: &mut Schema) {
    if schema.get("properties").is_some() && schema.get("additionalProperties").is_none() {
        schema.insert("additionalProperties".to_owned(), json!(false));
    }
}
