// The four charts of a run: congestion window, queue, sequence, goodput.

import { digits, member, readable, scale } from "./words.js";

const CHARTS = [
  { id: "cwnd", title: "Congestion window", lines: "cwnd", marks: ["fast_retransmit", "timeout"], shape: "hv", holds: true },
  { id: "queue", title: "Queue", lines: "queue", marks: ["drop"], shape: "hv", holds: true },
  { id: "sequence", title: "Sequence", lines: "cumulative_ack", marks: ["retransmitted"], shape: "hv", holds: true, own: true },
  { id: "goodput", title: "Goodput", lines: "goodput", marks: [], shape: "hv" },
];
// Marks: name, drawing, and sign in a caption.
const MARKS = {
  fast_retransmit: ["fast retransmit", "triangle-down", "▼"],
  timeout: ["timeout", "x", "✖"],
  drop: ["dropped", "x", "✖"],
  retransmitted: ["retransmitted", "circle-open", "○"],
};
const DASHES = ["solid", "dash", "dot", "dashdot"];
const COLOURS = 8;
// Maximum number of lines in a chart; the lines with the highest values are drawn.
const MAX_LINES = 8;

const CONFIG = { displayModeBar: false, displaylogo: false, responsive: true, doubleClick: "reset", showTips: false };

// Flows and links, so that each has the same colour in both settings.
const known = { flow: new Map(), link: new Map() };

function place(kind, { entity, member: number }) {
  const name = `${entity} ${number}`;
  if (!known[kind].has(name)) known[kind].set(name, known[kind].size);
  return known[kind].get(name);
}

// Assigns the colours again, for another world.
export function forget() {
  for (const kind of Object.values(known)) kind.clear();
}

export function colours() {
  const style = getComputedStyle(document.documentElement);
  const named = (name) => style.getPropertyValue(name).trim();
  return {
    ink: named("--ink"), faint: named("--faint"), grid: named("--grid"), paper: named("--paper"), bad: named("--bad"), panel: named("--panel"),
    lines: Array.from({ length: COLOURS }, (_, at) => named(`--c${at}`)),
  };
}

// Share of a run that must contain events so that the chart shows the run to its end.
const QUIET = 0.8;

// Data that a run has sent so far.
export class Data {
  constructor(window) {
    this.window = window;
    this.series = new Map();
    // Simulated time that the run has reached.
    this.until = window[0];
  }

  // Adds lines of points from the server, and the time that the run has reached.
  add(lines, until) {
    this.until = Math.min(until, this.window[1]);
    for (const line of lines) {
      const key = `${line.probe} ${line.entity} ${line.member} ${line.index}`;
      const series = this.series.get(key);
      if (series) {
        series.x.push(...line.x);
        series.y.push(...line.y);
      } else {
        this.series.set(key, { ...line, key });
      }
    }
  }

  // Ends the axis at the last recorded point if the run continues for much longer, as with a transfer of a second in a run of a minute.
  end() {
    const last = [...this.series.values()].reduce((last, { x }) => Math.max(last, x[x.length - 1] ?? 0), this.window[0]);
    const length = last - this.window[0];
    if (length <= 0 || length > QUIET * (this.window[1] - this.window[0])) return;
    this.window = [this.window[0], this.window[0] + 1.05 * length];
    this.until = Math.min(this.until, this.window[1]);
  }

  of(probe) {
    return [...this.series.values()].filter((series) => series.probe === probe);
  }

  // The lines of a chart.
  lines(chart) {
    const lines = this.of(chart.lines);
    if (lines.length <= MAX_LINES) return lines;
    const peak = ({ y }) => y.reduce((a, b) => Math.max(a, b), 0);
    const highest = new Set([...lines].sort((a, b) => peak(b) - peak(a)).slice(0, MAX_LINES));
    return lines.filter((line) => highest.has(line));
  }

  // The greatest value of the lines of a chart.
  most(chart) {
    return this.of(chart.lines).reduce((most, { y }) => y.reduce((a, b) => Math.max(a, b), most), 0);
  }
}

// The value that a line has at a time.
function valueAt(line, time) {
  let [low, high] = [0, line.x.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (line.x[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return line.y[Math.max(0, low - 1)] ?? 0;
}

// The points of a line, in new arrays, because plotly.js regards the arrays that it has drawn as unchanged. A value that holds until the
// next change is continued to the time that the run has reached.
function points(chart, line, until, size) {
  const [x, y] = [[...line.x], line.y.map((value) => value / size)];
  if (chart.holds && x.length && x[x.length - 1] < until) {
    x.push(until);
    y.push(y[y.length - 1]);
  }
  return { x, y };
}

function traces(chart, data, size, unit, look) {
  const kind = chart.id === "queue" ? "link" : "flow";
  const lines = data.lines(chart);
  const paths = (line) => lines.some((it) => it.entity === line.entity && it.index !== line.index);
  const alone = (line) => !lines.some((it) => it.entity === line.entity && it.member !== line.member);
  const made = lines.map((line) => {
    const at = place(kind, line);
    const name = member(line.entity, line.member, alone(line)) + (paths(line) ? `, path ${line.index}` : "");
    const dash = DASHES[((line.index > 0 ? line.index : 0) + Math.floor(at / COLOURS) + (at % 2)) % DASHES.length];
    return {
      type: "scatter", mode: "lines", name, legendgroup: name,
      ...points(chart, line, data.until, size),
      line: { color: look.lines[at % COLOURS], width: 1.6, dash, shape: chart.shape, simplify: false },
      hovertemplate: `%{x:.4~g} s: %{y:.4~g} ${unit}<extra>${name}</extra>`,
    };
  });
  for (const probe of chart.marks) {
    for (const marks of data.of(probe)) {
      const line = lines.find((it) => it.entity === marks.entity && it.member === marks.member);
      if (!line) continue;
      const at = place(kind, line);
      const [what, symbol] = MARKS[probe];
      const name = `${member(line.entity, line.member, alone(line))}: ${what}`;
      made.push({
        type: "scatter", mode: "markers", name, showlegend: false, x: [...marks.x],
        y: marks.x.map((time, i) => (chart.own ? marks.y[i] : valueAt(line, time)) / size),
        marker: { symbol, size: 6, color: look.lines[at % COLOURS], line: { width: 1.2, color: look.lines[at % COLOURS] } },
        hovertemplate: `%{x:.6~g} s<extra>${name}</extra>`,
      });
    }
  }
  return made;
}

const axis = (look) => ({
  color: look.faint, gridcolor: look.grid, zerolinecolor: look.grid, linecolor: look.grid, tickfont: { size: 11, color: look.faint },
  automargin: false,
});

export const layout = (look) => ({
  paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { family: "system-ui, sans-serif", size: 11, color: look.ink },
  margin: { l: 46, r: 8, t: 6, b: 30 }, hoverlabel: { bgcolor: look.panel, bordercolor: look.grid, font: { color: look.ink } },
  legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom", font: { size: 11 }, bgcolor: "rgba(0,0,0,0)" },
  dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
});

// The charts of one setting.
export class Charts {
  // `zoomed` is called with the time that a user selects by dragging: [from, to], or null for all.
  constructor(place, name, zoomed) {
    this.name = name;
    this.zoomed = zoomed;
    this.figures = CHARTS.map((chart) => {
      const figure = document.createElement("figure");
      const caption = document.createElement("figcaption");
      const unit = document.createElement("span");
      caption.append(`${chart.title} `, unit);
      const picture = document.createElement("div");
      picture.className = "chart";
      picture.setAttribute("role", "img");
      figure.append(caption, picture);
      place.append(figure);
      return { chart, unit, picture, drawn: false };
    });
  }

  // Draws the data of a run so far; `most` has the greatest value of each chart in both settings, by id.
  draw(data, most) {
    const look = colours();
    for (const figure of this.figures) {
      const { chart, picture } = figure;
      const top = most[chart.id];
      const own = data.of(chart.lines)[0]?.unit ?? "";
      const [unit, size] = scale(own, top);
      const made = traces(chart, data, size, unit, look);
      [figure.top, figure.to] = [top, data.window[1]];
      const shown = layout(look);
      const range = [0, (top / size) * 1.06 || 1];
      shown.xaxis = { ...axis(look), range: [...data.window], ticksuffix: " s", showticksuffix: "last", nticks: 8 };
      shown.yaxis = { ...axis(look), range, fixedrange: true, nticks: 6 };
      const named = made.filter((trace) => trace.showlegend !== false).length;
      shown.showlegend = named > 1;
      shown.margin.t = named > 1 ? 24 + 18 * Math.floor((named - 1) / 4) : 6;
      Plotly.react(picture, made, shown, CONFIG);
      const signs = chart.marks.filter((probe) => data.of(probe).length).map((probe) => `${MARKS[probe][2]}\u00a0${MARKS[probe][0].replaceAll(" ", "\u00a0")}`);
      figure.unit.textContent = [unit ? `(${unit})` : "", ...signs].join(" \u2002");
      picture.setAttribute("aria-label", this.words(chart, data, unit, size));
      if (!figure.drawn) this.listen(figure);
    }
  }

  listen(figure) {
    figure.drawn = true;
    figure.picture.on("plotly_relayout", (change) => {
      const [from, to] = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      if (Number.isFinite(from) && Number.isFinite(to)) this.zoomed([from, to]);
    });
    figure.picture.on("plotly_doubleclick", () => this.zoomed(null));
  }

  // Description of a chart for screen readers.
  words(chart, data, unit, size) {
    const [from, to] = data.window;
    const lines = data.lines(chart).filter((line) => line.y.length).map((line) => {
      const [low, high] = line.y.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
      const last = line.y[line.y.length - 1];
      const [l, h, e] = [low, high, last].map((value) => digits(value / size));
      return `${line.entity} ${line.member}: from ${l} to ${h} ${unit}, at the end ${e}`;
    });
    const marks = chart.marks.map((probe) => [readable(probe), data.of(probe).reduce((sum, it) => sum + it.x.length, 0)]);
    const counted = marks.filter(([, count]) => count > 0).map(([name, count]) => `${name} marks: ${count}`);
    const what = [...lines, ...counted].join("; ") || "nothing was recorded";
    return `${this.name}, ${chart.title}, ${digits(from, 5)} to ${digits(to, 5)} s. ${what}`;
  }

  // Whether the charts were drawn with other greatest values, or up to another time.
  differs(most, data) {
    return this.figures.some(({ chart, top, to }) => top !== undefined && (top !== most[chart.id] || to !== data.window[1]));
  }

  resize() {
    for (const { picture, drawn } of this.figures) if (drawn) Plotly.Plots.resize(picture);
  }
}

// Ends the axes of several runs at the latest of their ends.
export function share(runs) {
  const to = Math.max(...runs.map((data) => data.window[1]));
  for (const data of runs) data.window = [data.window[0], to];
}

// The greatest value of each chart in several runs.
export function greatest(runs) {
  const of = (chart) => runs.reduce((most, data) => Math.max(most, data.most(chart)), 0);
  return Object.fromEntries(CHARTS.map((chart) => [chart.id, of(chart)]));
}
