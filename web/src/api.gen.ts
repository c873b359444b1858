// SPDX-License-Identifier: MIT OR Apache-2.0
// Generated from crates/api/openapi.json by `npm run types`; do not edit.

export interface paths {
    "/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The page */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description HTML */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/assets/{path}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A file of the page */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    path: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The file */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Metrics for Prometheus */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OpenMetrics 1.0 */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/openmetrics-text": string;
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/archive/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Archived events, page by page from the newest */
        get: {
            parameters: {
                query?: {
                    /** @description From this host. */
                    host?: string | null;
                    /** @description Of these kinds, with commas between: sample, event, flow, path, test, decision. Without it of all. */
                    kinds?: string | null;
                    /** @description At most so many, 1 to 1000; without it 100. */
                    limit?: number | null;
                    /** @description Of peers in this prefix, or of this address. */
                    prefix?: string | null;
                    /** @description Of this rule. */
                    rule?: string | null;
                    /** @description Not before this, µs since 1970; without it a day before `until_us`. */
                    since_us?: number | null;
                    /** @description The newest so many are left out: those of the page before that have the same time as its oldest. */
                    skip?: number | null;
                    /** @description Before this, µs since 1970; without it now. */
                    until_us?: number | null;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is so */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ArchivePage"];
                    };
                };
                /** @description A parameter is none */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/archive/latest": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The newest event of each name and path, from memory, page by page */
        get: {
            parameters: {
                query?: {
                    /** @description The `next` of the page before. */
                    after?: string | null;
                    /** @description Of these kinds, with commas between: sample, event, flow, path, test, decision. Without it of all. */
                    kinds?: string | null;
                    /** @description At most so many, 1 to 1000; without it 100. */
                    limit?: number | null;
                    /** @description Of peers in this prefix, and of paths that this prefix, or address, is a part of. */
                    prefix?: string | null;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is so */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["LatestPage"];
                    };
                };
                /** @description A parameter is none */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/archive/path": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What flows to a path measured by time, and what happened to it */
        get: {
            parameters: {
                query: {
                    /** @description How long an interval is. */
                    by?: components["schemas"]["HistoryInterval"];
                    /** @description Prefix of the peers, or an address. Measures are kept of each /24, of IPv6 of each /48. */
                    prefix: string;
                    /** @description Not before this, µs since 1970; without it a week before `until_us`. */
                    since_us?: number | null;
                    /** @description Before this, µs since 1970; without it now. */
                    until_us?: number | null;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is so */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PathHistory"];
                    };
                };
                /** @description A parameter is none */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/flows": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The flows that are tuned now */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is so */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TunedFlow"][];
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/flows/tune": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Give one live flow other settings, or those of its rule again; root, on the control socket */
        post: {
            parameters: {
                query: {
                    /** @description For so many seconds, 1 to 86,400; without it until the flow or the daemon ends. */
                    for_s?: number | null;
                    /** @description This host's end of the flow. */
                    local: string;
                    /** @description The peer's end. */
                    remote: string;
                    /** @description Lines of a policy's rule, `key = value`; without any the flow has what its rule gives. */
                    settings: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is so */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TunedByHand"];
                    };
                };
                /** @description A parameter is none */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                /** @description Over TCP, or from a browser */
                405: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instruments/flows": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every known flow as it is now */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is so */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["FlowView"][];
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instruments/flows/{cookie}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One flow with its past */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    cookie: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is so */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["FlowDetail"];
                    };
                };
                /** @description A parameter is none */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                /** @description There is none */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instruments/flows/{cookie}/capture": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Captures a flow, headers only, and plots it: one HTML file */
        get: {
            parameters: {
                query?: {
                    /** @description For so long, 1 to 60. */
                    seconds?: number;
                };
                header?: never;
                path: {
                    cookie: number;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The file */
                200: {
                    headers: {
                        /** @description What is missing in the plots, where something is */
                        "fatpath-warning"?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
                /** @description A parameter is none */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                /** @description There is none */
                404: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
                /** @description Nothing was captured: the text says why */
                422: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
                /** @description Another flow is captured at this moment */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instruments/listing": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A part of the table of flows: so many lines of those that a filter lets pass, in an order */
        get: {
            parameters: {
                query?: {
                    /** @description Name of the column to sort by. */
                    by?: string;
                    /** @description Cookie of a flow that the lines are to hold: they begin as far from `first` as that needs. */
                    chosen?: number | null;
                    /** @description So many lines, 500 at most. */
                    count?: number;
                    /** @description Flows that have ended, too. */
                    ended?: boolean;
                    /** @description Text that a line has somewhere, in either case; empty = all. */
                    filter?: string;
                    /** @description The first line, of those that pass. */
                    first?: number;
                    /** @description The other way round. */
                    reversed?: boolean;
                    /** @description The flow so many lines below that one is meant, or the first when none is chosen. */
                    step?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is so */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Listing"];
                    };
                };
                /** @description A parameter is none */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instruments/live": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What changes, as server-sent events, at most four times a second */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Events: name and data of a LiveFrame each */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/event-stream": string;
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                /** @description Too many streams: Retry-After says when to ask again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instruments/samples": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every sample of chosen flows as it comes, a SampleLine each line */
        get: {
            parameters: {
                query?: {
                    /** @description Cookie of one flow. */
                    flow?: number | null;
                    /** @description Flows to this prefix, 10.0.0.0/8 or 2001:db8::/32. */
                    prefix?: string | null;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Lines */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/x-ndjson": string;
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                /** @description Too many streams: Retry-After says when to ask again */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/instruments/why": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Why flows are slow */
        get: {
            parameters: {
                query?: {
                    /** @description Cookie of one flow. */
                    flow?: number | null;
                    /** @description Flows to this prefix, 10.0.0.0/8 or 2001:db8::/32. */
                    prefix?: string | null;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is so */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Why"][];
                    };
                };
                /** @description A parameter is none */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/measure/mesh": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Hosts that all test one another, with the newest result of each pair that the archive has */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is so */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["MeshGrid"][];
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/measure/run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Run a scheduled test now, and answer when it has ended; root, on the control socket */
        post: {
            parameters: {
                query: {
                    /** @description Name of the test in the daemon's file. */
                    test: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is so */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TestOutcome"];
                    };
                };
                /** @description A parameter is none */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                /** @description Over TCP, or from a browser */
                405: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** This document */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is so */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": Record<string, never>;
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/paths": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What was learned of paths, and what their flows get for it */
        get: {
            parameters: {
                query?: {
                    /** @description With each flow that the numbers rest on; without it not. */
                    evidence?: boolean;
                    /** @description At most so many, 1 to 65536, with evidence to 1000, those seen last; without it 1000. */
                    limit?: number | null;
                    /** @description To peers in this prefix, or to this address; without it all. */
                    prefix?: string | null;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is so */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["LearnedPaths"];
                    };
                };
                /** @description A parameter is none */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/paths/forget": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Forget what was learned of paths; root, on the control socket */
        post: {
            parameters: {
                query: {
                    /** @description To peers in this prefix, or to this address. */
                    prefix: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is so */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ForgottenPaths"];
                    };
                };
                /** @description A parameter is none */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                /** @description Over TCP, or from a browser */
                405: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/phases": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The phases of programs that are followed, and of which processes */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is so */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Phases"];
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/policy": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The live policy */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is so */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            rules: Record<string, never>[];
                        };
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/policy/apply": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Make a policy live; root, on the control socket */
        post: {
            parameters: {
                query: {
                    /** @description What the problems are named after. */
                    file: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/toml": string;
                };
            };
            responses: {
                /** @description It is so */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Applied"];
                    };
                };
                /** @description A parameter is none */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                /** @description Over TCP, or from a browser */
                405: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
                /** @description Refused; nothing changed */
                422: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rude": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The gate of Rude TCP, and the rude flows */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is so */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RudeStatus"];
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rude/gate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether Rude TCP is enabled; also on the socket that every user may open */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is so */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RudeGate"];
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rude/off": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Close the gate; root, on the control socket */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is so */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Gated"];
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                /** @description Over TCP, or from a browser */
                405: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rude/on": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Open the gate; root, on the control socket */
        post: {
            parameters: {
                query: {
                    /** @description Mark of rude segments, as [`RudeMark`](crate::RudeMark) is written: 0x200, or dscp=N. */
                    mark: string;
                    /** @description Network namespaces that mark, with commas between. */
                    netns: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is so */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Gated"];
                    };
                };
                /** @description A parameter is none */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                /** @description Over TCP, or from a browser */
                405: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rude/permission": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether a program of the user who asks may send datagrams without congestion control; only on the socket that every user may open */
        get: {
            parameters: {
                query: {
                    /** @description Where the datagrams go, with the UDP port. */
                    destination: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is so */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RudePermission"];
                    };
                };
                /** @description A parameter is none */
                400: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What is loaded, changed, pinned and lost */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is so */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Status"];
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/unload": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Remove everything and end; root, on the control socket */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It is so */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["UnloadReport"];
                    };
                };
                401: components["responses"]["Unauthorized"];
                403: components["responses"]["Forbidden"];
                /** @description Over TCP, or from a browser */
                405: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Error"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description What came of making a policy live. */
        Applied: {
            /**
             * Format: uint32
             * @description Live flows that met it.
             */
            live_flows_met: number;
            /** @description What there is to say: warnings about the file, what was raised, what was left alone. */
            notes: string[];
            /**
             * Format: uint
             * @description Rules that are live now.
             */
            rules: number;
        };
        /** @description What to ask for to get the next page, with everything else as before. */
        ArchiveCursor: {
            /**
             * Format: uint
             * @description The query's `skip`.
             */
            skip: number;
            /**
             * Format: int64
             * @description The query's `until_us`.
             */
            until_us: number;
        };
        /** @description Events of a kind that were given up. */
        ArchiveDrops: {
            /**
             * Format: uint64
             * @description How many.
             */
            events: number;
            /** @description `sample`, `event`, `flow`, `path`, `test` or `decision`. */
            kind: string;
        };
        /** @description A part of the events that match: the newest, in the order of time. */
        ArchivePage: {
            /** @description The events. */
            events: components["schemas"]["ArchivedEvent"][];
            /** @description Where the older ones begin; none when there is none. */
            next: components["schemas"]["ArchiveCursor"] | null;
        };
        /** @description How the archive fares. */
        ArchiveStatus: {
            /** @description Days whose events are in the store, the oldest first. */
            days: string[];
            /** @description Events that were given up since the spool was opened, by kind. */
            dropped: components["schemas"]["ArchiveDrops"][];
            /** @description Its folder. */
            folder: string;
            /**
             * Format: double
             * @description Age of the oldest of them, seconds.
             */
            lag_s: number;
            /**
             * Format: uint64
             * @description Events that the store had no space for, since the daemon started.
             */
            refused: number;
            /**
             * Format: uint64
             * @description Size of the spool.
             */
            spool_bytes: number;
            /** @description Why events are not durable. */
            spool_error?: string | null;
            /**
             * Format: uint64
             * @description Events that wait there for the store.
             */
            spool_events: number;
            /**
             * Format: uint64
             * @description Size of the store.
             */
            store_bytes: number;
            /** @description Why events wait in the spool, or old days stay in the store. */
            store_error?: string | null;
            /**
             * Format: uint64
             * @description Events stored since the daemon started.
             */
            stored: number;
            /**
             * Format: uint64
             * @description Events that found the daemon's queue full, or no spool, since the daemon started.
             */
            unqueued: number;
        };
        /** @description A stored event. */
        ArchivedEvent: {
            /** @description Everything else. */
            body: unknown;
            /** @description From which of its boots. */
            boot: string;
            /** @description From which host. */
            host: string;
            /** @description sample, event, flow, path, test or decision. */
            kind: string;
            /** @description What happened. */
            name: string;
            /**
             * Format: ip
             * @description The peer.
             */
            peer: string | null;
            /** @description The rule. */
            rule: string | null;
            /**
             * Format: uint64
             * @description Its number there.
             */
            sequence: number;
            /** @description When, RFC 3339 in UTC. */
            time: string;
            /**
             * Format: int64
             * @description When, µs since 1970.
             */
            time_us: number;
            /**
             * Format: double
             * @description Its one number.
             */
            value: number | null;
            /**
             * Format: uint32
             * @description How many like it this one stands for.
             */
            weight: number;
        };
        /** @description What a flow under `fp_bbr` is doing (draft-ietf-ccwg-bbr-06, 5.1). */
        BbrPhase: "startup" | "drain" | "probe_bw_down" | "probe_bw_cruise" | "probe_bw_refill" | "probe_bw_up" | "probe_rtt";
        /** @description The model of its path that a flow under `fp_bbr` goes by. The draft's names stand in brackets. */
        BbrState: {
            /**
             * Format: uint64
             * @description The bandwidth that it goes by, bytes of data a second (BBR.bw).
             */
            bw_bytes_per_s: number;
            /**
             * Format: uint64
             * @description To which losses hold it down until the next probe; none without a bound (BBR.bw_shortterm).
             */
            bw_shortterm_bytes_per_s: number | null;
            /**
             * Format: uint32
             * @description What the path held without much loss when it was probed, segments (BBR.inflight_longterm).
             */
            inflight_longterm_pkts: number | null;
            /**
             * Format: uint32
             * @description What losses since then let it hold, segments (BBR.inflight_shortterm).
             */
            inflight_shortterm_pkts: number | null;
            /**
             * Format: uint64
             * @description The highest delivery rate of two probes (BBR.max_bw).
             */
            max_bw_bytes_per_s: number;
            /**
             * Format: uint32
             * @description Least round-trip time of ten seconds, µs; none before the first (BBR.min_rtt).
             */
            min_rtt_us: number | null;
            /** @description What it is doing. */
            phase: components["schemas"]["BbrPhase"];
        };
        /** @description enum tcp_ca_state: where loss recovery stands. */
        CaState: "open" | "disorder" | "cwr" | "recovery" | "loss";
        /** @description One change to the host, as the journal and the API name it. */
        Change: {
            /** @description Its value since. */
            after: string;
            /** @description Its value before. */
            before: string;
            /** @constant */
            kind: "sysctl";
            /** @description As sysctl(8) writes it. */
            name: string;
        } | {
            /** @constant */
            kind: "route_added";
            /** @description The netlink message, hexadecimal. */
            message: string;
            /** @description For people. */
            route: string;
        } | {
            /** @description The netlink message since. */
            after: string;
            /** @description The netlink message before, hexadecimal. */
            before: string;
            /** @constant */
            kind: "route_changed";
            /** @description For people. */
            route: string;
        } | {
            /** @description Where. */
            at: string;
            /** @constant */
            kind: "mount";
        };
        /** @description Counters since the load. */
        Counts: {
            /**
             * Format: uint64
             * @description Times a law found parameters out of range and took Reno's.
             */
            bad_law_parameters: number;
            /**
             * Format: uint64
             * @description Buffers of rules that flows were not given because the host's TCP memory was short.
             */
            buffers_withheld: number;
            /**
             * Format: uint64
             * @description Events lost because nobody read them in time.
             */
            events_lost: number;
            /**
             * Format: uint64
             * @description Flows that matched a rule.
             */
            flows_met: number;
            /**
             * Format: uint64
             * @description Flows that matched none.
             */
            flows_passed: number;
            /**
             * Format: uint64
             * @description Flows without what their rule gives, or with Reno's window under `fp_bbr`, because their socket had no memory for
             *     fatpath's state.
             */
            flows_without_storage: number;
            /**
             * Format: uint64
             * @description Rude flows that went back to congestion control because their segments were not marked.
             */
            rude_flows_unmarked: number;
        };
        /** @description Every answer that is no success. */
        Error: {
            /** @description What was wrong; of a policy, file:line:column of every problem. */
            error: string;
        };
        /** @description One dated fact of a flow, marked on the time axis. */
        Event: {
            /** @description Its kind. */
            kind: components["schemas"]["EventKind"];
            /**
             * Format: double
             * @description Seconds since the begin.
             */
            t_s: number;
            /** @description In words, with the numbers. */
            text: string;
        };
        /** @description What an [`Event`] is about. */
        EventKind: "begin" | "tuned" | "congestion" | "timeout" | "retransmission" | "finding" | "end";
        /** @description One number that a finding rests on. */
        Evidence: {
            /** @description What was measured, a variable's name where there is one. */
            name: string;
            /** @description In what; empty for a plain number. */
            unit: string;
            /**
             * Format: double
             * @description How much.
             */
            value: number;
        };
        /**
         * @description The maxima and minima of RFC 4898 that Linux does not keep, since fatpath first saw the flow: it is looked at once a round
         *     trip, at each event, and whenever it is sampled.
         */
        Extremes: {
            /**
             * Format: uint32
             * @description Most bytes received and not read (MaxAppRQueue).
             */
            max_app_rqueue_bytes: number;
            /**
             * Format: uint32
             * @description Most bytes written and not sent (MaxAppWQueue).
             */
            max_app_wqueue_bytes: number;
            /**
             * Format: uint32
             * @description Largest window in congestion avoidance, segments; none before it was seen in it (MaxCaCwnd).
             */
            max_ca_cwnd_pkts: number | null;
            /**
             * Format: uint32
             * @description Largest segment size, bytes (MaxMSS).
             */
            max_mss_bytes: number;
            /**
             * Format: uint64
             * @description Most bytes in flight (MaxPipeSize).
             */
            max_pipe_bytes: number;
            /**
             * Format: uint32
             * @description Most sequence space that segments out of order spanned, bytes (MaxReasmQueue).
             */
            max_reasm_queue_bytes: number;
            /**
             * Format: uint32
             * @description Most segments sent and not acknowledged (MaxRetxQueue).
             */
            max_retx_queue_pkts: number;
            /**
             * Format: uint32
             * @description Longest retransmission timeout, µs (MaxRTO).
             */
            max_rto_us: number;
            /**
             * Format: uint32
             * @description Largest window announced to the peer, bytes (MaxRwinSent).
             */
            max_rwin_sent_bytes: number;
            /**
             * Format: uint32
             * @description Largest window in slow start, segments; none before it was seen in it (MaxSsCwnd).
             */
            max_ss_cwnd_pkts: number | null;
            /**
             * Format: uint32
             * @description Largest slow-start threshold, segments; none while it was never set (MaxSsthresh).
             */
            max_ssthresh_pkts: number | null;
            /**
             * Format: uint32
             * @description Smallest one, bytes (MinMSS).
             */
            min_mss_bytes: number;
            /**
             * Format: uint32
             * @description Shortest one, µs (MinRTO).
             */
            min_rto_us: number;
            /**
             * Format: uint32
             * @description Least one, segments; none while it was never set (MinSsthresh).
             */
            min_ssthresh_pkts: number | null;
        };
        /** @description One reason why a flow is slow. */
        Finding: {
            /** @description Lines of a rule of the policy file that would cure it. */
            cure: string | null;
            /** @description The numbers. */
            evidence: components["schemas"]["Evidence"][];
            /**
             * Format: double
             * @description Expected goodput over the present one, by the model, when the cause is cured.
             */
            gain: number | null;
            /** @description Stable: `FP-RWND-SCALE`. */
            id: string;
            /** @description How much it matters. */
            severity: components["schemas"]["Severity"];
            /** @description In one sentence. */
            title: string;
        };
        /** @description A finding without its evidence. */
        FindingName: {
            /** @description Stable: `FP-RWND-SCALE`. */
            id: string;
            /** @description How much it matters. */
            severity: components["schemas"]["Severity"];
            /** @description In one sentence. */
            title: string;
        };
        /** @description Which flow it is. `cookie` names it within one boot of the host. */
        Flow: {
            /**
             * Format: uint64
             * @description Inode of its cgroup; 0 = unknown.
             */
            cgroup_id: number;
            /**
             * Format: uint64
             * @description The socket's cookie: unique until the host boots.
             */
            cookie: number;
            /** @description It was established before fatpath saw it. */
            is_adopted: boolean;
            /** @description The peer opened the connection. */
            is_passive: boolean;
            /** @description LocalAddress, LocalPort. */
            local: string;
            /**
             * Format: uint32
             * @description Inode of its network namespace.
             */
            netns: number;
            /** @description RemAddress, RemPort. */
            remote: string;
            /**
             * Format: uint32
             * @description The rule of the live policy that it met, by its stable number.
             */
            rule_id: number | null;
        };
        /** @description `GET /v1/instruments/flows/{cookie}` */
        FlowDetail: {
            /** @description Its latest events, the oldest first. */
            events: components["schemas"]["Event"][];
            /** @description Its latest points, the oldest first. */
            points: components["schemas"]["Point"][];
            /** @description The flow as it is now. */
            view: components["schemas"]["FlowView"];
        };
        /** @description What a line of the flow log is about. */
        FlowLogEvent: "flow_end";
        /** @description A line of the flow log. */
        FlowLogLine: {
            /** @description What its law knows of the path; none unless that is `fp_bbr`. */
            bbr?: components["schemas"]["BbrState"] | null;
            /**
             * Format: uint64
             * @description Bytes that the peer acknowledged (ThruOctetsAcked).
             */
            bytes_acked: number;
            /**
             * Format: uint64
             * @description Bytes received in order (ThruOctetsReceived).
             */
            bytes_received: number;
            /**
             * Format: uint64
             * @description Bytes retransmitted (OctetsRetrans).
             */
            bytes_retransmitted: number;
            /**
             * @description Path of its cgroup; none when it is gone, or nobody looked it up.
             * @default null
             */
            cgroup: string | null;
            /**
             * Format: uint64
             * @description Inode of its cgroup; 0 = unknown.
             */
            cgroup_id: number;
            /**
             * Format: uint64
             * @description The socket's cookie: unique until the host boots.
             */
            cookie: number;
            /**
             * Format: uint32
             * @description Congestion window, segments.
             */
            cwnd_pkts: number;
            /**
             * Format: double
             * @description Seconds since it was established, or since fatpath first saw it.
             */
            duration_s: number;
            /** @description What happened. */
            event: components["schemas"]["FlowLogEvent"];
            /**
             * Format: double
             * @description The larger of both over the duration, Mb/s.
             */
            goodput_mbps: number;
            /**
             * Format: uint32
             * @description Segments in flight.
             */
            in_flight_pkts: number;
            /** @description It was established before fatpath saw it. */
            is_adopted: boolean;
            /** @description The peer opened the connection. */
            is_passive: boolean;
            /** @description Law in use. */
            law: string;
            /** @description What held it back. */
            limited: components["schemas"]["Limits"];
            /** @description LocalAddress, LocalPort. */
            local: string;
            /**
             * Format: uint32
             * @description Least round-trip time of late, µs; none before the first sample.
             */
            min_rtt_us: number | null;
            /**
             * Format: uint32
             * @description Segment size, bytes (CurMSS).
             */
            mss_bytes: number;
            /**
             * Format: uint32
             * @description Inode of its network namespace.
             */
            netns: number;
            /** @description Who opened it. */
            opened: components["schemas"]["Opened"];
            /**
             * Format: uint32
             * @description Window that the peer advertises, bytes (CurRwinRcvd).
             */
            peer_window_bytes: number;
            /**
             * Format: uint32
             * @description Window scale that this host announced.
             */
            receive_window_scale: number;
            /** @description RemAddress, RemPort. */
            remote: string;
            /** @description While it is rude, or going polite. */
            rude?: components["schemas"]["RudeFlow"] | null;
            /** @description The rule it is on; none when its rule was taken out of the policy. */
            rule: string | null;
            /**
             * Format: uint32
             * @description The rule of the live policy that it met, by its stable number.
             */
            rule_id: number | null;
            /**
             * Format: uint32
             * @description Segments received (SegsIn).
             */
            segments_received: number;
            /**
             * Format: uint32
             * @description Segments retransmitted (SegsRetrans).
             */
            segments_retransmitted: number;
            /**
             * Format: uint32
             * @description Segments sent (SegsOut).
             */
            segments_sent: number;
            /**
             * Format: uint32
             * @description Window scale that the peer announced.
             */
            send_window_scale: number;
            /** @description Each setting that the rule asks for: what was asked, what the kernel has. */
            settings: components["schemas"]["SettingReport"][];
            /**
             * Format: uint32
             * @description Smoothed round-trip time, µs (SmoothedRTT).
             */
            srtt_us: number;
            /**
             * Format: uint32
             * @description Slow-start threshold, segments; none while it was never set.
             */
            ssthresh_pkts: number | null;
            /** @description When it was written, RFC 3339 in UTC. */
            time: string;
        };
        /** @description A flow as the live stream sends it: parts of its [`FlowView`](crate::FlowView). */
        FlowRow: {
            /** Format: double */
            average_bps: number;
            /** Format: uint64 */
            cookie: number;
            /** Format: uint32 */
            cwnd_pkts: number;
            /** Format: double */
            elapsed_s: number;
            findings: components["schemas"]["FindingName"][];
            /** Format: double */
            goodput_bps: number;
            has_ended: boolean;
            /** Format: uint32 */
            in_flight_pkts: number;
            is_passive: boolean;
            is_rude: boolean;
            law: string;
            limited_by: components["schemas"]["LimitedBy"];
            local: string;
            /** Format: uint32 */
            min_rtt_us: number | null;
            /** Format: double */
            received_bps: number;
            remote: string;
            /** Format: double */
            retransmitted_share: number;
            rule: string | null;
            /** Format: uint32 */
            srtt_us: number;
        };
        /** @description A flow by the names of RFC 4898. */
        FlowSummary: {
            /** @description It is closed; else the values are those of a while after the test. */
            has_ended: boolean;
            /** @description Its law. */
            law: string;
            /** @description Name of the rule that it met. */
            rule: string | null;
            /** @description Each variable that this kernel has, and that had a value. */
            variables: {
                [key: string]: number;
            };
        };
        /** @description One flow as it is now. */
        FlowView: {
            /** @description The administrator's own events by name; one without a finite value is left out. */
            derived: {
                [key: string]: number;
            };
            /** @description Why it is slow, the gravest first. */
            findings: components["schemas"]["Finding"][];
            /** @description Which flow. */
            flow: components["schemas"]["Flow"];
            /** @description It is closed; the sample is its last. */
            has_ended: boolean;
            /** @description What follows from the samples of the last one to two seconds. */
            rates: components["schemas"]["Rates"];
            /** @description Name of the rule that it met. */
            rule: string | null;
            /** @description Its latest sample. */
            sample: components["schemas"]["Sample"];
            /** @description What held it back, over the span that the findings judge. */
            shares: components["schemas"]["Shares"];
        };
        /** @description What was forgotten. */
        ForgottenPaths: {
            /**
             * Format: uint
             * @description So many paths.
             */
            paths: number;
        };
        /** @description What opening or closing the gate did. */
        Gated: {
            /**
             * Format: uint32
             * @description Live flows that became rude, or polite.
             */
            flows_changed: number;
            /** @description Interfaces that cannot mark, and why: no flow over them can stay rude. */
            unmarked: string[];
        };
        /** @description How long an interval of a history is. */
        HistoryInterval: "minute" | "hour";
        /** @description The kernel half as it is now. */
        KernelStatus: {
            /** @description Counters since the load. */
            counts: components["schemas"]["Counts"];
            /** @description What the instruments counted; none where the kernel did not take them. */
            instruments: components["schemas"]["SampleCounts"] | null;
            /** @description Laws of ours that the kernel has registered. */
            laws: string[];
            /**
             * @description Whether flows are listed a network namespace at a time, since the kernel refuses iterators over maps: those of a
             *     namespace without a process or a name are not listed.
             * @default false
             */
            lists_by_namespace: boolean;
            /** @description Directory of the pins. */
            pin_dir: string;
            /** @description Everything that is pinned there. */
            pinned: components["schemas"]["Pinned"][];
            /**
             * Format: uint32
             * @description Counts policies made live since the load; 0 = none is.
             */
            policy_generation: number;
            /** @description Names of the live policy's rules. */
            rules: string[];
        };
        /** @description How far a client of the live stream was behind. */
        Late: {
            /**
             * Format: uint64
             * @description Milliseconds since the frame before.
             */
            ms: number;
        };
        /** @description A part of the newest events that match. */
        LatestPage: {
            /** @description The query's `after` for the next page, with everything else as before; none when there is none. */
            next: string | null;
            /** @description By path, those of the whole host first. */
            values: components["schemas"]["LatestValue"][];
        };
        /** @description The newest event of its name and path since the daemon began. The store may not have it yet. */
        LatestValue: {
            /** @description Everything else. */
            body: unknown;
            /** @description sample, event, flow, path, test or decision. */
            kind: string;
            /** @description What happened. */
            name: string;
            /** @description Whose it is: a /24 of peers, of IPv6 a /48; of a scheduled test its name; empty of the whole host. */
            of: string;
            /**
             * Format: ip
             * @description The peer.
             */
            peer: string | null;
            /** @description The rule. */
            rule: string | null;
            /** @description When, RFC 3339 in UTC. */
            time: string;
            /**
             * Format: int64
             * @description When, µs since 1970.
             */
            time_us: number;
            /**
             * Format: double
             * @description Its one number.
             */
            value: number | null;
            /**
             * Format: uint32
             * @description How many like it this one stands for.
             */
            weight: number;
        };
        /** @description One path. */
        LearnedPath: {
            /**
             * Format: double
             * @description Its standard error, as a share of it.
             */
            base_rtt_doubt: number;
            /**
             * Format: double
             * @description Round-trip time without queues, µs.
             */
            base_rtt_us: number;
            /**
             * Format: uint32
             * @description How often it became another path.
             */
            epochs: number;
            /**
             * Format: uint
             * @description Flows that the numbers rest on: the latest.
             */
            evidence: number;
            /**
             * Format: uint64
             * @description Flows that told something, ever.
             */
            flows: number;
            /**
             * Format: double
             * @description The median rate of flows that began under learned settings, as a multiple of that of the others; none where the numbers do
             *     not rest on flows of both.
             */
            gain: number | null;
            /**
             * Format: double
             * @description Round-trip time with queues, µs.
             */
            high_rtt_us: number;
            /**
             * Format: ip
             * @description This host's address.
             */
            local: string;
            /** @description When segments are lost: none, queue, short_queue, random or policed. */
            loss: string | null;
            /** @description The peers: a /24, of IPv6 a /48. */
            prefix: string;
            /** @description Until when it is left alone, RFC 3339 in UTC. */
            quarantined_until: string | null;
            /**
             * Format: double
             * @description Bits of payload a second; none while no flow lasted long enough.
             */
            rate_bps: number | null;
            /**
             * Format: double
             * @description Its standard error, as a share of it.
             */
            rate_doubt: number | null;
            /**
             * @description What held back the flows that say so, so that the path may carry more: application,
             *     own_buffer, program_buffer (one that the program set), peer_window, loss, or pacing.
             */
            rate_limit: string | null;
            /** @description Why, for people. */
            reasons: string[];
            /**
             * Format: double
             * @description Segments sent again, of those sent.
             */
            retransmitted_share: number;
            /** @description When a flow was last seen, RFC 3339 in UTC. */
            seen: string;
            /** @description Keys of a rule of the policy file, a line each: what its flows get, or would get. */
            settings: string;
            /** @description Whether flows get it now. */
            state: components["schemas"]["PathState"];
            /** @description The flows that the numbers rest on, oldest first, where they were asked for. */
            told_by?: components["schemas"]["PathEvidence"][];
        };
        /** @description What was learned of paths. */
        LearnedPaths: {
            /**
             * Format: uint
             * @description How many are known; more than there are in `paths` where a limit or a prefix leaves some out.
             */
            known: number;
            /** @description off, observe or tune, as the policy's section `[auto]` says. */
            mode: string;
            /** @description The path that was seen last comes first. */
            paths: components["schemas"]["LearnedPath"][];
        };
        /** @description What held the sender back at that moment (`chrono_type`). */
        LimitedBy: "idle" | "network" | "receiver" | "send_buffer";
        /** @description How long the flow had something to send, and what held it back meanwhile. */
        Limits: {
            /**
             * Format: double
             * @description Seconds with data to send or in flight.
             */
            busy_s: number;
            /**
             * Format: double
             * @description By the congestion window, that is by the network (SndLimTimeCwnd).
             */
            network_s: number;
            /**
             * Format: double
             * @description Of these, limited by the receiver's window (SndLimTimeRwin).
             */
            receiver_s: number;
            /**
             * Format: double
             * @description By the sender's own buffer (SndLimTimeSnd).
             */
            sender_s: number;
        };
        /** @description `GET /v1/instruments/listing` */
        Listing: {
            /**
             * Format: uint64
             * @description Cookie of the chosen flow; none when it does not pass.
             */
            chosen: number | null;
            /**
             * Format: uint
             * @description Which of these is the first line.
             */
            first: number;
            /**
             * Format: uint
             * @description Flows in the table.
             */
            known: number;
            /**
             * Format: uint
             * @description Flows that pass.
             */
            passing: number;
            /** @description The lines. */
            views: components["schemas"]["FlowView"][];
        };
        /** @description One server-sent event of `GET /v1/instruments/live`: its name, and its data as JSON. */
        LiveFrame: {
            data: Record<string, never>;
            /** @constant */
            event: "reset";
        } | {
            data: components["schemas"]["FlowRow"][];
            /** @constant */
            event: "flows";
        } | {
            data: number[];
            /** @constant */
            event: "gone";
        } | {
            data: components["schemas"]["Lost"];
            /** @constant */
            event: "lost";
        } | {
            data: components["schemas"]["Late"];
            /** @constant */
            event: "late";
        };
        /** @description How a log file fares. */
        LogStatus: {
            /** @description Why the last line is missing. */
            error?: string | null;
            /** @description The file. */
            file: string;
            /**
             * Format: uint64
             * @description Lines that could not be written.
             */
            missing: number;
            /**
             * Format: uint64
             * @description Lines written since the daemon started.
             */
            written: number;
        };
        /** @description What the instruments missed since the kernel half was loaded. */
        Lost: {
            /**
             * Format: uint64
             * @description Flows that `max_flows` or `max_flows_per_prefix` left out.
             */
            flows_beyond_bounds: number;
            /**
             * Format: uint64
             * @description Flows left out because their socket had no memory for what is kept of them.
             */
            flows_without_storage: number;
            /**
             * Format: uint64
             * @description Samples lost because nobody read them in time.
             */
            samples_lost: number;
        };
        /** @description How the scheduled tests fare. */
        MeasureStatus: {
            /**
             * Format: uint64
             * @description Runs that failed.
             */
            failed: number;
            /** @description The file that lists them. */
            file: string;
            /** @description Why the file was not taken; the tests before it go on. */
            file_error?: string | null;
            /** @description Why the last that failed did. */
            last_error?: string | null;
            /**
             * Format: uint64
             * @description Runs that were left out: flows said enough, or the resource was in use.
             */
            left_out: number;
            /** @description The one that is due next. */
            next?: string | null;
            /**
             * Format: int64
             * @description When, µs since 1970.
             */
            next_due_us?: number | null;
            /** @description Names of those that run now, or wait for a resource. */
            running: string[];
            /**
             * Format: uint64
             * @description Runs that gave values, since the daemon started.
             */
            succeeded: number;
            /**
             * Format: uint64
             * @description How many there are.
             */
            tests: number;
        };
        /** @description What is kept of the values of a measure. */
        MeasureSummary: {
            /**
             * Format: uint64
             * @description How many values.
             */
            n: number;
            /**
             * Format: double
             * @description 10th percentile, right to 2.2 %.
             */
            p10: number | null;
            /**
             * Format: double
             * @description Median.
             */
            p50: number | null;
            /**
             * Format: double
             * @description 90th percentile.
             */
            p90: number | null;
            /**
             * Format: double
             * @description Sum of their logarithms.
             */
            sum_ln: number;
            /**
             * Format: double
             * @description Sum of the squares of these.
             */
            sum_ln2: number;
        };
        /** @description A rule whose path is measured (`rtt = "measured"`, `rate = "measured"`), and what it goes by now. */
        MeasuredRule: {
            /** @description On which path it was measured, and by what; null while nothing was measured, so that what is known is of the file. */
            by: string | null;
            /**
             * Format: uint64
             * @description Rate, bits a second; null while it is not known.
             */
            rate_bps: number | null;
            /**
             * Format: uint32
             * @description Round-trip time, µs; null while it is not known.
             */
            rtt_us: number | null;
            /** @description Its name. */
            rule: string;
            /** @description Since when it is in force, RFC 3339; null likewise. */
            since: string | null;
        };
        /** @description One `[[mesh]]` of the file of tests. */
        MeshGrid: {
            /** @description Its hosts. */
            hosts: string[];
            /** @description Its name. */
            mesh: string;
            /** @description All of one host after those of another, in the order of the hosts. */
            pairs: components["schemas"]["MeshPair"][];
            /** @description What measures. */
            tool: string;
        };
        /** @description The newest test from one host to another. */
        MeshPair: {
            /** @description Which ran it. */
            from: string;
            /** @description Why there is no value. */
            note: components["schemas"]["TestNote"] | null;
            /**
             * Format: int64
             * @description When it started, µs since 1970; none: there was no test in three times its interval.
             */
            start_us: number | null;
            /** @description The peer. */
            to: string;
            /** @description Its unit. */
            unit: string | null;
            /**
             * Format: double
             * @description The number that the tool is for.
             */
            value: number | null;
        };
        /** @description Who opened the connection. */
        Opened: "here" | "by_peer" | "before_fatpath";
        /** @description What one flow told of its path. */
        PathEvidence: {
            /** @description When it began, RFC 3339 in UTC. */
            began: string;
            /**
             * Format: uint64
             * @description Bytes acknowledged or received, whichever is more.
             */
            bytes: number;
            /** @description Whether what was learned gave it its settings. */
            is_tuned: boolean;
            /**
             * @description What held it back for a quarter of its time or more: application, own_buffer, program_buffer, peer_window, loss or
             *     pacing.
             */
            limit: string | null;
            /** @description What losses it had: none, queue, short_queue, random or policed; none where it cannot be told. */
            loss: string | null;
            /**
             * Format: double
             * @description Mean round-trip time, µs.
             */
            mean_rtt_us: number;
            /**
             * Format: double
             * @description Least round-trip time, µs.
             */
            min_rtt_us: number;
            /**
             * Format: double
             * @description Its best rate, bits a second; none of a flow that lasted less than a second and ten round trips.
             */
            rate_bps: number | null;
            /**
             * Format: uint64
             * @description Segments that it sent again.
             */
            retransmitted_pkts: number;
            /** @description Until when it told, RFC 3339 in UTC. */
            seen: string;
            /**
             * Format: uint64
             * @description Segments with data that this host sent.
             */
            sent_pkts: number;
        };
        /** @description The history of a path. */
        PathHistory: {
            /** @description Findings, tests and estimates of the path, and the decisions of that time. */
            events: components["schemas"]["ArchivedEvent"][];
            /** @description Those in which flows ended, by time. */
            intervals: components["schemas"]["PathInterval"][];
        };
        /** @description What flows that ended in an interval measured. */
        PathInterval: {
            /** @description RFC 3339 in UTC. */
            begin: string;
            /** @description By the measure's name: goodput_bps, srtt_us, min_rtt_us, retransmitted_share. */
            measures: {
                [key: string]: components["schemas"]["MeasureSummary"];
            };
        };
        /** @description What becomes of what a path could get. */
        PathState: "as_host" | "observed" | "tuned" | "quarantined";
        /** @description A file of a library or program. */
        PhaseLibrary: {
            /**
             * Format: uint
             * @description Functions that have probes.
             */
            functions: number;
            /** @description As it was found; in a container, as the container has it. */
            path: string;
            /** @description The tables that name it. */
            phases: string[];
            /** @description What is missing, and why. */
            problem: string | null;
            /** @description Of these the ones whose first instruction the kernel does not emulate: some 11 us a call. */
            stepped: string[];
        };
        /** @description A process that called a function of a phase. */
        PhaseProcess: {
            /**
             * Format: uint64
             * @description Calls, those of one function by another too.
             */
            calls: number;
            /**
             * Format: double
             * @description Calls a second.
             */
            calls_per_s: number;
            /**
             * Format: double
             * @description Share of that time in collective phases, 0 to 1.
             */
            collective_share: number;
            /** @description The name of its program. */
            command: string;
            /** @description Whether it is in a collective phase now. */
            is_collective: boolean;
            /**
             * Format: double
             * @description Since its first call.
             */
            observed_s: number;
            /**
             * Format: uint64
             * @description Collective phases that began.
             */
            phases: number;
            /**
             * Format: uint32
             * @description Its number.
             */
            pid: number;
            /**
             * Format: double
             * @description Changes from one phase to the other, a second.
             */
            switches_per_s: number;
        };
        /** @description `GET /v1/phases`: which phases are followed, and of whom. */
        Phases: {
            /** @description The files that were found and tried. */
            libraries: components["schemas"]["PhaseLibrary"][];
            /**
             * Format: double
             * @description What a call costs the program at this host, entry and return together, in microseconds: measured when the
             *     probes were attached; null: not measured.
             */
            probe_us: number | null;
            /** @description Why phases are not followed, though the policy asks for it. */
            problem: string | null;
            /** @description The processes that have called a function of a phase, and live. */
            processes: components["schemas"]["PhaseProcess"][];
            /** @description The tables `[phases.NAME]` of the live policy. */
            tables: string[];
        };
        /** @description What a pin holds. */
        PinKind: "map" | "link" | "program" | "law";
        /** @description One pin. */
        Pinned: {
            /** @description What it holds. */
            kind: components["schemas"]["PinKind"];
            /** @description Its file's name. */
            name: string;
        };
        /** @description One point of a flow's plots. */
        Point: {
            /**
             * Format: double
             * @description The same since the begin.
             */
            average_bps: number;
            /** Format: uint32 */
            cwnd_pkts: number;
            /** Format: uint32 */
            in_flight_pkts: number;
            /**
             * Format: double
             * @description Bytes acknowledged or received since the point before, bits a second.
             */
            rate_bps: number;
            /**
             * Format: uint64
             * @description Segments retransmitted since the point before.
             */
            retransmitted_pkts: number;
            /** Format: uint32 */
            rtt_us: number | null;
            /** Format: uint32 */
            srtt_us: number;
            /** Format: uint32 */
            ssthresh_pkts: number | null;
            /** Format: double */
            t_s: number;
        };
        /** @description Rates of the last one to two seconds, or since the begin when that is less. */
        Rates: {
            /**
             * Format: double
             * @description Bytes acknowledged or received, whichever are more, over the flow's life, bits a second.
             */
            average_bps: number;
            /**
             * Format: double
             * @description Bytes that the peer acknowledged, bits a second.
             */
            goodput_bps: number;
            /**
             * Format: double
             * @description Payload received in order, bits a second.
             */
            received_bps: number;
            /**
             * Format: double
             * @description Of the bytes sent in this time, the share that was retransmitted; 0 when none was sent.
             */
            retransmitted_share: number;
            /**
             * Format: double
             * @description Payload sent, retransmissions included, bits a second.
             */
            sent_bps: number;
        };
        /** @description A flow that is rude or going polite. */
        RudeFlow: {
            /**
             * Format: uint32
             * @description The window that it would have, or is going to, segments.
             */
            fair_cwnd_pkts: number;
            /**
             * Format: uint32
             * @description Segments that were marked, modulo 2^32; behind a bond or a VLAN's interface, once for each.
             */
            marked_pkts: number;
            /** @description What it is. */
            mode: components["schemas"]["RudeMode"];
            /**
             * Format: uint32
             * @description Number of the user who asked for it, or who owns the socket.
             */
            user: number;
        };
        /** @description The gate. */
        RudeGate: {
            /** @description While it is closed no flow is rude. */
            is_open: boolean;
            /** @description How segments are marked. */
            mark: components["schemas"]["RudeMark"];
            /** @description Whether the daemon's own network namespace marks. */
            marks_here: boolean;
        };
        /** @description How segments of rude flows are marked. */
        RudeMark: {
            /** Format: uint16 */
            tcp_bit: number;
        } | {
            /** Format: uint8 */
            dscp: number;
        };
        /** @description What a flow that was rude is now. */
        RudeMode: "rude" | "going_polite";
        /** @description `GET /v1/rude/permission`: whether a program of the user who asks may send datagrams without congestion control. */
        RudePermission: {
            granted: components["schemas"]["RudePermit"];
        } | {
            refused: string;
        };
        /** @description How datagrams without congestion control may be sent. */
        RudePermit: {
            /**
             * Format: uint8
             * @description The DSCP that each datagram has to have, 1 to 63.
             */
            dscp: number;
            /**
             * Format: uint32
             * @description The permission ends so soon unless it is given again.
             */
            good_for_ms: number;
            /**
             * Format: uint64
             * @description The most that a transfer may send: the rule's `rude_rate`, bits of IP packets a second.
             */
            rate_bps: number;
            /** @description The rule that allows it. */
            rule: string;
        };
        /** @description `GET /v1/rude`: all of Rude TCP on this host. */
        RudeStatus: {
            /** @description The flows that are rude or going polite. */
            flows: components["schemas"]["TunedFlow"][];
            /**
             * Format: uint64
             * @description Rude flows that went back to congestion control because their segments were not marked, since the load.
             */
            flows_unmarked: number;
            /** @description The gate. */
            gate: components["schemas"]["RudeGate"];
            /** @description Network namespaces whose interfaces mark: inode, and how many. */
            marked_namespaces: [
                number,
                number
            ][];
        };
        /** @description One flow at one moment. */
        Sample: {
            /** Format: uint32 */
            adv_mss_bytes: number;
            /** Format: uint8 */
            backoff: number;
            /** @description What the flow's law knows of the path; none unless that is `fp_bbr`. */
            bbr: components["schemas"]["BbrState"] | null;
            /**
             * Format: uint64
             * @description When fatpath first saw the flow, same clock.
             */
            begin_ns: number;
            /** @description A buffer of the flow's rule was not given because the host's TCP memory was short. */
            buffer_is_withheld: boolean;
            /**
             * Format: uint64
             * @description SndLimTimeRwin, SndLimTimeSnd; busy contains both.
             */
            busy_us: number;
            /** Format: uint64 */
            bytes_acked: number;
            /** Format: uint64 */
            bytes_received: number;
            /** Format: uint64 */
            bytes_retrans: number;
            /** Format: uint64 */
            bytes_sent: number;
            ca_state: components["schemas"]["CaState"];
            /** Format: uint32 */
            cong_avoid_acks: number | null;
            /**
             * Format: uint32
             * @description Counted by fatpath since it first saw the flow.
             */
            cong_signals: number;
            /** Format: uint32 */
            count_rtt: number;
            /** Format: uint32 */
            cwnd_clamp_pkts: number;
            /** Format: uint32 */
            cwnd_pkts: number;
            /** Format: uint64 */
            data_segs_in: number;
            /** Format: uint64 */
            data_segs_out: number;
            /** Format: uint64 */
            delivered_ce_pkts: number;
            /** Format: uint64 */
            delivered_pkts: number;
            /**
             * Format: uint64
             * @description Latest delivery-rate sample, bytes a second; none without one.
             */
            delivery_rate_bytes_per_s: number | null;
            delivery_rate_is_app_limited: boolean;
            /** Format: uint32 */
            dsack_dups: number;
            ecn_is_on: boolean;
            /** @description None of a flow that is not sampled. */
            extremes: components["schemas"]["Extremes"] | null;
            flow: components["schemas"]["Flow"];
            /** @description The program has given less than could be sent, and what it gave is not all acknowledged. */
            is_app_limited: boolean;
            is_cwnd_limited: boolean;
            is_rude: boolean;
            /**
             * @description The flow is sampled. Else it was only walked by: what fatpath counts itself is 0, and counters
             *     that the kernel keeps in 32 bits have wrapped where they did.
             */
            is_tracked: boolean;
            kind: components["schemas"]["SampleKind"];
            /** @description Law in use (`icsk_ca_ops->name`). */
            law: string;
            /** Format: uint32 */
            lim_trans_cwnd: number;
            /** Format: uint32 */
            lim_trans_rwin: number;
            /** Format: uint32 */
            lim_trans_snd: number;
            /** @description What holds it back now; the transitions that samples saw (SndLimTrans*). */
            limited_by: components["schemas"]["LimitedBy"];
            /** Format: uint32 */
            lost_out: number;
            /** Format: uint64 */
            lost_pkts: number;
            /** Format: uint32 */
            max_peer_window_bytes: number;
            /**
             * Format: uint32
             * @description This and the next two: of one measurement a round trip.
             */
            max_rtt_us: number;
            /** Format: uint32 */
            min_rtt_us: number | null;
            /** Format: uint32 */
            mss_bytes: number;
            /**
             * Format: uint64
             * @description CLOCK_MONOTONIC of the host, ns.
             */
            now_ns: number;
            /** Format: uint64 */
            pacing_rate_bytes_per_s: number;
            /** Format: uint32 */
            packets_out: number;
            /** Format: uint32 */
            peer_window_bytes: number;
            /** Format: uint32 */
            pmtu_bytes: number;
            /** Format: uint64 */
            post_cong_sum_ssthresh_pkts: number;
            /** Format: uint64 */
            pre_cong_sum_cwnd_pkts: number;
            /** Format: uint64 */
            pre_cong_sum_rtt_us: number;
            /** Format: uint32 */
            rcv_nxt: number;
            /** Format: uint32 */
            rcv_ooopack: number;
            /** Format: uint32 */
            rcv_rtt_us: number;
            /**
             * Format: uint32
             * @description Sequence space from the next byte expected to the farthest segment out of order (CurReasmQueue).
             */
            reasm_queue_bytes: number;
            /** Format: uint32 */
            receive_buffer_bytes: number;
            receive_buffer_is_locked: boolean;
            /** Format: uint32 */
            receive_window_bytes: number;
            /** Format: uint8 */
            receive_wscale: number;
            /** Format: uint32 */
            reord_seen: number;
            /** Format: uint32 */
            reordering_pkts: number;
            /** Format: uint32 */
            retrans_out: number;
            /** Format: uint8 */
            retransmits: number;
            /** Format: uint32 */
            rto_us: number;
            /**
             * Format: uint32
             * @description The latest measurement since the last sample; none without one.
             */
            rtt_us: number | null;
            /** Format: uint32 */
            rttvar_us: number;
            /** Format: uint64 */
            rwnd_limited_us: number;
            sack_is_on: boolean;
            /** Format: uint32 */
            sacked_out: number;
            /** Format: uint64 */
            segs_in: number;
            /** Format: uint64 */
            segs_out: number;
            /** Format: uint64 */
            segs_retrans: number;
            /** Format: uint32 */
            send_buffer_bytes: number;
            send_buffer_is_locked: boolean;
            /** Format: uint8 */
            send_wscale: number;
            /**
             * Format: uint32
             * @description Only laws of bpf/cc count acknowledgements; none under another.
             */
            slow_start_acks: number | null;
            /** Format: uint32 */
            snd_nxt: number;
            /** Format: uint32 */
            snd_una: number;
            /** Format: uint64 */
            sndbuf_limited_us: number;
            /** Format: uint32 */
            srtt_us: number;
            /**
             * Format: uint32
             * @description None while it was never set.
             */
            ssthresh_pkts: number | null;
            /** Format: uint8 */
            state: number;
            /** Format: uint32 */
            subsequent_timeouts: number;
            /** Format: uint64 */
            sum_rtt_us: number;
            /** Format: uint32 */
            timeouts: number;
            timestamps_are_on: boolean;
            /** Format: uint32 */
            unread_bytes: number;
            /** Format: uint32 */
            unsent_bytes: number;
            /** @description The program waits for memory of the send buffer (SOCK_NOSPACE). */
            waits_for_send_buffer: boolean;
            /** Format: uint32 */
            window_clamp_bytes: number;
        };
        /** @description What the instruments counted since the load. */
        SampleCounts: {
            /**
             * Format: uint64
             * @description Events that have no sample of their own because of the budget: the flow's next sample counts them.
             * @default 0
             */
            events_unsampled: number;
            /**
             * Format: uint64
             * @description Flows that `max_flows` or `max_flows_per_prefix` left out.
             */
            flows_beyond_bounds: number;
            /**
             * Format: uint64
             * @description Flows that are sampled now.
             */
            flows_sampled: number;
            /**
             * Format: uint64
             * @description Flows left out because their socket had no memory for what is kept of them.
             */
            flows_without_storage: number;
            /**
             * Format: uint64
             * @description The same as the policy gives it. It is longer now if the budget would not hold otherwise.
             * @default 0
             */
            interval_configured_us: number;
            /**
             * Format: uint64
             * @description The least time between two samples of a flow, as it is now; microseconds.
             * @default 0
             */
            interval_us: number;
            /**
             * Format: uint64
             * @description Samples handed over.
             */
            samples: number;
            /**
             * Format: uint64
             * @description Samples lost because nobody read them in time.
             */
            samples_lost: number;
            /**
             * Format: uint32
             * @description The budget: so many samples a second at most; 0 = none.
             * @default 0
             */
            samples_per_s_max: number;
        };
        /** @description Why a sample was made. */
        SampleKind: "begin" | "interval" | "state" | "congestion" | "timeout" | "retransmission" | "end" | "walk";
        /** @description One line of `GET /v1/instruments/samples`. */
        SampleLine: {
            sample: components["schemas"]["Sample"];
        } | {
            /** Format: uint64 */
            lost: number;
        };
        /** @description What became of a setting that a rule asks for. */
        SettingOutcome: "given" | "overrides_program" | "kept_programs_own" | "too_late" | "ignored_by_law" | "withheld" | "refused";
        /** @description One setting: asked for, and read back. */
        SettingReport: {
            /** @description What the rule asks for (its share, when the rule divides). */
            asked: components["schemas"]["SettingValue"];
            /** @description What the kernel says it has. */
            has: components["schemas"]["SettingValue"];
            /** @description Why the two may differ, for people; programs read `outcome`. */
            note?: string | null;
            /** @description What became of it. */
            outcome: components["schemas"]["SettingOutcome"];
            /** @description Name as in the policy file, with its unit. */
            setting: string;
        };
        /** @description A number in the unit of its setting's name, or a law's name. */
        SettingValue: number | string;
        /** @description How much a finding matters. */
        Severity: "info" | "warning" | "problem";
        /** @description Shares of a span of time by what held the sender back; they add up to 1. */
        Shares: {
            /**
             * Format: double
             * @description Nothing to send: the application gave nothing.
             */
            application: number;
            /**
             * Format: double
             * @description The congestion window, and so the path (SndLimTimeCwnd).
             */
            network: number;
            /**
             * Format: double
             * @description The receiver's window (SndLimTimeRwin).
             */
            receiver: number;
            /**
             * Format: double
             * @description The sender's own buffer (SndLimTimeSnd).
             */
            send_buffer: number;
            /**
             * Format: double
             * @description Waiting for the retransmission timer.
             */
            timeout: number;
        };
        /** @description `GET /v1/status` */
        Status: {
            /** @description The archive; absent while the live policy asks for none. */
            archive?: components["schemas"]["ArchiveStatus"] | null;
            /** @description The log of events; absent when the daemon writes none. */
            event_log?: components["schemas"]["LogStatus"] | null;
            /** @description The log of flows that ended. */
            flow_log: components["schemas"]["LogStatus"];
            /** @description Changes to the host that are in force. */
            host_changes: components["schemas"]["Change"][];
            /** @description The kernel half. */
            kernel: components["schemas"]["KernelStatus"];
            /** @description The scheduled tests; absent without a file that lists them. */
            measure?: components["schemas"]["MeasureStatus"] | null;
            /** @description The rules whose path is measured, with what is in force. */
            measured?: components["schemas"]["MeasuredRule"][];
            /** @description Where the page is served over TCP. */
            page: string | null;
            /** @description Why it is not, although the daemon was asked to: it tries again. */
            page_error?: string | null;
            /**
             * Format: uint32
             * @description The daemon's process.
             */
            pid: number;
            /** @description Name of the file that the live policy came from. */
            policy_file: string;
            /** @description The gate of Rude TCP; absent from a daemon of an earlier build. */
            rude?: components["schemas"]["RudeGate"] | null;
            /** @description The traces that the live policy asks for. */
            traces?: components["schemas"]["TraceStatus"][];
            /**
             * Format: uint64
             * @description Seconds since it started.
             */
            uptime_s: number;
            /** @description The daemon's version. */
            version: string;
        };
        /** @description What `fatpath status --json` prints while no daemon runs. */
        StatusWithoutDaemon: {
            /** @description Changes to the host that are in force. */
            host_changes: components["schemas"]["Change"][];
            /** @description What is pinned; none when nothing is. */
            kernel: components["schemas"]["KernelStatus"] | null;
            /** @description Null: this tells the two forms apart. */
            pid: null;
            /** @description The gate of Rude TCP; none when nothing is pinned. */
            rude: components["schemas"]["RudeGate"] | null;
        };
        /** @description A flow of a test. */
        TestFlow: {
            /** @description Its end here. */
            local: string;
            /** @description Its other end. */
            remote: string;
            /** @description What the instruments had of it after the test; none where they did not see it. */
            summary?: components["schemas"]["FlowSummary"] | null;
        };
        /** @description How serious a message is. */
        TestLevel: "info" | "warning" | "error";
        /** @description A message about a run, and how serious it is. */
        TestNote: {
            /** @description How serious. */
            level: components["schemas"]["TestLevel"];
            /** @description For people. */
            message: string;
        };
        /** @description One run of a test. */
        TestOutcome: {
            /**
             * Format: int64
             * @description When the schedule had it due, µs since 1970; none of a run that was asked for.
             */
            due_us?: number | null;
            /**
             * Format: double
             * @description How long it took.
             */
            duration_s: number;
            /** @description Its flows of TCP, as far as its tool says which they were. */
            flows?: components["schemas"]["TestFlow"][];
            /** @description Why there are no values, where there are none. */
            note?: components["schemas"]["TestNote"] | null;
            /** @description What it loaded. */
            resources?: string[];
            /**
             * Format: int64
             * @description When it started, µs since 1970. It may have waited for a resource.
             */
            start_us: number;
            /** @description Name of the test. */
            test: string;
            /** @description The peer as the file gives it. */
            to?: string | null;
            /** @description Name of the tool. */
            tool: string;
            /** @description What it measured, by name: the number and its unit. */
            values: {
                [key: string]: [
                    number,
                    string
                ];
            };
        };
        /** @description How a trace of the policy fares (`[[trace]]`). Counts begin when the policy with it becomes live. */
        TraceStatus: {
            /**
             * Format: uint64
             * @description Their size together.
             */
            bytes: number;
            /** @description Why the last sample is not written. */
            error?: string | null;
            /**
             * Format: uint64
             * @description Finished files that are there.
             */
            files: number;
            /**
             * Format: uint64
             * @description Flows that are traced now.
             */
            flows: number;
            /**
             * Format: uint64
             * @description Flows that were not traced when they were first seen, because `max_flows` others were. One that was left out
             *     takes the place of the next that ends.
             */
            flows_left_out: number;
            /** @description The folder of its files. */
            folder: string;
            /**
             * Format: uint64
             * @description Samples of its flows that could not be written.
             */
            missing: number;
            /** @description Its name. */
            name: string;
            /**
             * Format: uint64
             * @description Samples of any flows, traced or not, that passed faster than the daemon looked at them.
             */
            unread: number;
            /**
             * Format: uint64
             * @description Samples written.
             */
            written: number;
        };
        /** @description What became of a flow that was tuned by hand. */
        TunedByHand: {
            /** @description The flow as it is now; none when no rule gives it anything any more. */
            flow: components["schemas"]["TunedFlow"] | null;
            /**
             * @description What could not be done for it, for people.
             * @default []
             */
            notes: string[];
        };
        /** @description A tuned flow at one moment: `GET /v1/flows`, and a line of the flow log. */
        TunedFlow: {
            /** @description What its law knows of the path; none unless that is `fp_bbr`. */
            bbr?: components["schemas"]["BbrState"] | null;
            /**
             * Format: uint64
             * @description Bytes that the peer acknowledged (ThruOctetsAcked).
             */
            bytes_acked: number;
            /**
             * Format: uint64
             * @description Bytes received in order (ThruOctetsReceived).
             */
            bytes_received: number;
            /**
             * Format: uint64
             * @description Bytes retransmitted (OctetsRetrans).
             */
            bytes_retransmitted: number;
            /**
             * @description Path of its cgroup; none when it is gone, or nobody looked it up.
             * @default null
             */
            cgroup: string | null;
            /**
             * Format: uint64
             * @description Inode of its cgroup; 0 = unknown.
             */
            cgroup_id: number;
            /**
             * Format: uint64
             * @description The socket's cookie: unique until the host boots.
             */
            cookie: number;
            /**
             * Format: uint32
             * @description Congestion window, segments.
             */
            cwnd_pkts: number;
            /**
             * Format: double
             * @description Seconds since it was established, or since fatpath first saw it.
             */
            duration_s: number;
            /**
             * Format: double
             * @description The larger of both over the duration, Mb/s.
             */
            goodput_mbps: number;
            /**
             * Format: uint32
             * @description Segments in flight.
             */
            in_flight_pkts: number;
            /** @description It was established before fatpath saw it. */
            is_adopted: boolean;
            /** @description The peer opened the connection. */
            is_passive: boolean;
            /** @description Law in use. */
            law: string;
            /** @description What held it back. */
            limited: components["schemas"]["Limits"];
            /** @description LocalAddress, LocalPort. */
            local: string;
            /**
             * Format: uint32
             * @description Least round-trip time of late, µs; none before the first sample.
             */
            min_rtt_us: number | null;
            /**
             * Format: uint32
             * @description Segment size, bytes (CurMSS).
             */
            mss_bytes: number;
            /**
             * Format: uint32
             * @description Inode of its network namespace.
             */
            netns: number;
            /** @description Who opened it. */
            opened: components["schemas"]["Opened"];
            /**
             * Format: uint32
             * @description Window that the peer advertises, bytes (CurRwinRcvd).
             */
            peer_window_bytes: number;
            /**
             * Format: uint32
             * @description Window scale that this host announced.
             */
            receive_window_scale: number;
            /** @description RemAddress, RemPort. */
            remote: string;
            /** @description While it is rude, or going polite. */
            rude?: components["schemas"]["RudeFlow"] | null;
            /** @description The rule it is on; none when its rule was taken out of the policy. */
            rule: string | null;
            /**
             * Format: uint32
             * @description The rule of the live policy that it met, by its stable number.
             */
            rule_id: number | null;
            /**
             * Format: uint32
             * @description Segments received (SegsIn).
             */
            segments_received: number;
            /**
             * Format: uint32
             * @description Segments retransmitted (SegsRetrans).
             */
            segments_retransmitted: number;
            /**
             * Format: uint32
             * @description Segments sent (SegsOut).
             */
            segments_sent: number;
            /**
             * Format: uint32
             * @description Window scale that the peer announced.
             */
            send_window_scale: number;
            /** @description Each setting that the rule asks for: what was asked, what the kernel has. */
            settings: components["schemas"]["SettingReport"][];
            /**
             * Format: uint32
             * @description Smoothed round-trip time, µs (SmoothedRTT).
             */
            srtt_us: number;
            /**
             * Format: uint32
             * @description Slow-start threshold, segments; none while it was never set.
             */
            ssthresh_pkts: number | null;
        };
        /** @description What an unload did. */
        UnloadReport: {
            /** @description Changes that could not be put back. */
            failed: string[];
            /**
             * Format: uint32
             * @description Live flows that went back to their namespace's law.
             */
            flows_released: number;
            /** @description Changes that somebody else changed since: left alone. */
            left_alone: string[];
            /** @description Changes to the host that were put back. */
            put_back: string[];
            /** @description Pins removed, by name; with the last one its program, map or law is gone. */
            removed: string[];
        };
        /** @description `GET /v1/instruments/why`: one of a list. */
        Why: {
            /** @description What the flow's law knows of the path; none unless that is `fp_bbr`. */
            bbr?: components["schemas"]["BbrState"] | null;
            /** @description The gravest first; none in a healthy transfer. */
            findings: components["schemas"]["Finding"][];
            /** @description Which flow. */
            flow: components["schemas"]["Flow"];
            /** @description Bits a second now. */
            rates: components["schemas"]["Rates"];
            /** @description Name of the rule that it met. */
            rule: string | null;
            /** @description What held it back. */
            shares: components["schemas"]["Shares"];
            /**
             * Format: double
             * @description Seconds that shares and findings judge.
             */
            span_s: number;
        };
    };
    responses: {
        /** @description Another site, an unknown Host, or not root */
        Forbidden: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Over TCP, without the token */
        Unauthorized: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
