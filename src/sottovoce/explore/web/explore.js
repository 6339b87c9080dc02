// The page: it enters, shows what is public of the file, plans after every change, asks once, and shows what came of it.
import { arrange, begin, keep, lacking, questionNow } from "/controls.js";
import { asking, at, made, number, say, sentence, whole } from "/parts.js";
import { intervalOf, pictureOf } from "/picture.js";
import { showNone, showPlan } from "/plan.js";

const PAUSE = 120; // milliseconds after the last change
const SLOW = 300; // after which it is said that a plan is made
const LOOK = 150; // between looks at a question that is being asked
const KEY = "key";
const request = asking("program");
let key, about, waiting, shown;
let latest = 0;
let busy = false;
let over = false;
let siteOf = null;
const runs = new Map();

const asked = (path, body) => request(path, { body, key });

/** Exchange the address's token for a key, which stays in this tab. */
async function enter() {
  const token = location.hash.slice(1);
  if (/^[0-9a-f]{64}$/.test(token)) {
    history.replaceState(null, "", "/");
    key = (await request("/v1/enter", { body: { token } })).key;
    sessionStorage.setItem(KEY, key);
  }
  key ??= sessionStorage.getItem(KEY);
  if (!key) throw new Error("Open the address that the terminal shows: it lets one page in.");
}

function showFile() {
  const who = about.person === null ? "records" : "persons";
  document.title = `${about.file}: Sottovoce`;
  say("file", about.file);
  const others = about.left_out ? `, one row each (${whole(about.left_out)} others are left out)` : "";
  say("about", `${whole(about.rows)} ${who}${others}, ${whole(about.columns.length)} columns. Records stay in the program; this page shows private results.`);
  at("columns").replaceChildren(...about.columns.map((each) =>
    made("tr", {}, made("th", { scope: "row" }, each.name), made("td", {}, each.kind), made("td", {}, whole(each.missing)))));
  at("columns-of").hidden = at("form").hidden = at("end").hidden = false;
}

/** Offer the sites of the chosen columns, where there are several. */
async function offerSites(question, wanted) {
  const chosen = JSON.stringify([question.value, question.site]);
  if (chosen === siteOf) return;
  siteOf = chosen;
  at("only-of").hidden = true;
  at("only").replaceChildren(made("option", { value: "" }, "all of them"));
  if (!question.site) return;
  try {
    const { sites } = await asked("/v1/sites", { question: { ...question, only: null } });
    if (chosen !== siteOf) return;
    at("only").append(...sites.map((each) => made("option", { value: each }, each)));
    at("only-of").hidden = sites.length < 2;
    if (sites.includes(wanted)) at("only").value = wanted;
  } catch {
    siteOf = null; // the plan says why
  }
}

async function plan(wanted) {
  const turn = (latest += 1);
  let question = questionNow();
  at("ask").disabled = true;
  if (question === null) {
    showNone(lacking(), false);
    return;
  }
  const slow = setTimeout(() => turn === latest && at("plan").hidden && showNone("Planning.", false), SLOW);
  try {
    await offerSites(question, wanted);
    if (turn !== latest) return;
    question = questionNow();
    keep(question);
    const found = await asked("/v1/plan", { question });
    if (turn !== latest) return; // a later change is on its way
    if (found.refused) {
      showNone(sentence(found.refused), true);
      return;
    }
    showPlan(found, question);
    at("ask").disabled = busy || over || Boolean(found.cost.refused);
    say("ask", `Ask ${whole(found.records)} ${about.person === null ? "records" : "persons"} at epsilon ${number(question.epsilon)}`);
  } catch (error) {
    if (turn === latest) showNone(error.message, true);
  } finally {
    clearTimeout(slow);
  }
}

/** Ask the question that stands there, once: a second click finds the button taken. Enter in a field asks nobody. */
async function ask() {
  const question = questionNow();
  if (busy || over || at("ask").disabled || question === null) return;
  busy = true;
  at("ask").disabled = true;
  const id = crypto.randomUUID();
  say("asking", "Asking.");
  try {
    await follow(await asked("/v1/runs", { id, question }));
  } catch (error) {
    at("come").hidden = true;
    say("asking", error.message);
    at("asking").className = "wrong";
  }
  busy = false;
  plan();
}

/** Look at a run until it is over, and show it. */
async function follow(run) {
  at("asking").className = "";
  while (run.state === "asking") {
    at("come").hidden = false;
    at("come").max = run.plan.records;
    at("come").value = run.answered;
    say("asking", run.answered ? `${whole(run.answered)} of ${whole(run.plan.records)} have answered.` : "Asking.");
    await new Promise((done) => setTimeout(done, LOOK));
    run = await asked(`/v1/runs/${run.id}`);
  }
  at("come").hidden = true;
  await showRuns();
  if (run.state === "done") {
    say("asking", `Answered in ${number(run.seconds)} s; the answer stands below.`);
    showAnswer(run.id);
    at("answered").focus({ preventScroll: true });
    at("answer").scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  } else {
    say("asking", sentence(run.why));
    at("asking").className = "wrong";
  }
}

async function showRuns() {
  const told = await asked("/v1/runs");
  runs.clear();
  for (const run of told.runs) runs.set(run.id, run);
  at("history").hidden = !told.runs.length;
  const most = about.limit === null ? "no limit is set" : `the limit is ${number(about.limit)}`;
  say("spent", `The row that was asked most has paid epsilon ${number(told.spent)} in all; ${most}.`);
  at("runs").replaceChildren(...told.runs.toReversed().map(rowOf));
  return told.runs;
}

const titleOf = ({ value, site, only, taus }) => `${taus.toSorted((one, two) => one - two).map(number).join(", ")} quantile${taus.length > 1 ? "s" : ""} of ${value}${only ? ` at ${only}` : site ? ` by ${site}` : ""}`;
const plannedOf = (run, k) => run.plan.widths[k].text ?? "in levels";

function rowOf(run) {
  const link = made("button", { type: "button", class: "link", "data-run": run.id }, titleOf(run.asked));
  link.addEventListener("click", () => {
    showAnswer(run.id);
    at("answered").focus();
  });
  const done = run.state === "done";
  const each = (text) => (done ? run.result.estimates.map((one, k) => made("div", {}, text(one, k))) : [""]);
  const state = { asking: "being asked", refused: `not asked: ${run.why}`, failed: run.why }[run.state];
  return made("tr", {},
    made("th", { scope: "row" }, String(run.number)),
    made("td", {}, done ? link : titleOf(run.asked), made("div", { class: "soft" }, `${run.asked.method}, ${number(100 * run.asked.level)} %`)),
    made("td", {}, number(run.asked.epsilon)),
    made("td", {}, ...(done ? each((one) => `${one.text.estimate}, ${intervalOf(one)}`) : [state])),
    made("td", {}, ...each((one) => one.width ?? "open")),
    made("td", {}, ...each((one, k) => plannedOf(run, k))),
    made("td", {}, run.state === "refused" ? "nothing" : number(done ? run.result.in_all : run.plan.cost.after)));
}

function sayAnswer(run) {
  const { estimates, jointly } = run.result;
  const confidence = `With ${number(100 * run.asked.level)} % confidence`;
  if (jointly) return `${confidence}, all of them together, the quantiles of ${run.asked.value} lie in these intervals.`;
  const [only] = estimates;
  const lies = only.low !== null && only.low === only.high ? `is ${only.text.low}` : only.low === null && only.high === null ? "may lie anywhere" : only.low === null ? `lies below ${only.text.high}` : only.high === null ? `lies above ${only.text.low}` : `lies between ${only.text.low} and ${only.text.high}`;
  return `The ${number(only.of)} quantile of ${run.asked.value} is about ${only.text.estimate}. ${confidence} it ${lies}.`;
}

function showAnswer(id) {
  const run = runs.get(id);
  shown = id;
  at("answer").hidden = false;
  say("answered", `Answer ${run.number}`);
  say("said", sayAnswer(run));
  at("notes").replaceChildren(...run.result.notes.map((each) => made("li", {}, `${sentence(each).replace(/\.$/, "")}.`)));
  at("numbers").replaceChildren(...run.result.estimates.map((each, k) => made("tr", {},
    made("th", { scope: "row" }, number(each.of)), made("td", {}, each.text.estimate), made("td", {}, intervalOf(each)),
    made("td", {}, each.width ?? "open"), made("td", {}, plannedOf(run, k)))));
  say("promise", run.result.promise);
  say("in-all", `${whole(run.result.reports)} ${about.person === null ? "records" : "persons"} answered. With this question, the dearest of their rows has paid epsilon ${number(run.result.in_all)} in this session.`);
  at("assumptions").replaceChildren(...run.result.assumptions.map((each) => made("li", {}, each)));
  say("saved", "");
  for (const link of document.querySelectorAll("[data-run]")) link.closest("tr").toggleAttribute("aria-current", link.dataset.run === id);
  draw();
}

function draw() {
  const run = runs.get(shown);
  if (!run) return;
  at("picture").replaceChildren(pictureOf(run, Math.max(260, Math.floor(at("figure").clientWidth))));
  const planned = run.plan.widths.some((each) => each.width);
  say("drawn", `The bar is the interval, the point the estimate${planned ? "; the dashed frame is as wide as was planned" : ""}.${run.result.estimates.some((each) => each.low === null || each.high === null) ? " An arrow is an open end." : ""}`);
}

/** Save what the program has of an answer as a file. */
async function save(what, ending, type) {
  const run = runs.get(shown);
  say("saved", "");
  try {
    const answer = await fetch(`/v1/runs/${run.id}/${what}`, { headers: { authorization: `Bearer ${key}` } });
    if (!answer.ok) throw new Error(sentence((await answer.json()).error));
    const name = `${about.file.replace(/\.[^.]*$/, "")}-${run.asked.value.replace(/[^\w-]+/g, "-")}-${run.number}.${ending}`;
    const link = made("a", { href: URL.createObjectURL(new Blob([await answer.text()], { type })), download: name });
    link.click();
    URL.revokeObjectURL(link.href);
    say("saved", `Saved as ${name}; no record is in it.`);
  } catch (error) {
    say("saved", error instanceof TypeError ? "The program cannot be reached." : error.message);
  }
}

async function end() {
  if (!confirm("End the program? Answers that were not saved are then in the terminal alone.")) return;
  try {
    await asked("/v1/end", {});
    over = true;
    clearTimeout(waiting);
    at("ask").disabled = at("end").disabled = true;
    say("told", "The program has ended; nothing more can be asked. What was found stays on this page until it is left.");
  } catch (error) {
    say("told", error.message);
  }
}

function change() {
  arrange(about.columns);
  at("ask").disabled = true;
  clearTimeout(waiting);
  if (!over) waiting = setTimeout(plan, PAUSE);
}

try {
  addEventListener("hashchange", () => /^#[0-9a-f]{64}$/.test(location.hash) && location.reload());
  await enter();
  about = await asked("/v1/file");
  showFile();
  const only = begin(about, change);
  arrange(about.columns);
  say("told", "");
  at("form").addEventListener("submit", (event) => event.preventDefault());
  at("ask").addEventListener("click", ask);
  at("end").addEventListener("click", end);
  at("save-result").addEventListener("click", () => save("result", "json", "application/json"));
  at("save-report").addEventListener("click", () => save("report", "html", "text/html"));
  new ResizeObserver(draw).observe(at("figure"));
  const begun = await showRuns();
  const last = begun.filter((run) => run.state === "done").at(-1);
  if (last) showAnswer(last.id);
  await plan(only);
  const open = begun.find((run) => run.state === "asking");
  if (open) {
    busy = true;
    await follow(open);
    busy = false;
    plan();
  }
} catch (error) {
  say("told", error.message);
  at("told").className = "wrong";
}
