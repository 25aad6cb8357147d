// State of the page in the part of the address after the #, which no server receives.

const LETTERS = ["a", "b"];

export const plain = () => ({ experiment: 0, point: 0, seed: 1, set: {} });

// The state that an address describes; missing and invalid parts have their initial values.
export function read(hash) {
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const number = (name, otherwise) => {
    const found = Number(said.get(name) ?? NaN);
    return Number.isFinite(found) && found >= 0 ? found : otherwise;
  };
  const span = (name) => {
    const found = (said.get(name) ?? "").split("-").map(Number);
    return found.length === 2 && found.every(Number.isFinite) && found[0] < found[1] ? found : null;
  };
  const pane = (letter) => {
    const set = {};
    for (const pair of said.getAll(`${letter}.set`)) {
      const at = pair.indexOf("=");
      if (at > 0) set[pair.slice(0, at)] = pair.slice(at + 1);
    }
    return {
      experiment: Math.floor(number(`${letter}.experiment`, 0)),
      point: Math.floor(number(`${letter}.point`, 0)),
      seed: Math.floor(number(`${letter}.seed`, 1)),
      set,
    };
  };
  return {
    spec: said.get("spec"),
    compare: said.has("compare"),
    window: span("time"),
    ladder: { open: said.has("ladder"), flow: said.get("flow"), window: span("ladder") },
    map: said.has("map"),
    panes: LETTERS.map(pane),
  };
}

// The part of the address that describes a state.
export function write(state) {
  const said = new URLSearchParams();
  said.set("spec", state.spec);
  if (state.compare) said.set("compare", "");
  if (state.window) said.set("time", state.window.join("-"));
  if (state.map) said.set("map", "");
  if (state.ladder.open) said.set("ladder", state.ladder.window ? state.ladder.window.join("-") : "");
  if (state.ladder.open && state.ladder.flow) said.set("flow", state.ladder.flow);
  state.panes.forEach((pane, at) => {
    if (at > 0 && !state.compare) return;
    const letter = LETTERS[at];
    if (pane.experiment) said.set(`${letter}.experiment`, pane.experiment);
    if (pane.point) said.set(`${letter}.point`, pane.point);
    if (pane.seed !== 1) said.set(`${letter}.seed`, pane.seed);
    for (const [key, value] of Object.entries(pane.set)) said.append(`${letter}.set`, `${key}=${value}`);
  });
  return `#${said}`;
}

// The part of a request that describes a pane.
export const choice = (pane) => ({
  experiment: pane.experiment,
  point: pane.point,
  seed: pane.seed,
  set: Object.entries(pane.set),
});
