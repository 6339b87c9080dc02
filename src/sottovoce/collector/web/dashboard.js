// The live page of a study: what it is, estimate and interval of each group after every round, and its switches.
import { estimatesOf, interval, isOnce, layoutOf, rangeOf, tracesOf } from "/chart.js";
import { asked, at, made, number, rate, say, stateOf, whole } from "/page.js";

const MOST = 6; // groups that a chart shows together
const LOOK = 4000; // milliseconds between looks at the study's state
const RATE = 10; // seconds over which reports a second are counted
const METHODS = {
  sequence: "The intervals of a group hold at every time, all of them together: look whenever you like.",
  staged: "The interval is told after the last round; before it there is none that would hold.",
  certified: "The interval is told after the last round, and holds for every distribution.",
};
const REGRESSION =
  "Each interval is that of a study that ends with its round: it holds for whoever decides beforehand when to look.";
const LAST = "after the last round";

const study = location.pathname.split("/")[2];
const url = `/v1/studies/${study}`;
const dark = matchMedia("(prefers-color-scheme: dark)");
const narrow = matchMedia("(max-width: 40rem)");
const facts = new Map();
const counts = [];
let about, card, ways;

function fact(name, text) {
  if (!facts.has(name)) {
    facts.set(name, made("dd"));
    at("facts").append(made("div", {}, made("dt", {}, name), facts.get(name)));
  }
  if (facts.get(name).textContent !== text) facts.get(name).textContent = text;
}

/** What stands where there is no interval: for stages, when there will be one. */
function without(why) {
  if (why) return why;
  if (stateOf(about) === "closed") return "none: the study was closed before";
  if (about.over) return "none";
  return about.method in METHODS && about.method !== "sequence" ? LAST : "none yet";
}

function showAbout() {
  const called = stateOf(about);
  at("state").hidden = false;
  at("state").textContent = called;
  at("state").className = `state ${called}`;
  const people = about.people * about.groups.length;
  fact("Reports", whole(about.reports));
  fact("Reports/s", rate(counts[0], counts.at(-1) ?? { at: 0 }));
  fact("Rounds", whole(Math.max(0, ...[...ways.values()].map((way) => way.at(-1)?.rounds ?? 0))));
  fact("Quantile", card.taus.map(number).join(", "));
  fact("Epsilon", number(about.epsilon));
  fact("Expected people", whole(people));
  fact("Method", about.method);
  at("survey").hidden = about.over;
  at("come").max = people;
  at("come").value = Math.min(about.reports, people);
  say("of", `${whole(about.reports)} of about ${whole(people)} expected reports`);
  for (const button of document.querySelectorAll("[data-state]")) {
    button.disabled = called === "closed" || button.dataset.state === about.state;
  }
}

function showTerms() {
  document.title = `${card.name}: Sottovoce`;
  say("name", card.name);
  say("question", card.question);
  at("survey").href = `/studies/${study}/survey`;
  say("valid", `${METHODS[about.method] ?? REGRESSION} Level ${number(100 * about.level)} %${card.taus.length > 1 && !card.regression ? ", for all quantiles of a group together" : ""}.`);
  const odds = number(Number(Math.exp(about.epsilon).toPrecision(3)));
  say("persons", card.tokens
    ? "Each person has a token, which leaves as well: whoever gave it out and sees the log can tell whose letter is whose."
    : "Nobody checks who is a person: whoever sends many reports counts many times.");
  say("leaves", `One report of 41 bytes: the study, ${card.tokens ? "the person's token" : "a random number"}, the round, the group, ` +
    (card.regression
      ? "and one letter. The device draws the letter by a die that it throws, from what it was asked and its row of numbers. The row itself stays there."
      : "which point was asked, and one letter, 0 or 1. The device compares the answer with the point, and a die that it throws decides whether the letter tells the truth. The answer itself stays there."));
  say("means", `A report is at most e^epsilon times likelier under one answer than under any other: here epsilon is ${number(about.epsilon)}, ` +
    `so ${odds} times. It is computed from the die's integers, and each device compares it with a limit of its own. A device answers once.`);
}

function fillTable() {
  const rows = [];
  const several = card.taus.length > 1 || Boolean(card.regression);
  const names = ["Group", ...(several ? [labelName()] : []), "Estimate", "Interval", "Reports", "Rounds"];
  at("columns").replaceChildren(...names.map((name) => made("th", { scope: "col" }, name)));
  for (const [group, way] of ways) {
    const last = way.at(-1);
    const estimates = last ? estimatesOf(last) : [{ label: card.taus.join(", "), estimate: null, interval: null }];
    estimates.forEach((each) => {
      const cells = [
        ...(several ? [each.label] : []),
        each.estimate == null ? without(each.why) : number(each.estimate),
        each.interval ? interval(each.interval) : without(each.why),
        whole(last?.reports ?? 0),
        whole(last?.rounds ?? 0),
      ];
      rows.push(made("tr", {}, made("th", { scope: "row" }, group), ...cells.map((text) => made("td", {}, text))));
    });
  }
  at("rows").replaceChildren(...rows);
}

const labelName = () => (card.regression ? "Coefficient, quantile" : "Quantile");

/** The ways of the chosen groups, each about the chosen level or coefficient. */
function chosenWays() {
  const groups = at("group").value === "" ? [...ways.keys()].slice(0, MOST) : [at("group").value];
  const label = at("label").value;
  const found = new Map();
  for (const group of groups) {
    found.set(group, ways.get(group).flatMap((told) => {
      const each = estimatesOf(told).find((one) => one.label === label) ?? estimatesOf(told)[0];
      return each?.estimate != null ? [{ ...each, reports: told.reports }] : [];
    }));
  }
  return found;
}

function fillChoices() {
  const labels = [...new Set([...ways.values()].flatMap((way) => (way.length ? estimatesOf(way.at(-1)).map((each) => each.label) : [])))];
  if (labels.join() !== [...at("label").options].map((each) => each.value).join()) at("label").replaceChildren(...labels.map((each) => new Option(each)));
  at("choice-of-label").hidden = labels.length < 2;
  say("label-of", labelName());
  if (!at("group").options.length) {
    const all = ways.size > MOST ? `The first ${MOST} of ${ways.size}` : "All groups";
    at("group").replaceChildren(new Option(all, ""), ...[...ways.keys()].map((each) => new Option(each, each)));
  }
  at("choice-of-group").hidden = ways.size < 2;
}

function draw() {
  const chosen = chosenWays();
  const range = rangeOf(chosen, card.bounds);
  const some = [...chosen.values()].some((way) => way.length);
  at("chart").hidden = at("choices").hidden = !some;
  const never = stateOf(about) === "closed" || about.over;
  const banded = [...chosen.values()].some((way) => way.some((each) => each.interval));
  const open = [...chosen.values()].some((way) => way.at(-1)?.interval?.includes(null));
  if (some && !window.Plotly) {
    loadPlotly();
    return;
  }
  say("drawn", some
    ? `${banded ? (isOnce(chosen) ? "Estimates, and the bars their intervals." : "The line is the estimate, the band its interval after each round.") : "The line is the estimate after each round; there is no interval yet."}${open ? " An end that is still open is drawn to the edge." : ""}`
    : never ? "There is nothing to draw." : `The chart begins with the first estimate${without() === LAST ? ", after the last round" : ""}.`);
  if (!some) return;
  const style = getComputedStyle(document.documentElement);
  const layout = layoutOf(range, card.regression ? at("label").value : card.name, isOnce(chosen), style, narrow.matches);
  window.Plotly.react("chart", tracesOf(chosen, range, dark.matches), layout, { responsive: true, displayModeBar: false, staticPlot: false });
}

let soon = false;
function refresh() {
  if (soon) return;
  soon = true;
  setTimeout(() => {
    soon = false;
    showAbout();
    fillTable();
    fillChoices();
    draw();
  }, 150);
}

/** Remember how many reports there are now; by this page's own clock, which may differ from the collector's. */
function note() {
  const now = performance.now() / 1000;
  counts.push({ reports: about.reports, at: now });
  while (counts.length > 2 && counts[1].at < now - RATE) counts.shift();
}

async function look() {
  if (!document.hidden) {
    try {
      about = await asked(url);
      note();
      refresh();
    } catch {
      // the event stream says that the collector is away
    }
  }
  if (!about.over) setTimeout(look, LOOK);
}

function follow() {
  const events = new EventSource(`${url}/events`);
  events.onopen = () => say("told", "This page follows every round.");
  events.onerror = () => say("told", "Waiting for the collector.");
  events.onmessage = (event) => {
    const told = JSON.parse(event.data);
    const way = ways.get(told.group);
    if (!way || told.rounds <= (way.at(-1)?.rounds ?? 0)) return; // told again after the stream broke off
    way.push(told);
    refresh();
  };
  events.addEventListener("count", (event) => {
    about.reports = JSON.parse(event.data).reports;
    note();
    refresh();
  });
  events.addEventListener("over", () => {
    events.close();
    about.over = true;
    say("told", stateOf(about) === "closed" ? "The study is closed; nobody is asked any more." : "The study is over; these are its results.");
    look();
  });
}

async function setState(state) {
  if (state === "closed" && !confirm("A closed study stays closed. Close it?")) return;
  try {
    about = await asked(`${url}/state`, { body: { state }, key: at("key").value });
    say("ran", `The study is ${about.state}.`);
    refresh();
  } catch (error) {
    say("ran", error.status === 401 || error.status === 403 ? `Not done: ${error.message}` : error.message);
  }
}

let loading = false;

/** Fetch the script that draws, a large one, once there is something to draw. */
function loadPlotly() {
  if (loading) return;
  loading = true;
  const script = made("script", { src: "/plotly.js" });
  script.onload = draw;
  script.onerror = () => say("drawn", "The chart could not be loaded; the table above has the numbers.");
  document.head.append(script);
}

try {
  [about, card] = await Promise.all([asked(url), asked(`${url}/card`)]);
  ways = new Map(card.groups.map((group) => [group, []]));
  showTerms();
  refresh();
  follow();
  setTimeout(look, LOOK);
  for (const button of document.querySelectorAll("[data-state]")) button.addEventListener("click", () => setState(button.dataset.state));
  at("run-form").addEventListener("submit", (event) => event.preventDefault());
  for (const id of ["group", "label"]) at(id).addEventListener("change", draw);
  dark.addEventListener("change", draw);
  narrow.addEventListener("change", draw);
} catch (error) {
  say("told", error.status === 404 ? "There is no such study here; Studies above lists them." : error.message);
}
