// SPDX-License-Identifier: MIT OR Apache-2.0
// Why a flow is slow: the finding, its numbers, what it would gain, what cures it.

import { useState } from "preact/hooks";
import type { ComponentChildren, JSX } from "preact";
import type { Finding, Shares } from "./api";
import { FactList } from "./facts";
import { bytes, digits, milliseconds, percent, rate, si, times } from "./format";

export function Findings({ findings, flows }: { findings: Finding[]; flows?: Map<string, number> }): JSX.Element {
  if (findings.length === 0) return <p class="empty">Nothing is found that holds it back without need.</p>;
  return (
    <ul class="findings">
      {findings.map((finding) => (
        <FindingCard key={finding.id} finding={finding} flows={flows?.get(finding.id)} />
      ))}
    </ul>
  );
}

function FindingCard({ finding, flows }: { finding: Finding; flows: number | undefined }): JSX.Element {
  return (
    <li class={`finding ${finding.severity}`}>
      <h3>
        {finding.title}{" "}
        <WhyLink id={finding.id}>
          <code>{finding.id}</code>
        </WhyLink>
      </h3>
      <p>
        <span class={`badge ${finding.severity}`}>{finding.severity}</span>
        {flows !== undefined && <> {flows === 1 ? "1 flow." : `${flows} flows.`}</>}
        {finding.gain !== null && <> Cured, about {times(finding.gain)} the goodput.</>}
      </p>
      <FactList facts={finding.evidence.map(({ name, value, unit }) => [name, withUnit(value, unit)])} />
      {finding.cure !== null && <Cure text={finding.cure} />}
    </li>
  );
}

interface WhyLinkProps {
  id: string;
  children: ComponentChildren;
  look?: string;
  title?: string;
  /** The row opens something else, and its keys are the table's. */
  isInRow?: boolean;
}

/** Leads to what a finding means. */
export function WhyLink({ id, children, look, title = "What it means", isInRow = false }: WhyLinkProps): JSX.Element {
  const row = isInRow ? { tabIndex: -1, onClick: (event: Event): void => event.stopPropagation() } : {};
  return (
    <a href={`#/why/${id}`} class={look} title={title} {...row}>
      {children}
    </a>
  );
}

/** A text in which each finding that it names leads to what it means. */
export function Explained({ text }: { text: string }): JSX.Element {
  const parts = text.split(/(FP-[A-Z-]*[A-Z])/);
  return (
    <>
      {parts.map((part, i) =>
        i % 2 === 1 ? (
          <WhyLink key={i} id={part}>
            {part}
          </WhyLink>
        ) : (
          part
        ),
      )}
    </>
  );
}

/** Numbers as everywhere on the page; a unit that is not known stays as it came. */
function withUnit(value: number, unit: string): string {
  switch (unit) {
    case "us":
    case "µs":
      return milliseconds(value);
    case "b/s":
    case "bps":
      return rate(value);
    case "bytes":
    case "B":
      return bytes(value);
    case "share":
      return percent(value);
    case "":
      return digits(value);
    default:
      return value >= 10_000 ? si(value, ` ${unit}`) : `${digits(value)} ${unit}`;
  }
}

function Cure({ text }: { text: string }): JSX.Element {
  const [isCopied, setCopied] = useState(false);
  const copy = (): void => {
    void navigator.clipboard.writeText(text).then(() => setCopied(true));
  };
  return (
    <div class="cure">
      <span>Cure</span>
      <pre>{text}</pre>
      <button type="button" onClick={copy}>
        {isCopied ? "copied" : "copy"}
      </button>
    </div>
  );
}

const SHARES: [keyof Shares, string][] = [
  ["application", "application"],
  ["send_buffer", "send buffer"],
  ["receiver", "receiver"],
  ["timeout", "timeout"],
  ["network", "network"],
];

/** What held the sender back, as one bar. */
export function ShareBar({ shares }: { shares: Shares }): JSX.Element {
  const parts = SHARES.map(([key, name]) => ({ key, name, share: shares[key] })).filter(({ share }) => share > 0.005);
  const text = parts.map(({ name, share }) => `${name} ${percent(share)}`).join(", ");
  return (
    <div class="shares">
      <div class="bar" role="img" aria-label={`Held back by: ${text || "nothing yet"}`}>
        {parts.map(({ key, share }) => (
          <span key={key} class={key} style={{ flexGrow: share }} />
        ))}
      </div>
      <ul>
        {parts.map(({ key, name, share }) => (
          <li key={key}>
            <i class={key} /> {name} {percent(share)}
          </li>
        ))}
      </ul>
    </div>
  );
}
