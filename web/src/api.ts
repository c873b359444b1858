// SPDX-License-Identifier: MIT OR Apache-2.0
// The daemon's API as the page uses it. The types are generated from its document (`npm run types`); what
// arrives is the daemon's own and is not checked again, but all of its text is shown as text.

import type { components } from "./api.gen";

type Schemas = components["schemas"];

export type Severity = Schemas["Severity"];
export type LimitedBy = Schemas["LimitedBy"];
export type FindingName = Schemas["FindingName"];
export type FlowRow = Schemas["FlowRow"];
export type Finding = Schemas["Finding"];
export type Shares = Schemas["Shares"];
export type FlowView = Schemas["FlowView"];
export type Point = Schemas["Point"];
export type EventKind = Schemas["EventKind"];
export type FlowEvent = Schemas["Event"];
export type FlowDetail = Schemas["FlowDetail"];
export type Why = Schemas["Why"];
export type PathHistory = Schemas["PathHistory"];
export type ArchivedEvent = Schemas["ArchivedEvent"];
export type LearnedPath = Schemas["LearnedPath"];
export type LearnedPaths = Schemas["LearnedPaths"];
export type PathEvidence = Schemas["PathEvidence"];
export type PathState = Schemas["PathState"];
export type MeshGrid = Schemas["MeshGrid"];
export type MeshPair = Schemas["MeshPair"];
export type Lost = Schemas["Lost"];
export type LiveFrame = Schemas["LiveFrame"];

/** An answer other than 200. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const answer = await request(path, signal);
  return (await answer.json()) as T;
}

export async function request(path: string, signal?: AbortSignal): Promise<Response> {
  const token = sessionStorage.getItem(TOKEN);
  const headers: HeadersInit = token ? { authorization: `Bearer ${token}` } : {};
  const answer = await fetch(path, { headers, cache: "no-store", ...(signal && { signal }) });
  if (!answer.ok) {
    throw new Refused(answer.status, await reason(answer));
  }
  return answer;
}

async function reason(answer: Response): Promise<string> {
  try {
    return String(((await answer.json()) as Schemas["Error"]).error);
  } catch {
    return `the daemon answered ${answer.status}`;
  }
}

const TOKEN = "fatpath-token";

/** Takes the token out of the address, where it stood as #token=...: it must not stay in the history. */
export function takeToken(): void {
  const token = /^#token=([0-9a-f]+)$/.exec(location.hash)?.[1];
  if (token) {
    sessionStorage.setItem(TOKEN, token);
    history.replaceState(null, "", location.pathname);
  }
}

export function setToken(token: string): void {
  sessionStorage.setItem(TOKEN, token);
}
