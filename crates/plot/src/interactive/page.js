// SPDX-License-Identifier: MIT OR Apache-2.0
// Draws the series of a captured connection. Rust has packed them (pack.rs): of each series the times, the least and the
// greatest values, and these again of each few points on every level above. A picture never has more of them than
// head.most_drawn. Until a panel's points are read, its overview is drawn: the one level that stands before this program.
"use strict";

/** Height of the first panel of a column, and of the others. */
const HEIGHTS = [420, 180];
/** Room for the numbers of the axes. */
const LEFT = 84;
const BOTTOM = 22;
/** Of a line in one path. */
const PIECES = 100;
/** With fewer bars each has a foot and a head. */
const MOST_WITH_ENDS = 400;
/** The least range that is shown, ns. */
const LEAST_NS = 1000;

const started = performance.now();
const head = JSON.parse(document.getElementById("head").textContent);

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

async function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Reads columns: differences, zigzag, LEB128. Nearly all numbers are short, and shifts are fast. */
function reader(bytes) {
  let at = 0;
  const long = (number, unit) => {
    // Sums, not shifts: a shift has 32 bits.
    for (let byte = 0x80; byte >= 0x80; unit *= 128) {
      byte = bytes[at++];
      number += (byte & 0x7f) * unit;
    }
    return number % 2 === 0 ? number / 2 : -(number + 1) / 2;
  };
  return (count) => {
    const column = new Float64Array(count);
    let before = 0;
    for (let i = 0; i < count; i++) {
      let byte = bytes[at++];
      let number = byte & 0x7f;
      for (let shift = 7; byte >= 0x80 && shift < 28; shift += 7) {
        byte = bytes[at++];
        number |= (byte & 0x7f) << shift;
      }
      before += byte >= 0x80 ? long(number, 2 ** 28) : (number >>> 1) ^ -(number & 1);
      column[i] = before;
    }
    return column;
  };
}

function ranges(column, count) {
  const low = column(count);
  const high = column(count);
  for (let i = 0; i < count; i++) high[i] += low[i];
  return { low, high };
}

/** Reads all points of a series. */
function unpack(series, column) {
  const times = column(series.count);
  const levels = [];
  let count = series.count;
  for (let level = 0; level <= series.levels; level++) {
    // Points of a line have one value each.
    if (level === 0 && series.flat) {
      const values = column(count);
      levels.push({ low: values, high: values });
    } else levels.push(ranges(column, count));
    count = Math.ceil(count / head.bucket);
  }
  Object.assign(series, { times, levels });
}

function unpackOverview(series, column) {
  const { count, size } = series.overview;
  series.overview = { size, starts: column(count), ends: column(count), ...ranges(column, count) };
  series.shown = true;
}

/** How many of the sorted times are below. */
function below(times, time) {
  let [from, to] = [0, times.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (times[middle] < time) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** What of the overview lies between two times, a neighbour on each side, for lines. */
function coarse(series, view) {
  const { size, starts, ends, low, high } = series.overview;
  const first = Math.max(below(starts, view.from) - 1, 0);
  const end = Math.min(below(starts, view.to) + 1, starts.length);
  return { series, low, high, size, first, end, count: starts.length, start: (i) => starts[i], last: (i) => ends[i] };
}

/** The same of all points, on the level that has few enough; of the overview until they are read. */
function visible(series, view) {
  const { times, levels, count } = series;
  if (!times) return coarse(series, view);
  const from = Math.max(below(times, view.from) - 1, 0);
  const to = Math.min(below(times, view.to) + 1, count);
  let [level, size] = [0, 1];
  while ((to - from) / size > head.most_drawn && level + 1 < levels.length) {
    level++;
    size *= head.bucket;
  }
  const [first, end] = [Math.floor(from / size), Math.ceil(to / size)];
  const start = (i) => times[i * size];
  const last = (i) => times[Math.min((i + 1) * size, count) - 1];
  return { series, ...levels[level], size, first, end, count: Math.ceil(count / size), start, last };
}

function rangeOf(parts, view) {
  let [least, most] = [Infinity, -Infinity];
  for (const { series, low, high, first, end, start, last } of parts) {
    for (let i = first; i < end; i++) {
      const isOutside = last(i) < view.from || start(i) > view.to;
      if (isOutside && series.draw !== "step") continue;
      if (low[i] < least) least = low[i];
      if (high[i] > most) most = high[i];
    }
  }
  if (least > most) return [0, 1];
  const room = Math.max((most - least) * 0.04, 0.5);
  return [least - room, most + room];
}

const NAMES = {
  B: [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]],
  "b/s": [[1e9, "Gb/s"], [1e6, "Mb/s"], [1e3, "kb/s"], [1, "b/s"]],
  ns: [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]],
};

/** Round places of an axis, with one unit, and as many digits as tell them apart. */
function ticks(from, to, count, unit) {
  const rough = (to - from) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * power).find((one) => one >= rough);
  const magnitude = Math.max(Math.abs(from), Math.abs(to));
  const [size, name] = NAMES[unit].find(([one]) => magnitude >= one) ?? NAMES[unit].at(-1);
  const digits = Math.min(Math.max(0, -Math.floor(Math.log10(step / size) + 1e-9)), 12);
  const places = [];
  for (let n = Math.ceil(from / step); n * step <= to; n++) {
    places.push({ at: n * step, text: `${(n * step / size).toFixed(digits)} ${name}` });
  }
  return places;
}

function drawAxes(context, scale, panel, view) {
  const { width, height, x, y, range } = scale;
  context.fillStyle = "#444";
  context.strokeStyle = "#e4e4e4";
  context.lineWidth = 1;
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "center";
  context.beginPath();
  for (const { at, text } of ticks(view.from, view.to, Math.max(width / 130, 2), "ns")) {
    context.moveTo(x(at), 0);
    context.lineTo(x(at), height - BOTTOM);
    context.fillText(text, Math.min(Math.max(x(at), LEFT), width - 30), height - 7);
  }
  context.textAlign = "right";
  for (const { at, text } of ticks(range[0], range[1], Math.max(height / 50, 2), panel.unit)) {
    context.moveTo(LEFT, y(at));
    context.lineTo(width, y(at));
    context.fillText(text, LEFT - 5, y(at) + 4);
  }
  context.stroke();
}

/** Rectangles, not paths: a path of thousands of pieces takes a software renderer minutes. */
function drawBars(context, part, scale, isMarked) {
  const { low, high, size, first, end, start, last } = part;
  const { x, y } = scale;
  const hasEnds = size === 1 && end - first <= MOST_WITH_ENDS;
  const width = isMarked ? 2 : 1;
  for (let i = first; i < end; i++) {
    const left = x(start(i));
    const [bottom, top] = [y(low[i]), y(high[i])];
    context.fillRect(left, top, Math.max(x(last(i)) - left, width), Math.max(bottom - top, 1));
    if (hasEnds) for (const end of [bottom, top]) context.fillRect(left - 3, end - 0.5, 7, 1);
    if (isMarked && size === 1) context.fillRect(left - 2, top - 3, 6, 6);
  }
}

/** Steps are rectangles, too. */
function drawSteps(context, part, scale, to) {
  const { low, high, size, first, end, count, start } = part;
  const { x, y } = scale;
  for (let i = first; i < end; i++) {
    const isLast = i + 1 === count;
    const from = x(start(i));
    const until = x(isLast ? to : start(i + 1));
    const next = isLast ? high[i] : low[i + 1];
    const [top, bottom] = [y(Math.max(high[i], size > 1 ? high[i] : next)), y(Math.min(low[i], next))];
    if (size > 1) context.fillRect(from, top, Math.max(until - from, 1), Math.max(bottom - top, 1.5));
    else {
      context.fillRect(from, y(low[i]), until - from, 1.5);
      context.fillRect(until, top, 1.5, bottom - top + 1.5);
    }
  }
}

function drawLine(context, part, scale) {
  const { low, high, first, end, start } = part;
  const { x, y } = scale;
  context.lineWidth = 1.5;
  for (let from = first; from < end; from += PIECES) {
    context.beginPath();
    for (let i = from; i < Math.min(from + PIECES + 1, end); i++) {
      const at = x(start(i));
      context.lineTo(at, y(low[i]));
      if (high[i] !== low[i]) context.lineTo(at, y(high[i]));
    }
    context.stroke();
  }
}

function drawDots(context, part, scale) {
  const { low, high, first, end, start } = part;
  const { x, y } = scale;
  for (let i = first; i < end; i++) {
    const top = y(high[i]);
    context.fillRect(x(start(i)) - 1, top - 1, 2, y(low[i]) - top + 2);
  }
}

function drawPart(context, part, scale, view) {
  const { colour, draw } = part.series;
  context.strokeStyle = context.fillStyle = colour;
  if (draw === "bar" || draw === "marked_bar") drawBars(context, part, scale, draw === "marked_bar");
  else if (draw === "dot") drawDots(context, part, scale);
  else if (draw === "step") drawSteps(context, part, scale, view.to);
  else drawLine(context, part, scale);
}

function drawPanel(panel, view) {
  const { canvas } = panel;
  const density = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== width * density) canvas.width = width * density;
  if (canvas.height !== height * density) canvas.height = height * density;
  const parts = panel.series.filter((series) => series.shown).map((series) => visible(series, view));
  const range = rangeOf(parts, view);
  const x = (time) => LEFT + ((time - view.from) / (view.to - view.from)) * (width - LEFT);
  const y = (value) => (height - BOTTOM) * (1 - (value - range[0]) / (range[1] - range[0]));
  const scale = { width, height, range, x, y };
  panel.scale = scale;
  const context = canvas.getContext("2d");
  context.setTransform(density, 0, 0, density, 0, 0);
  context.clearRect(0, 0, width, height);
  drawAxes(context, scale, panel, view);
  context.save();
  context.beginPath();
  context.rect(LEFT, 0, width - LEFT, height - BOTTOM);
  context.clip();
  for (const part of parts) drawPart(context, part, scale, view);
  context.restore();
}

/** An element with text, which is never read as HTML. */
function element(name, text, parent, className) {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  parent?.append(made);
  return made;
}

function legend(panel, parent, redraw) {
  for (const series of panel.series) {
    const label = element("label", "", parent);
    const box = element("input", "", label);
    box.type = "checkbox";
    box.checked = true;
    box.addEventListener("change", () => {
      series.shown = box.checked;
      redraw();
    });
    const swatch = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const side of ["width", "height"]) rect.setAttribute(side, "12");
    rect.setAttribute("fill", series.colour);
    swatch.setAttribute("aria-hidden", "true");
    swatch.append(rect);
    label.append(swatch, `${series.name} (${series.count})`);
  }
}

function text(value, unit) {
  const [size, name] = NAMES[unit].find(([one]) => Math.abs(value) >= one) ?? NAMES[unit].at(-1);
  return `${Number((value / size).toPrecision(10))} ${name}`;
}

/** What is nearest to the pointer in time, of each series that is shown. */
function readout(panel, time, view) {
  const near = ((view.to - view.from) / panel.canvas.clientWidth) * 4;
  const said = [`at ${(time / 1e9).toFixed(6)} s`];
  for (const series of panel.series.filter((one) => one.shown && one.times)) {
    const after = below(series.times, time);
    const isHeld = series.draw === "step" || series.draw === "line";
    const before = Math.max(isHeld && series.times[after] !== time ? after - 1 : after, 0);
    const isNear = Math.abs(series.times[before] - time) <= near;
    if (before >= series.times.length || !(isHeld || isNear)) continue;
    const { low, high } = series.levels[0];
    const upper = high[before] === low[before] ? "" : ` to ${text(high[before], panel.unit)}`;
    said.push(`${series.name}: ${text(low[before], panel.unit)}${upper}`);
  }
  return said.join("; ");
}

/** The part of time that all panels show. */
class View {
  constructor(panels, changed) {
    const overviews = panels.flatMap((panel) => panel.series.map((series) => series.overview));
    const from = overviews.reduce((least, { starts }) => Math.min(least, starts[0]), Infinity);
    const to = overviews.reduce((most, { ends }) => Math.max(most, ends.at(-1)), -Infinity);
    const isEmpty = overviews.length === 0;
    const room = isEmpty ? 0 : Math.max((to - from) * 0.01, LEAST_NS);
    this.all = isEmpty ? { from: 0, to: LEAST_NS } : { from: from - room, to: to + room };
    Object.assign(this, this.all, { changed });
  }

  set(from, to) {
    const width = Math.min(Math.max(to - from, LEAST_NS), this.all.to - this.all.from);
    const middle = (from + to) / 2;
    this.from = Math.min(Math.max(middle - width / 2, this.all.from), this.all.to - width);
    this.to = this.from + width;
    this.changed();
  }

  /** A factor below 1 shows less. */
  zoom(factor, at = (this.from + this.to) / 2) {
    this.set(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  move(share) {
    const by = (this.to - this.from) * share;
    this.set(this.from + by, this.to + by);
  }

  reset() {
    this.set(this.all.from, this.all.to);
  }
}

function onKey(event, view) {
  const keys = {
    ArrowLeft: () => view.move(-0.2),
    ArrowRight: () => view.move(0.2),
    PageUp: () => view.move(-0.9),
    PageDown: () => view.move(0.9),
    ArrowUp: () => view.zoom(0.5),
    "+": () => view.zoom(0.5),
    "=": () => view.zoom(0.5),
    ArrowDown: () => view.zoom(2),
    "-": () => view.zoom(2),
    Home: () => view.reset(),
    0: () => view.reset(),
  };
  if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  keys[event.key]();
}

function listen(panel, view) {
  const { canvas } = panel;
  let drag;
  const timeAt = (event) => {
    const share = (event.offsetX - LEFT) / (canvas.clientWidth - LEFT);
    return view.from + share * (view.to - view.from);
  };
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      view.move(Math.sign(event.deltaX || event.deltaY) * 0.1);
    } else view.zoom(event.deltaY < 0 ? 0.7 : 1 / 0.7, timeAt(event));
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    drag = { x: event.offsetX, from: view.from, to: view.to, selects: event.shiftKey, start: timeAt(event) };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (drag && !drag.selects) {
      const by = ((drag.x - event.offsetX) / (canvas.clientWidth - LEFT)) * (drag.to - drag.from);
      view.set(drag.from + by, drag.to + by);
    }
    panel.readout.textContent = readout(panel, timeAt(event), view);
  });
  canvas.addEventListener("pointerup", (event) => {
    const to = timeAt(event);
    if (drag?.selects && Math.abs(event.offsetX - drag.x) > 3) view.set(Math.min(drag.start, to), Math.max(drag.start, to));
    drag = undefined;
  });
  canvas.addEventListener("dblclick", () => view.reset());
  canvas.addEventListener("keydown", (event) => onKey(event, view));
}

function build(column, parent) {
  const section = element("section", "", parent);
  element("h2", column.name, section);
  if (column.left_out > 0) {
    element("p", `${column.left_out} later segments are not drawn: too many to hold`, section, "left-out");
  }
  column.panels.forEach((panel, number) => {
    panel.number = number;
    element("h3", panel.title, section);
    panel.legend = element("div", "", section, "legend");
    panel.canvas = element("canvas", "", section);
    panel.canvas.style.height = `${HEIGHTS[Math.min(number, 1)]}px`;
    panel.canvas.tabIndex = 0;
    panel.canvas.setAttribute("role", "img");
    panel.canvas.setAttribute("aria-label", `${panel.title}: ${panel.series.map((one) => one.name).join(", ")}`);
    panel.readout = element("div", "", section, "readout");
  });
  return column.panels;
}

/** The columns of numbers of one block, which are read once. */
async function columnsOf(name) {
  const data = document.getElementById(`data-${name}`);
  if (!data) throw new Error("the file is cut short");
  const column = reader(await inflated(bytesOf(data.textContent)));
  data.remove();
  return column;
}

/** Until the next picture is on the screen; a page that is not seen makes none. */
const nextPicture = () => new Promise((resolve) => {
  if (document.hidden) setTimeout(resolve);
  else requestAnimationFrame(() => setTimeout(resolve));
});

/** One panel after another, with a picture in between. */
async function unpackPanels(panels, redraw) {
  if (document.readyState === "loading") {
    await new Promise((resolve) => document.addEventListener("DOMContentLoaded", resolve));
  }
  for (const panel of panels) {
    await nextPicture();
    const column = await columnsOf(panel.data);
    for (const series of panel.series) unpack(series, column);
    redraw();
  }
}

/** Gives the place that says how much has been read. */
function addHeader() {
  const top = element("header", "", document.body);
  element("h1", head.title, top);
  const since = new Date(Number(BigInt(head.first_ns) / 1000000n));
  const isDate = !Number.isNaN(since.getTime());
  element("span", `times are since ${isDate ? since.toISOString() : `${head.first_ns} ns`}`, top);
  const keys = element("span", "wheel or + - zooms, drag or ← → moves, shift and drag selects, 0 or double click shows all", top);
  keys.id = "keys";
  const reading = "Each bar is a segment, over the bytes that it carries, when it passed the capture. Below the ACK line all " +
    "is acknowledged; the edge is how far the receiver allows; what lies between the ACK line and the newest bar is outstanding.";
  element("p", reading, document.body);
  const status = element("span", "", top);
  status.setAttribute("role", "status");
  status.textContent = "all points are being read: until then what is drawn is the overview";
  return status;
}

/** Draws all panels, at most once for each picture of the screen; says in the document what it drew. */
function drawer(panels, view) {
  let isAsked = false;
  const { dataset } = document.body;
  const draw = () => {
    isAsked = false;
    const from = performance.now();
    for (const panel of panels) drawPanel(panel, view);
    Object.assign(dataset, {
      drawMs: (performance.now() - from).toFixed(1),
      fromNs: String(view.from),
      toNs: String(view.to),
      draws: String(Number(dataset.draws ?? 0) + 1),
    });
    dataset.openMs ??= (performance.now() - started).toFixed(1);
  };
  return () => {
    if (!isAsked) requestAnimationFrame(draw);
    isAsked = true;
  };
}

async function main() {
  const status = addHeader();
  const parent = element("main", "", document.body);
  parent.id = "columns";
  const panels = head.columns.flatMap((one) => build(one, parent));
  const column = await columnsOf("overview");
  for (const panel of panels) panel.series.forEach((series) => unpackOverview(series, column));
  const view = new View(panels, () => redraw());
  const redraw = drawer(panels, view);
  for (const panel of panels) {
    legend(panel, panel.legend, redraw);
    listen(panel, view);
  }
  document.addEventListener("keydown", (event) => {
    if (event.target === document.body) onKey(event, view);
  });
  new ResizeObserver(redraw).observe(parent);
  redraw();
  try {
    await unpackPanels(panels.toSorted((a, b) => a.number - b.number), redraw);
    status.textContent = "all points are read";
  } catch (error) {
    status.textContent = `not all points can be read: what is drawn is in part the overview (${error})`;
    status.className = "left-out";
  }
  await nextPicture();
  document.body.dataset.wholeMs = (performance.now() - started).toFixed(1);
}

main().catch((error) => element("p", `This page cannot be drawn: ${error}`, document.body, "left-out"));
