// The first page: every study of the collector, its reports and its state, looked at again every two seconds.
import { asked, at, made, number, rate, say, stateOf, whole } from "/page.js";

const PAUSE = 2000;
const FACTS = ["Reports", "Reports/s", "Groups", "Epsilon"];
const cards = new Map(); // from a study to its card, which stays in place: a link that has the focus keeps it
const counts = new Map();

function begun(about) {
  const facts = new Map(FACTS.map((name) => [name, made("dd")]));
  const list = made("dl", { class: "facts" });
  for (const [name, cell] of facts) list.append(made("div", {}, made("dt", {}, name), cell));
  const state = made("span", { class: "state" });
  const link = made("a", { href: `/studies/${about.study}` }, about.name);
  const card = made("li", {}, made("h2", {}, link), made("p", {}, about.question || "No question is given."), state, list);
  at("studies").append(card);
  return { facts, state };
}

function show(about, now) {
  if (!cards.has(about.study)) cards.set(about.study, begun(about));
  const { facts, state } = cards.get(about.study);
  const count = { reports: about.reports, at: now };
  const called = stateOf(about);
  state.textContent = called;
  state.className = `state ${called}`;
  facts.get("Reports").textContent = whole(about.reports);
  facts.get("Reports/s").textContent = rate(counts.get(about.study), count);
  facts.get("Groups").textContent = whole(about.groups.length);
  facts.get("Epsilon").textContent = number(about.epsilon);
  counts.set(about.study, count);
}

async function look() {
  if (!document.hidden) {
    try {
      const studies = await asked("/v1/studies");
      for (const each of studies) show(each, performance.now() / 1000);
      const open = studies.filter((each) => stateOf(each) === "open").length;
      say("told", studies.length
        ? `${studies.length} ${studies.length === 1 ? "study" : "studies"}, ${open} open.`
        : "There is no study here yet: choose New study above, or start the collector with the file of one.");
    } catch (error) {
      say("told", error.message);
    }
  }
  setTimeout(look, PAUSE);
}
look();
