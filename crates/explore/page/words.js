// Numbers and names for a reader.

// A number with this number of significant digits, without trailing zeros.
export function digits(value, significant = 3) {
  if (!Number.isFinite(value)) return "none";
  if (value === 0) return "0";
  const places = Math.max(0, significant - 1 - Math.floor(Math.log10(Math.abs(value))));
  const text = value.toFixed(Math.min(places, 9));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

// Larger and smaller units, largest first.
const SCALES = {
  "bit/s": [["Gbit/s", 1e9], ["Mbit/s", 1e6], ["kbit/s", 1e3], ["bit/s", 1]],
  "B/s": [["MB/s", 1e6], ["kB/s", 1e3], ["B/s", 1]],
  bytes: [["MiB", 1048576], ["KiB", 1024], ["bytes", 1]],
  s: [["s", 1], ["ms", 1e-3]],
};

// The unit for values up to `most`, and the divisor.
export function scale(unit, most) {
  const scales = SCALES[unit] ?? [[unit === "1" ? "" : unit, 1]];
  return scales.find(([, size]) => Math.abs(most) >= size) ?? scales[scales.length - 1];
}

// A value with its unit.
export function quantity(value, unit) {
  const [name, size] = scale(unit, value);
  return `${digits(value / size)} ${name}`.trim();
}

export const readable = (name) => name.replaceAll("_", " ");

// A member of a flow or link; a single member has the name without a number.
export const member = (entity, number, alone) => (alone ? entity : `${entity}[${number}]`);
