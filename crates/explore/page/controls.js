// The sliders, switches, lists and fields of a setting.

const element = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

// Creates the elements of `controls` in `place`. `set` has the changed values; `changed(key, value)` is called for each change, with
// `undefined` for a return to the value of the spec. `recentre(control, value)` gives a slider steps around a typed value.
export function build(place, controls, set, prefix, changed, recentre) {
  const open = new Set([...place.querySelectorAll("details[open]")].map((it) => it.dataset.group));
  const groups = new Map();
  for (const control of controls) groups.set(control.group, [...(groups.get(control.group) ?? []), control]);
  const first = groups.keys().next().value;
  const made = [...groups].map(([group, members], at) => {
    const moved = members.some((control) => control.key in set);
    const details = element("details", { open: open.has(group) || moved || group === first });
    details.dataset.group = group;
    details.append(element("summary", { textContent: group }));
    members.forEach((control, number) => details.append(row(control, set, `${prefix}-${at}-${number}`, changed, recentre)));
    return details;
  });
  place.replaceChildren(...made);
}

function row(control, set, id, changed, recentre) {
  const line = element("div", { className: "control" });
  const label = element("label", { htmlFor: id, textContent: control.label, title: control.key });
  const back = element("button", { type: "button", textContent: "↺", title: `Back to ${control.value}` });
  back.setAttribute("aria-label", `${control.label}: back to ${control.value}`);
  const value = () => set[control.key] ?? control.value;
  const mark = () => line.classList.toggle("moved", control.key in set);
  const move = (found) => {
    changed(control.key, found === control.value ? undefined : found);
    show();
  };
  let show;
  if (control.kind === "switch") {
    const box = element("input", { type: "checkbox", id });
    box.addEventListener("input", () => move(String(box.checked)));
    show = () => { box.checked = value() === "true"; mark(); };
    line.append(label, box, back);
  } else if (control.kind === "choice") {
    const list = element("select", { id }, ...control.words.map((word) => element("option", { value: word, textContent: word })));
    list.dataset.key = control.key;
    list.addEventListener("change", () => move(list.value));
    show = () => {
      // A value from the address may not be in the list.
      if (![...list.options].some((it) => it.value === value())) list.append(element("option", { value: value(), textContent: value() }));
      list.value = value();
      mark();
    };
    line.append(label, list, back);
  } else {
    const text = element("input", { type: "text", id: control.kind === "text" ? id : `${id}-text`, spellcheck: false, autocomplete: "off" });
    text.dataset.key = control.key;
    if (control.kind !== "text") text.setAttribute("aria-label", `${control.label}, as text`);
    text.addEventListener("change", () => {
      move(text.value.trim() || control.value);
      recentre(control, value()).then(show);
    });
    line.append(label, text, back);
    let slide = () => {};
    if (control.kind === "slider") {
      const range = element("input", { type: "range", id, min: 0, max: control.stops.length - 1, step: 1 });
      range.dataset.key = control.key;
      range.addEventListener("input", () => move(control.stops[range.valueAsNumber]));
      slide = () => {
        range.max = control.stops.length - 1;
        const at = control.stops.indexOf(value());
        if (at >= 0) range.value = at;
        range.setAttribute("aria-valuetext", value());
      };
      line.append(range);
    }
    show = () => { text.value = value(); slide(); mark(); };
  }
  back.addEventListener("click", () => {
    changed(control.key, undefined);
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
