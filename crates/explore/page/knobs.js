// The sliders, switches, lists and fields of a setting.

const element = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

// Creates the controls of `knobs` in `place`. `set` has the changed values; `changed(key, value)` is called for each change, with
// `undefined` for a return to the value of the spec. `recentre(knob, value)` gives a slider steps around a typed value.
export function build(place, knobs, set, prefix, changed, recentre) {
  const open = new Set([...place.querySelectorAll("details[open]")].map((it) => it.dataset.group));
  const groups = new Map();
  for (const knob of knobs) groups.set(knob.group, [...(groups.get(knob.group) ?? []), knob]);
  const first = groups.keys().next().value;
  const made = [...groups].map(([group, members], at) => {
    const moved = members.some((knob) => knob.key in set);
    const details = element("details", { open: open.has(group) || moved || group === first });
    details.dataset.group = group;
    details.append(element("summary", { textContent: group }));
    members.forEach((knob, number) => details.append(row(knob, set, `${prefix}-${at}-${number}`, changed, recentre)));
    return details;
  });
  place.replaceChildren(...made);
}

function row(knob, set, id, changed, recentre) {
  const line = element("div", { className: "knob" });
  const label = element("label", { htmlFor: id, textContent: knob.label, title: knob.key });
  const back = element("button", { type: "button", textContent: "↺", title: `Back to ${knob.value}` });
  back.setAttribute("aria-label", `${knob.label}: back to ${knob.value}`);
  const value = () => set[knob.key] ?? knob.value;
  const mark = () => line.classList.toggle("moved", knob.key in set);
  const move = (found) => {
    changed(knob.key, found === knob.value ? undefined : found);
    show();
  };
  let show;
  if (knob.kind === "switch") {
    const box = element("input", { type: "checkbox", id });
    box.addEventListener("input", () => move(String(box.checked)));
    show = () => { box.checked = value() === "true"; mark(); };
    line.append(label, box, back);
  } else if (knob.kind === "choice") {
    const list = element("select", { id }, ...knob.words.map((word) => element("option", { value: word, textContent: word })));
    list.dataset.key = knob.key;
    list.addEventListener("change", () => move(list.value));
    show = () => {
      // A value from the address may not be in the list.
      if (![...list.options].some((it) => it.value === value())) list.append(element("option", { value: value(), textContent: value() }));
      list.value = value();
      mark();
    };
    line.append(label, list, back);
  } else {
    const text = element("input", { type: "text", id: knob.kind === "text" ? id : `${id}-text`, spellcheck: false, autocomplete: "off" });
    text.dataset.key = knob.key;
    if (knob.kind !== "text") text.setAttribute("aria-label", `${knob.label}, as text`);
    text.addEventListener("change", () => {
      move(text.value.trim() || knob.value);
      recentre(knob, value()).then(show);
    });
    line.append(label, text, back);
    let slide = () => {};
    if (knob.kind === "slider") {
      const range = element("input", { type: "range", id, min: 0, max: knob.stops.length - 1, step: 1 });
      range.dataset.key = knob.key;
      range.addEventListener("input", () => move(knob.stops[range.valueAsNumber]));
      slide = () => {
        range.max = knob.stops.length - 1;
        const at = knob.stops.indexOf(value());
        if (at >= 0) range.value = at;
        range.setAttribute("aria-valuetext", value());
      };
      line.append(range);
    }
    show = () => { text.value = value(); slide(); mark(); };
  }
  back.addEventListener("click", () => {
    changed(knob.key, undefined);
    show();
    line.querySelector("input, select").focus();
  });
  show();
  return line;
}

// Marks the field of a wrong value; no field for `null`.
export function blame(place, key) {
  for (const field of place.querySelectorAll("input[data-key], select[data-key]")) {
    if (field.dataset.key === key) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
  }
}
