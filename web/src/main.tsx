// SPDX-License-Identifier: MIT OR Apache-2.0
// The page: tables of all flows and of learned paths, one flow, one path. Start reading at App in app.tsx.

import { render } from "preact";
import { takeToken } from "./api";
import { App } from "./app";
import { Store } from "./store";
import { applyTheme } from "./theme";

takeToken();
applyTheme();
const store = new Store();
render(<App store={store} />, document.body);
void store.follow();
