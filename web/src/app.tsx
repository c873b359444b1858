// SPDX-License-Identifier: MIT OR Apache-2.0
// What is shown, by the address: #/ the flows, #/paths what was learned of paths, #/mesh hosts that test one another,
// #/flow/COOKIE, #/path/PREFIX, #/why/FINDING.

import { useEffect, useState } from "preact/hooks";
import type { JSX } from "preact";
import { setToken } from "./api";
import { ExplanationPage } from "./explanation";
import { FlowPage } from "./flow";
import { useHash, useStore } from "./hooks";
import { KeysDialog, openKeys } from "./keys";
import { MeshPage } from "./mesh";
import { PathPage } from "./path";
import { PathsPage } from "./paths";
import type { Connection, Store } from "./store";
import { TablePage } from "./table";
import { setTheme, theme, THEMES } from "./theme";
import { digits, duration } from "./format";

export function App({ store }: { store: Store }): JSX.Element {
  useStore(store);
  const hash = useHash();
  useEffect(() => {
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  return (
    <>
      <Header store={store} hash={hash} />
      <KeysDialog />
      <main>{store.connection.state === "token" ? <AskToken store={store} /> : shown(hash, store)}</main>
    </>
  );
}

/** The addresses of the tables. */
const FLOWS = "#/";
const PATHS = "#/paths";
const MESH = "#/mesh";

/** The table that was shown last. */
let table = FLOWS;

function shown(hash: string, store: Store): JSX.Element {
  const [, kind, name] = hash.split("/", 3);
  const rest = decodeURIComponent(hash.split("/").slice(2).join("/"));
  if (kind === "flow" && name && /^\d+$/.test(name)) return <FlowPage key={name} cookie={name} />;
  if (kind === "path" && rest) return <PathPage key={rest} prefix={rest} store={store} />;
  if (kind === "why" && name && /^FP-[A-Z-]+$/.test(name)) return <ExplanationPage key={name} id={name} />;
  if (kind === "mesh") return <MeshPage />;
  table = kind === "paths" ? PATHS : FLOWS;
  return table === PATHS ? <PathsPage /> : <TablePage store={store} />;
}

/** Escape leads back to the table, "/" into its filter, "p" to the learned paths, "m" to the mesh, "?" shows the keys. */
function onKey(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const target = event.target instanceof HTMLElement ? event.target : null;
  const isTyping = target?.matches("input, select, textarea") ?? false;
  // What is open above the page has its own keys.
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "?" && !isTyping) openKeys();
  if (event.key === "Escape") {
    if (isTyping) target?.blur();
    else if (location.hash.length > 2) location.hash = location.hash === table ? FLOWS : table;
  }
  if (event.key === "p" && !isTyping) location.hash = PATHS;
  if (event.key === "m" && !isTyping) location.hash = MESH;
  if (event.key === "/" && !isTyping) {
    event.preventDefault();
    const focus = (): void => document.getElementById("filter")?.focus();
    // At once where the table stands: what is typed next may come before the next frame.
    if (document.getElementById("filter")) return focus();
    location.hash = table;
    requestAnimationFrame(focus);
  }
}

function Header({ store, hash }: { store: Store; hash: string }): JSX.Element {
  const lost = Object.entries(store.lost).filter(([, count]) => count > 0);
  return (
    <header>
      <a class="name" href={FLOWS}>
        fatpath
      </a>
      <nav aria-label="Tables">
        <a href={FLOWS} aria-current={hash.length <= 2 ? "page" : undefined}>
          flows
        </a>{" "}
        <a href={PATHS} aria-current={hash === PATHS ? "page" : undefined} title="Learned paths ( p )">
          paths
        </a>{" "}
        <a href={MESH} aria-current={hash === MESH ? "page" : undefined} title="Hosts that test one another ( m )">
          mesh
        </a>
      </nav>
      <span class={`state ${store.connection.state}`} role="status">
        {said(store.connection)}
      </span>
      {store.late_ms > 0 && (
        <span class="note">this browser is slow: it was behind by {duration(store.late_ms / 1000)}</span>
      )}
      {lost.map(([what, count]) => (
        <span class="note" key={what}>
          {digits(count)} {what.replaceAll("_", " ")}
        </span>
      ))}
      <button type="button" class="keys" onClick={openKeys} title="Keys ( ? )">
        keys
      </button>
      <ThemeChoice />
    </header>
  );
}

function said(connection: Connection): string {
  switch (connection.state) {
    case "live":
      return "live";
    case "connecting":
      return "connecting …";
    case "token":
      return "locked";
    case "broken":
      return `${connection.why}; asking again`;
  }
}

function ThemeChoice(): JSX.Element {
  const [chosen, setChosen] = useState(theme());
  return (
    <select
      aria-label="Colours"
      value={chosen}
      onChange={(event) => {
        const next = THEMES.find((name) => name === event.currentTarget.value) ?? "auto";
        setTheme(next);
        setChosen(next);
      }}
    >
      {THEMES.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

/** The address was opened without the token, or with one of before the host's boot. */
function AskToken({ store }: { store: Store }): JSX.Element {
  const [text, setText] = useState("");
  const enter = (event: Event): void => {
    event.preventDefault();
    setToken(text.trim());
    store.connection = { state: "connecting" };
    void store.follow();
  };
  return (
    <form class="token" onSubmit={enter}>
      <h1>Token</h1>
      <p>
        On the host, <code>fatpath page</code> prints, for root, the address of this page with its token.
      </p>
      <label>
        Token <input type="password" value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>{" "}
      <button>Open</button>
    </form>
  );
}
