// The packet ladder: sender and receiver as two lines down the page, packets as arrows between them.

import { colours, layout } from "./charts.js";
import { digits } from "./words.js";

const CONFIG = { displayModeBar: false, displaylogo: false, responsive: true, doubleClick: false, showTips: false };
// Maximum number of segment numbers that are readable.
const MAX_NUMBERS = 70;

const line = (name, color, dash, width = 1.3) => ({
  type: "scatter", mode: "lines", name, x: [], y: [], text: [], hovertemplate: "%{text}<extra></extra>",
  line: { color, dash, width }, connectgaps: false,
});

function stroke(trace, [x0, y0], [x1, y1], text) {
  trace.x.push(x0, x1, null);
  trace.y.push(y0, y1, null);
  trace.text.push(text, text, "");
}

// The traces of a ladder, from the data of the server.
function traces(told, look) {
  const data = line("data", look.lines[0], "solid");
  const again = line("retransmission", look.lines[1], "solid", 2);
  const lost = line("lost", look.bad, "dot", 1.6);
  const acks = line("acknowledgement", look.lines[2], "dash", 1);
  const repeated = line("duplicate acknowledgement", look.lines[3], "dashdot", 1);
  const ends = { type: "scatter", mode: "markers", name: "lost here", showlegend: false, x: [], y: [], hoverinfo: "skip", marker: { symbol: "x", size: 7, color: look.bad } };
  const [from, to] = told.window;
  for (const segment of told.segments) {
    const words = `segment ${segment.number}${segment.again ? ", again" : ""}: sent ${segment.departed.toFixed(4)} s`;
    if (segment.arrived !== null) {
      stroke(segment.again ? again : data, [0, segment.departed], [1, segment.arrived], `${words}, there ${segment.arrived.toFixed(4)} s`);
    } else {
      const until = Math.min(segment.departed + (to - from) * 0.03, to);
      stroke(segment.lost ? lost : segment.again ? again : data, [0, segment.departed], [0.3, until], `${words}${segment.lost ? ", lost" : ""}`);
      if (segment.lost) { ends.x.push(0.3); ends.y.push(until); }
    }
  }
  for (const ack of told.acks) {
    stroke(ack.duplicate ? repeated : acks, [1, ack.departed], [0, ack.arrived], `acknowledges ${ack.covers}: at the sender ${ack.arrived.toFixed(4)} s`);
  }
  return [data, again, lost, acks, repeated, ends].filter((trace) => trace.x.length);
}

// Draws a ladder; `zoomed` is called with the window that a user selects by dragging.
export function draw(picture, told, flow, zoomed) {
  const look = colours();
  const [from, to] = told.window;
  const shown = layout(look);
  const side = (x, text) => ({ x, y: 1, xref: "x", yref: "paper", yanchor: "bottom", showarrow: false, text, font: { size: 12, color: look.ink } });
  let last = -Infinity;
  // A number that would cover another number is omitted.
  const apart = (it) => it.departed - last > (to - from) * 0.018 && (last = it.departed, true);
  const numbers = told.segments.length <= MAX_NUMBERS
    ? told.segments.filter((it) => it.departed >= from && it.departed <= to && apart(it)).map((it) => ({
      x: 0, y: it.departed, xanchor: "right", xshift: -4, showarrow: false, text: String(it.number), font: { size: 10, color: it.lost ? look.bad : look.faint },
    }))
    : [];
  Object.assign(shown, {
    margin: { l: 60, r: 14, t: 26, b: 60 },
    xaxis: { range: [-0.09, 1.04], visible: false, fixedrange: true },
    yaxis: { range: [to, from], color: look.faint, gridcolor: look.grid, ticksuffix: " s", zeroline: false, nticks: 12 },
    legend: { ...shown.legend, y: -0.02, yanchor: "top" },
    showlegend: true,
    annotations: [side(0, "sender"), side(1, "receiver"), ...numbers],
    shapes: [0, 1].map((x) => ({ type: "line", x0: x, x1: x, y0: 0, y1: 1, yref: "paper", line: { color: look.faint, width: 1.5 } })),
    hovermode: "closest",
  });
  const fresh = !picture.data;
  Plotly.react(picture, traces(told, look), shown, CONFIG);
  if (fresh) {
    picture.on("plotly_relayout", (change) => {
      const ends = [change["yaxis.range[0]"], change["yaxis.range[1]"]];
      if (ends.every(Number.isFinite)) picture.zoomed(ends.sort((a, b) => a - b));
    });
    picture.on("plotly_doubleclick", () => picture.zoomed(null));
  }
  picture.zoomed = zoomed;
  const words = describe(told, flow);
  picture.setAttribute("aria-label", words);
  return words;
}

// Description of a ladder in words.
function describe(told, flow) {
  const [from, to] = told.window.map((time) => digits(time, 5));
  const count = (test) => told.segments.filter(test).length;
  const sent = told.segments.length;
  const again = count((it) => it.again);
  const lost = count((it) => it.lost);
  const repeated = told.acks.filter((it) => it.duplicate).length;
  const cut = told.cut ? " Only the first packets are drawn; zoom in to see the rest." : "";
  return `${flow}, ${from} to ${to} s: ${sent} transmissions, ${again} of them again, ${lost} lost; ${told.acks.length} acknowledgements, ${repeated} of them duplicates.${cut}`;
}
