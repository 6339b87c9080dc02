// The live page: what the study is, and estimate and interval of each group after every round.
const shown = (value) => (value === null ? "open" : Number(value.toPrecision(5)).toString());
const COLOURS = ["#1f5fa8", "#a8481f", "#2f7d4f", "#7a3f9d", "#8a6d00", "#b0306a"];
const url = `/v1/studies/${location.pathname.split("/")[2]}`;
const card = await (await fetch(`${url}/card`)).json();
const ways = new Map(card.groups.map((group) => [group, []]));

document.title = `${card.name}: Sottovoce`;
document.getElementById("name").textContent = card.name;
document.getElementById("question").textContent = card.question;
document.getElementById("privacy").textContent =
  `Each person answers once. Their device compares the answer with one point, lets a die decide whether to tell the ` +
  `truth, and sends one letter: epsilon is ${card.epsilon} for each person, computed from the die's integers. ` +
  `This page and its server hold letters, and no answer. Quantile level ${card.taus.join(", ")}.`;

function fillTable() {
  const rows = [...ways].map(([group, way]) => {
    const row = document.createElement("tr");
    const last = way.at(-1);
    const ends = last?.interval ? `${shown(last.interval[0])} to ${shown(last.interval[1])}` : "none yet";
    const cells = [group, last?.estimate == null ? "none yet" : shown(last.estimate), ends, last?.reports ?? 0, last?.rounds ?? 0];
    cells.forEach((text, k) => {
      const cell = document.createElement(k ? "td" : "th");
      if (!k) cell.scope = "row";
      cell.textContent = typeof text === "number" ? text.toLocaleString("en") : text;
      row.append(cell);
    });
    return row;
  });
  document.getElementById("groups").replaceChildren(...rows);
}

function draw() {
  if (!window.Plotly) return;
  const traces = [];
  [...ways].forEach(([group, way], k) => {
    const told = way.filter((each) => each.interval && each.interval.every((end) => end !== null));
    const x = told.map((each) => each.reports);
    const colour = COLOURS[k % COLOURS.length];
    const line = { width: 0, color: colour };
    traces.push({ x, y: told.map((each) => each.interval[1]), mode: "lines", line, showlegend: false, hoverinfo: "skip" });
    traces.push({ x, y: told.map((each) => each.interval[0]), mode: "lines", line, fill: "tonexty", fillcolor: `${colour}33`, showlegend: false, hoverinfo: "skip" });
    traces.push({ x, y: told.map((each) => each.estimate), mode: "lines+markers", name: group, line: { color: colour, width: 2 }, marker: { size: 5 } });
  });
  const last = [...ways.values()].map((way) => way.at(-1)?.interval).filter((ends) => ends && ends.every((end) => end !== null));
  const low = Math.min(...last.map((ends) => ends[0]));
  const high = Math.max(...last.map((ends) => ends[1]));
  const range = last.length ? [low - 1.5 * (high - low), high + 1.5 * (high - low)] : undefined; // the first are far wider
  const layout = { margin: { l: 60, r: 10, t: 10, b: 45 }, xaxis: { title: { text: "reports" } }, yaxis: { title: { text: "estimate and interval" }, range }, hovermode: "closest" };
  window.Plotly.react("chart", traces, layout, { responsive: true, displayModeBar: false });
}

let soon = false;
function refresh() {
  if (soon) return;
  soon = true;
  setTimeout(() => {
    soon = false;
    fillTable();
    draw();
  }, 100);
}

const say = (text) => { document.getElementById("state").textContent = text; };
const events = new EventSource(`${url}/events`);
events.onopen = () => say("Collecting; this page follows every round.");
events.onmessage = (event) => {
  const told = JSON.parse(event.data);
  const way = ways.get(told.group);
  if (told.rounds > (way.at(-1)?.rounds ?? 0)) way.push(told);
  refresh();
};
events.onerror = () => say("Waiting for the collector.");
events.addEventListener("over", () => {
  events.close();
  say("The study is over; these are its results.");
});
window.addEventListener("load", refresh);
refresh();
