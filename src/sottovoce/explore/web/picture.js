// A picture of an answer: each interval and its estimate, and around the estimate what was planned.
import { number } from "/parts.js";

const ROW = 78; // pixels of an interval
const AXIS = 34;
const SIDE = 14;
const LETTER = 8; // pixels, about

/** An element of a drawing. */
function drawn(tag, attributes, text) {
  const found = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) found.setAttribute(name, value);
  if (text !== undefined) found.textContent = text;
  return found;
}

/** From where to where the picture goes: all ends that there are, what was planned, and a little room. */
export function rangeOf(estimates, widths) {
  const ends = estimates.flatMap((each, k) => {
    const half = (widths[k]?.width ?? 0) / 2;
    return [each.low, each.high, each.estimate - half, each.estimate + half].filter((end) => end !== null);
  });
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const open = estimates.some((each) => each.low === null || each.high === null);
  const room = (open ? 0.5 : 0.12) * (high - low) || Math.abs(high) / 20 || 1;
  return [low - room, high + room];
}

/** Round numbers between two others: steps of 1, 2 or 5. */
export function ticksOf([low, high], most) {
  const rough = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high; k += 1) found.push(Number((k * step).toPrecision(12)));
  return found;
}

/** Draw an answer, so many pixels wide; values of time have no axis, for their ends are written beside them. */
export function pictureOf(run, wide) {
  const { estimates } = run.result;
  const widths = run.plan.widths;
  const range = rangeOf(estimates, widths);
  const height = ROW * estimates.length + AXIS;
  const at = (value) => SIDE + ((value - range[0]) / (range[1] - range[0])) * (wide - 2 * SIDE);
  const svg = drawn("svg", { viewBox: `0 0 ${wide} ${height}`, width: wide, height, role: "img", "aria-label": inWords(run) });
  const base = height - AXIS + 4;
  if (run.plan.kind === "number") {
    for (const tick of ticksOf(range, Math.max(2, Math.floor(wide / 110)))) {
      svg.append(drawn("line", { x1: at(tick), x2: at(tick), y1: 4, y2: base, class: "axis" }));
      svg.append(drawn("text", { x: at(tick), y: base + 18, "text-anchor": "middle", class: "soft" }, number(tick)));
    }
  }
  svg.append(drawn("line", { x1: SIDE, x2: wide - SIDE, y1: base, y2: base, class: "axis" }));
  estimates.forEach((each, k) => {
    const y = ROW * k + 42;
    const [left, right] = [each.low === null ? SIDE : at(each.low), each.high === null ? wide - SIDE : at(each.high)];
    const half = (widths[k]?.width ?? 0) / 2;
    if (half) svg.append(drawn("rect", { x: at(each.estimate - half), y: y - 15, width: at(half) - at(-half), height: 30, class: "planned", rx: 4 }));
    svg.append(drawn("rect", { x: left, y: y - 6, width: Math.max(right - left, 2), height: 12, class: "obtained" }));
    svg.append(drawn("path", { d: endOf(left, y, each.low === null, -1), class: "end" }), drawn("path", { d: endOf(right, y, each.high === null, 1), class: "end" }));
    svg.append(drawn("circle", { cx: at(each.estimate), cy: y, r: 6, class: "point" }));
    const label = estimates.length > 1 ? `${number(each.of)}: ${each.text.estimate}` : each.text.estimate;
    svg.append(written(label, at(each.estimate), y - 21, wide, "strong"));
    if (each.low !== null && each.low !== each.high) svg.append(written(each.text.low, left, y + 30, wide, "", right - left));
    if (each.high !== null && each.low !== each.high) svg.append(written(each.text.high, right, y + 30, wide, "", left - right));
  });
  return svg;
}

/** The mark of an end: a stroke, or an arrow where it is open. */
const endOf = (x, y, open, way) => (open ? `M ${x - way * 9} ${y - 9} L ${x} ${y} L ${x - way * 9} ${y + 9}` : `M ${x} ${y - 10} L ${x} ${y + 10}`);

/** A text at a place, moved to where it fits; two that are close go to either side. */
function written(text, x, y, wide, kind, apart = Infinity) {
  const half = (text.length * LETTER) / 2;
  let anchor = Math.abs(apart) < 2 * half + 12 ? (apart > 0 ? "end" : "start") : "middle";
  const need = anchor === "middle" ? half : 2 * half;
  if (anchor !== "start" && x - need < 2) [x, anchor] = [2, "start"];
  if (anchor !== "end" && x + need > wide - 2) [x, anchor] = [wide - 2, "end"];
  return drawn("text", { x, y, "text-anchor": anchor, class: kind }, text);
}

/** An answer as a sentence a quantile. */
export function inWords(run) {
  return run.result.estimates.map((each) => `${number(each.of)} quantile: ${each.text.estimate}, ${intervalOf(each)}`).join("; ");
}

/** An interval in words; an end that is not known is open. */
export function intervalOf({ low, high, text }) {
  if (low === null && high === null) return "both ends open";
  if (low === null) return `up to ${text.high}, lower end open`;
  if (high === null) return `from ${text.low}, upper end open`;
  return low === high ? `exactly ${text.low}` : `${text.low} to ${text.high}`;
}
