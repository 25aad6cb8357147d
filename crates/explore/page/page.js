// The page: state, settings, and runs that are drawn while their data arrives.

import { Charts, Data, forget, greatest, share } from "./charts.js";
import * as controls from "./controls.js";
import { draw as drawLadder } from "./ladder.js";
import { choice, plain, read, write } from "./state.js";
import { digits, quantity, readable } from "./words.js";

const NAMES = ["A", "B"];
// Time for which a run may continue while a slider moves, ms: a drawing of an earlier value is better than none.
const PATIENCE = 250;
// Interval at which a long run is drawn, and time after the last move at which it is described in words, ms.
const DRAWN_EVERY = 120;
const TOLD_AFTER = 700;
// Initially shown time of a ladder, seconds.
const LADDER = 2;
// Time after which a running run can be stopped, ms.
const STOPPABLE_AFTER = 400;

const find = (id) => document.getElementById(id);
const state = read(location.hash);
let spec;
const panes = [];

const shown = () => panes.slice(0, state.compare ? 2 : 1);

async function ask(path, body, signal) {
  const options = body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal };
  const answer = await fetch(path, options);
  if (!answer.ok) throw new Error((await answer.text()).trim() || `${answer.status}`);
  return answer;
}

// The JSON lines of a response, as they arrive.
async function* lines(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    for (const part of parts) if (part) yield JSON.parse(part);
  }
}

let remembered;
function remember() {
  clearTimeout(remembered);
  remembered = setTimeout(() => history.replaceState(null, "", write(state)), 250);
}

function notice(text) {
  find("notice").textContent = text;
}

// One of the two settings.
class Pane {
  constructor(number) {
    this.number = number;
    this.root = find("pane").content.cloneNode(true).firstElementChild;
    this.root.setAttribute("aria-label", `Setting ${NAMES[number]}`);
    const heading = this.part(".name");
    heading.textContent = `Setting ${NAMES[number]}`;
    find("panes").append(this.root);
    this.charts = new Charts(this.part(".charts"), `Setting ${NAMES[number]}`, showTime);
    this.listen();
  }

  get state() {
    return state.panes[this.number];
  }

  part(selector) {
    return this.root.querySelector(selector);
  }

  listen() {
    const on = (selector, event, act) => this.part(selector).addEventListener(event, act);
    on(".experiment select", "change", (event) => this.choose({ experiment: event.target.selectedIndex, point: 0 }));
    on(".point select", "change", (event) => this.choose({ point: event.target.selectedIndex }));
    on(".seed input", "change", (event) => {
      const seed = Number(event.target.value);
      this.seed(Number.isSafeInteger(seed) && seed >= 0 ? seed : this.state.seed);
    });
    on(".next", "click", () => this.seed(this.state.seed + 1));
    on(".other", "submit", (event) => {
      event.preventDefault();
      const field = this.part(".other input");
      const at = field.value.indexOf("=");
      if (at > 0) {
        this.moved(field.value.slice(0, at).trim(), field.value.slice(at + 1).trim());
        field.value = "";
        this.fill();
      } else {
        this.refuse(`found ${JSON.stringify(field.value)}; write key=value, as for --set`);
      }
    });
    on(".reset", "click", () => {
      Object.assign(this.state, { set: {}, seed: 1 });
      this.fill();
      this.run(performance.now());
    });
    on(".stop", "click", () => {
      this.running?.abort.abort();
      this.ended();
      this.tell("Stopped. The charts show how far it came.");
    });
    on(".save-spec", "click", () => save(`${spec.name}-${NAMES[this.number]}.toml`, new Blob([this.toml ?? ""])));
    on(".save-samples", "click", () => this.saveSamples());
    on(".save-measures", "click", () => save(`${spec.name}-${NAMES[this.number]}-measures.csv`, new Blob([measuresCsv(this.measures)])));
    on(".ladder", "toggle", (event) => {
      state.ladder.open = event.target.open;
      for (const pane of panes) pane.part(".ladder").open = event.target.open;
      if (event.target.open) this.climb();
      remember();
    });
    on(".map", "toggle", (event) => {
      state.map = event.target.open;
      for (const pane of panes) pane.part(".map").open = event.target.open;
      if (event.target.open) this.chart();
      remember();
    });
    on(".ladder select", "change", (event) => moveLadder({ flow: event.target.value }));
    for (const end of [".from", ".to"]) {
      on(`.ladder ${end}`, "change", () => {
        const window = [".from", ".to"].map((it) => Number(this.part(`.ladder ${it}`).value));
        if (window.every(Number.isFinite) && window[0] < window[1]) moveLadder({ window });
        else this.climb();
      });
    }
    for (const button of this.root.querySelectorAll("[data-move]")) {
      const [by, zoom] = button.dataset.move.split(",").map(Number);
      button.addEventListener("click", () => {
        const [from, to] = state.ladder.window ?? this.ladderWindow();
        const [middle, half] = [(from + to) / 2 + by * (to - from), ((to - from) / 2) * zoom];
        const begin = Math.max(0, middle - half);
        moveLadder({ window: [begin, begin + 2 * half].map((time) => Number(time.toFixed(6))) });
      });
    }
  }

  // Another experiment or point has other controls; changed values are kept if they still have a control.
  async choose(chosen) {
    Object.assign(this.state, chosen);
    await this.load();
    const kept = Object.entries(this.state.set).filter(([key]) => this.controls.some((control) => control.key === key));
    this.state.set = Object.fromEntries(kept);
    forget();
    this.fill();
    this.run(performance.now());
  }

  seed(seed) {
    this.state.seed = seed;
    this.part(".seed input").value = seed;
    this.run(performance.now());
  }

  async load() {
    const { experiments } = spec;
    if (!experiments[this.state.experiment]) Object.assign(this.state, { experiment: 0, point: 0 });
    const points = experiments[this.state.experiment].points;
    if (!points[this.state.point] && this.state.point !== 0) this.state.point = 0;
    const options = (selector, texts, at) => {
      const list = this.part(selector);
      list.replaceChildren(...texts.map((text, number) => new Option(text, number, false, number === at)));
      list.closest("label").hidden = texts.length < 2;
    };
    const named = experiments.map(({ id, title }) => (title ? `${id}: ${title}` : id));
    options(".experiment select", named, this.state.experiment);
    options(".point select", points, this.state.point);
    this.controls = await this.asked([]);
    for (const control of this.controls) if (control.key in this.state.set) await this.recentre(control, this.state.set[control.key]);
  }

  async asked(set) {
    return (await ask("controls", { ...choice(this.state), set })).json();
  }

  // Gives a slider steps around a value that is not one of its steps.
  async recentre(control, value) {
    if (control.kind !== "slider" || control.stops.includes(value)) return;
    const moved = await this.asked([[control.key, value]]).catch(() => []);
    const found = moved.find(({ key, kind }) => key === control.key && kind === "slider");
    if (found) control.stops = found.stops;
  }

  fill() {
    this.part(".seed input").value = this.state.seed;
    controls.build(this.part(".controls"), this.controls, this.state.set, NAMES[this.number], (key, value) => this.moved(key, value), (control, value) => this.recentre(control, value));
    this.list();
  }

  // The changed values that have no control.
  list() {
    const others = Object.keys(this.state.set).filter((key) => !this.controls.some((control) => control.key === key));
    this.part(".set").replaceChildren(...others.map((key) => {
      const item = document.createElement("li");
      const drop = document.createElement("button");
      Object.assign(drop, { type: "button", textContent: "Drop" });
      drop.setAttribute("aria-label", `Drop ${key}`);
      drop.addEventListener("click", () => this.moved(key, undefined));
      item.append(`${key}=${this.state.set[key]} `, drop);
      return item;
    }));
  }

  moved(key, value) {
    if (value === undefined) delete this.state.set[key];
    else this.state.set[key] = value;
    this.latest = key;
    this.list();
    this.run(window.event?.timeStamp || performance.now());
  }

  refuse(text) {
    const place = this.part(".problem");
    place.textContent = text;
    place.hidden = text === "";
    this.part(".charts").classList.toggle("stale", text !== "");
    controls.blame(this.part(".controls"), text === "" ? null : this.latest);
  }

  // Runs the current setting. The next run waits while the present one has just started, so that it is drawn while a slider moves.
  run(since) {
    remember();
    this.since ??= since;
    if (this.running && performance.now() - this.running.begun < PATIENCE) {
      this.again = true;
      clearTimeout(this.late);
      this.late = setTimeout(() => this.again && this.start(), PATIENCE);
      return;
    }
    this.start();
  }

  async start() {
    this.running?.abort.abort();
    clearTimeout(this.late);
    const run = { abort: new AbortController(), begun: performance.now(), since: this.since ?? performance.now(), data: null, drawn: 0 };
    this.running = run;
    this.part(".charts").setAttribute("aria-busy", "true");
    setTimeout(() => { if (this.running === run) this.part(".stop").hidden = false; }, STOPPABLE_AFTER);
    this.since = undefined;
    this.again = false;
    try {
      const answer = await ask("run", { pane: this.number, choice: choice(this.state), window: state.window }, run.abort.signal);
      for await (const line of lines(answer)) {
        if (this.running !== run) return;
        this.take(run, line);
      }
    } catch (error) {
      if (error.name === "AbortError") return;
      this.refuse(`The server does not answer: ${error.message}`);
    }
    if (this.running === run) {
      this.ended();
      if (this.again) this.start();
    }
  }

  ended() {
    this.running = null;
    this.part(".charts").removeAttribute("aria-busy");
    this.part(".stop").hidden = true;
    this.progress(0);
  }

  take(run, line) {
    if (line.is === "begin") {
      run.data = new Data(line.window);
      run.duration = line.duration;
      this.duration = line.duration;
      this.toml = line.toml;
      this.flows = line.flows;
    } else if (line.is === "points") {
      run.data.add(line.lines, line.at);
      const now = performance.now();
      // A run whose data arrives at once is drawn once, when it is complete.
      if (run.data.series.size && line.at < run.duration * 0.97 && now - Math.max(run.drawn, run.begun) > DRAWN_EVERY) {
        this.progress(line.at / run.duration);
        this.show(run);
        run.drawn = performance.now();
      }
    } else if (line.is === "end") {
      this.measures = line.measures;
      run.data.add([], run.duration);
      // A window that the user has chosen is kept.
      if (!state.window) {
        run.data.end();
        this.data = run.data;
        share(shown().map((pane) => pane.data).filter(Boolean));
      }
      this.show(run);
      this.finish(run, line);
    } else if (line.is === "refused" || line.is === "failed") {
      this.refuse(line.text.trim());
      this.tell("");
    } else if (line.is === "superseded") {
      this.tell("Another window of this page runs this setting.");
    }
  }

  // Draws the data of a run, and the other setting if the common axes change.
  show(run) {
    this.refuse("");
    this.data = run.data;
    const most = greatest(shown().map((pane) => pane.data).filter(Boolean));
    this.charts.draw(this.data, most);
    const others = shown().filter((pane) => pane !== this && pane.data && pane.charts.differs(most, pane.data));
    for (const other of others) setTimeout(() => other.charts.draw(other.data, greatest(shown().map((pane) => pane.data))));
  }

  finish(run, line) {
    const from = run.since;
    requestAnimationFrame(() => setTimeout(() => {
      performance.measure("redraw", { start: from, end: performance.now(), detail: { pane: this.number, took: line.took } });
    }));
    if (find("to").value === "" || !state.window) fillTime();
    this.part(".toml pre").textContent = this.toml;
    showMeasures();
    if (state.ladder.open) this.climb();
    if (state.map) this.chart();
    clearTimeout(this.telling);
    this.telling = setTimeout(() => this.tell(this.summary(line)), TOLD_AFTER);
  }

  summary(line) {
    const first = line.measures.slice(0, 4).map(({ series, metric, value, unit }) => `${readable(metric)} of ${series} ${quantity(value, unit)}`);
    const failed = line.failures.length ? ` Failed: ${line.failures.join("; ")}.` : "";
    const others = line.measures.length > 4 ? `; ${line.measures.length - 4} more in the table of measures` : "";
    return `${digits(this.duration, 4)} s simulated in ${quantity(line.took, "s")}, ${line.events} events. ${first.join("; ")}${others}.${failed}`;
  }

  tell(text) {
    this.part(".summary").textContent = text;
  }

  progress(share) {
    this.part(".progress div").style.width = `${100 * share}%`;
  }

  async saveSamples() {
    try {
      const answer = await ask("samples.csv", { pane: this.number, choice: choice(this.state) });
      save(`${spec.name}-${NAMES[this.number]}-samples.csv`, await answer.blob());
    } catch (error) {
      this.refuse(`The samples cannot be saved: ${error.message}`);
    }
  }

  // Draws the satellites, the load of their links and the paths of flows at successive times.
  async chart() {
    if (!spec.map || !this.data) return;
    this.charting?.abort();
    this.charting = new AbortController();
    const say = (text) => { this.part(".drawing").textContent = text; };
    say("The run is repeated for the map.");
    try {
      const answer = await ask("map", { pane: this.number, choice: choice(this.state), window: state.window }, this.charting.signal);
      const text = await answer.text();
      const drawn = text.startsWith("<svg") && new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
      if (drawn) {
        const size = ["width", "height"].map((it) => drawn.getAttribute(it));
        if (!drawn.hasAttribute("viewBox")) drawn.setAttribute("viewBox", `0 0 ${size.join(" ")}`);
        this.part(".sky").replaceChildren(document.importNode(drawn, true));
      }
      say(drawn ? "Ten times in turn, a second each. The pointer over the map stops it." : text ? JSON.parse(text).text ?? "" : "The answer is empty.");
    } catch (error) {
      if (error.name !== "AbortError") say(error.message);
    }
  }

  ladderWindow() {
    const from = state.window?.[0] ?? 0;
    return [from, Math.min(from + LADDER, state.window?.[1] ?? this.duration)];
  }

  // Shows the packets in the window of the ladder.
  async climb() {
    if (!this.flows) return;
    const list = this.part(".ladder select");
    const names = this.flows.map(([name, member]) => (this.flows.filter(([it]) => it === name).length > 1 ? `${name}[${member}]` : name));
    const at = Math.max(0, names.indexOf(state.ladder.flow));
    list.replaceChildren(...names.map((name, number) => new Option(name, name, false, number === at)));
    const window = state.ladder.window ?? this.ladderWindow();
    [".from", ".to"].forEach((end, number) => { this.part(`.ladder ${end}`).value = digits(window[number], 7); });
    if (!names.length) return;
    this.climbing?.abort();
    this.climbing = new AbortController();
    const [flow, member] = this.flows[at];
    try {
      const answer = await ask("ladder", { pane: this.number, choice: choice(this.state), flow, member, window }, this.climbing.signal);
      for await (const told of lines(answer)) {
        const drawn = told.is === "ladder";
        const words = drawn ? drawLadder(this.part(".picture"), told, names[at], (dragged) => moveLadder({ window: dragged })) : told.text;
        clearTimeout(this.tellingLadder);
        this.tellingLadder = setTimeout(() => { this.part(".told").textContent = words ?? ""; }, TOLD_AFTER);
      }
    } catch (error) {
      if (error.name !== "AbortError") this.part(".told").textContent = error.message;
    }
  }
}

function moveLadder(change) {
  Object.assign(state.ladder, change);
  remember();
  for (const pane of shown()) pane.climb();
}

function save(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function measuresCsv(measures) {
  const rows = (measures ?? []).map(({ series, metric, value, unit }) => `${series},${metric},${value},${unit}\n`);
  return `series,metric,value,unit\n${rows.join("")}`;
}

// The shown time in both settings; null for the whole run.
function showTime(window) {
  const rounded = window?.map((time) => Number(Math.max(0, time).toFixed(4)));
  state.window = rounded && rounded[0] < rounded[1] ? rounded : null;
  fillTime();
  for (const pane of shown()) pane.run(performance.now());
}

function fillTime() {
  const [from, to] = state.window ?? [0, panes[0].duration ?? ""];
  find("from").value = from;
  find("to").value = to;
}

// The measures of both settings, side by side.
function showMeasures() {
  const runs = shown().filter((pane) => pane.measures);
  const keys = new Map();
  for (const pane of runs) for (const it of pane.measures) keys.set(`${it.metric} ${it.series}`, it);
  const cell = (text, tag = "td") => Object.assign(document.createElement(tag), { textContent: text });
  const row = (cells) => {
    const made = document.createElement("tr");
    made.append(...cells);
    return made;
  };
  const head = document.createElement("thead");
  const scoped = (made, scope) => {
    made.scope = scope;
    return made;
  };
  const names = runs.map((pane) => NAMES[pane.number]);
  head.append(row(["Measure", ...names, ...(runs.length > 1 ? ["B to A"] : [])].map((text) => scoped(cell(text, "th"), "col"))));
  const body = document.createElement("tbody");
  for (const { series, metric } of keys.values()) {
    const found = runs.map((pane) => pane.measures.find((it) => it.series === series && it.metric === metric));
    const cells = found.map((it) => cell(it ? quantity(it.value, it.unit) : ""));
    if (runs.length > 1) {
      const [a, b] = found.map((it) => it?.value);
      const change = 100 * (b / a - 1);
      cells.push(cell(Number.isFinite(change) ? `${change > 0 ? "+" : ""}${change.toFixed(1)} %` : ""));
    }
    body.append(row([scoped(cell(`${readable(metric)}, ${series}`, "th"), "row"), ...cells]));
  }
  find("measures").replaceChildren(head, body);
}

async function compare(on) {
  state.compare = on;
  document.body.classList.toggle("two", on);
  find("compare").checked = on;
  if (on && !panes[1]) panes.push(new Pane(1));
  for (const pane of panes) pane.root.hidden = !shown().includes(pane);
  for (const pane of panes) pane.part(".map").hidden = !spec.map;
  panes[0].part(".name").hidden = !on;
  if (on) {
    await panes[1].load();
    panes[1].fill();
    panes[1].part(".ladder").open = state.ladder.open;
    panes[1].part(".map").open = state.map;
    panes[1].run(performance.now());
  }
  if (panes[0].data) {
    panes[0].charts.resize();
    panes[0].charts.draw(panes[0].data, greatest(shown().map((pane) => pane.data).filter(Boolean)));
    showMeasures();
    if (state.ladder.open) panes[0].climb();
  }
  remember();
}

function redrawAll() {
  for (const pane of shown()) {
    if (pane.data) pane.charts.draw(pane.data, greatest(shown().map((it) => it.data).filter(Boolean)));
    if (state.ladder.open) pane.climb();
  }
}

async function begin() {
  spec = await (await ask("spec")).json();
  document.title = `${spec.name} · anabranch explore`;
  find("title").textContent = spec.title || spec.name;
  find("about").textContent = spec.title ? spec.name : "";
  if (state.spec && state.spec !== spec.name) {
    notice(`This link was made for ${state.spec}; this is ${spec.name}, as its spec says.`);
    Object.assign(state, { panes: [plain(), plain()], window: null, compare: false });
  }
  state.spec = spec.name;
  panes.push(new Pane(0));
  await panes[0].load();
  panes[0].fill();
  panes[0].part(".ladder").open = state.ladder.open;
  panes[0].part(".map").open = state.map;
  panes[0].run(performance.now());
  await compare(state.compare);
  find("compare").addEventListener("change", (event) => {
    if (event.target.checked) state.panes[1] = structuredClone(state.panes[0]);
    compare(event.target.checked);
  });
  find("window").addEventListener("submit", (event) => {
    event.preventDefault();
    const window = ["from", "to"].map((id) => Number(find(id).value));
    showTime(window.every(Number.isFinite) ? window : null);
  });
  find("whole").addEventListener("click", () => showTime(null));
  find("link").addEventListener("click", async () => {
    const link = location.href.replace(/#.*$/, "") + write(state);
    history.replaceState(null, "", link);
    try {
      await navigator.clipboard.writeText(link);
      notice("The link is copied. It holds all values, and opens while this server runs; the part behind # can be put behind another address.");
    } catch {
      notice("The address of this page is the link: it holds all values.");
    }
  });
  find("skip").addEventListener("click", () => {
    const charts = panes[0].part(".charts");
    charts.tabIndex = -1;
    charts.focus();
    charts.scrollIntoView();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
}

begin().catch((error) => notice(`The page cannot begin: ${error.message}`));
