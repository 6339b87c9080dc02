// From what was told after each round to what the chart shows; an interval with an open end goes to the chart's edge.
import { number } from "/page.js";

const LIGHT = ["#1b5a9e", "#b34a12", "#1f6b3f", "#7a3f9d", "#7a6000", "#a82b63"];
const LATELY = 10; // estimates that are surely in sight
const DARK = ["#85bbf5", "#ffab76", "#7fd3a0", "#d3a6f0", "#e6cc5c", "#ff9cc4"];

/** A text as Plotly shows it: it would take a name such as <b>a</b> for markup, and $a$ for a formula. */
const literal = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll("$", "&#36;");

/** A name as it fits beside a chart; the table has the whole of it. */
const short = (text) => literal(text.length > 40 ? `${text.slice(0, 39)}…` : text);

/** What was told after a round, as a list of estimates: one, or one a level or a coefficient. */
export function estimatesOf(told) {
  return told.levels.flatMap((level) => {
    if (!level.coefficients) return [{ label: `${level.tau}`, estimate: null, interval: null, ...level }];
    return level.coefficients.map((each) => ({ ...each, label: `${each.name}, ${level.tau}` }));
  });
}

/** The values between which the chart looks: around the intervals of now, because the first are far wider. */
export function rangeOf(ways, bounds) {
  const last = [...ways.values()].map((way) => way.at(-1)).filter((each) => each?.interval);
  const lately = [...ways.values()].flatMap((way) => way.slice(-LATELY).map((each) => each.estimate));
  const ends = [...last.flatMap((each) => each.interval), ...lately].filter((end) => end != null);
  if (!ends.length) return bounds ?? null;
  let [low, high] = [Math.min(...ends), Math.max(...ends)];
  const closed = last.every((each) => each.interval.every((end) => end !== null));
  const room = (closed ? 1 : 2) * (high - low) || Math.abs(high) / 10 || 1;
  [low, high] = [low - room, high + room];
  // bounds limit the quantile, so nothing is seen far beyond them
  const edge = bounds ? (bounds[1] - bounds[0]) / 20 : 0;
  return bounds ? [Math.max(low, bounds[0] - edge), Math.min(high, bounds[1] + edge)] : [low, high];
}

/** Whether there is one interval a group, as after stages: then groups stand side by side. */
export const isOnce = (ways) => [...ways.values()].every((way) => way.length <= 1);

/** The traces of the groups: a band of steps, for an interval holds until the next round, and where it stands now. */
export function tracesOf(ways, range, dark) {
  const once = isOnce(ways);
  const colours = dark ? DARK : LIGHT;
  const beyond = range[1] - range[0];
  const traces = [];
  [...ways].forEach(([group, way], k) => {
    if (!way.length) return;
    const colour = colours[k % colours.length];
    const xOf = (told) => told.map((each) => (once ? literal(group) : each.reports));
    const banded = way.filter((each) => each.interval);
    const x = xOf(banded);
    const lows = banded.map((each) => each.interval[0] ?? range[0] - beyond);
    const highs = banded.map((each) => each.interval[1] ?? range[1] + beyond);
    const edge = { line: { width: 1, color: `${colour}66`, shape: "hv" }, mode: "lines", showlegend: false, hoverinfo: "skip" };
    traces.push({ x, y: highs, ...edge }, { x, y: lows, ...edge, fill: "tonexty", fillcolor: `${colour}2b` });
    const text = way.map((each) => `${literal(group)}: ${inWords(each)} after ${number(each.reports)} reports`);
    traces.push({ x: xOf(way), y: way.map((each) => each.estimate), mode: "lines", name: short(group), line: { color: colour, width: 2, shape: "hv" }, text, hoverinfo: "text" });
    const now = way.at(-1);
    const bars = now.interval && { type: "data", symmetric: false, array: [highs.at(-1) - now.estimate], arrayminus: [now.estimate - lows.at(-1)], color: colour, thickness: 2, width: 6 };
    traces.push({ x: xOf([now]), y: [now.estimate], mode: "markers", marker: { color: colour, size: 9 }, ...(bars ? { error_y: bars } : {}), showlegend: false, hoverinfo: "skip" });
  });
  return traces;
}

/** An estimate and its interval in words; an end that is not known yet is said to be open. */
export function inWords(each) {
  return `${number(each.estimate)}, ${each.interval ? interval(each.interval) : "no interval yet"}`;
}

export function interval([low, high]) {
  if (low === null && high === null) return "both ends open";
  if (low === null) return `up to ${number(high)}, lower end open`;
  if (high === null) return `from ${number(low)}, upper end open`;
  return `${number(low)} to ${number(high)}`;
}

export function layoutOf(range, what, once, style, narrow) {
  const ink = style.getPropertyValue("--ink").trim();
  const line = style.getPropertyValue("--line").trim();
  const axis = { gridcolor: line, linecolor: line, zeroline: false, fixedrange: true };
  return {
    margin: { l: narrow ? 44 : 64, r: 12, t: 8, b: 44 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: ink, family: "system-ui, sans-serif", size: narrow ? 12 : 14 },
    xaxis: once ? { ...axis, type: "category" } : { ...axis, type: "linear", title: { text: "reports of the group" }, rangemode: "tozero", nticks: narrow ? 4 : 8 },
    yaxis: { ...axis, title: narrow ? undefined : { text: short(what) }, range, automargin: true },
    legend: { orientation: "h", traceorder: "normal", x: 0, y: 1.02, yanchor: "bottom" },
    hovermode: "closest",
    dragmode: false,
  };
}
