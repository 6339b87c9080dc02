// The wizard: after every change the collector says what the study would come to; Start begins it.
import { asked, at, made, number, say, sentence, whole } from "/page.js";

const PAUSE = 300; // milliseconds after the last change
let waiting, latest = 0;

/** A number as it was typed; a text that is none goes to the collector as it is, which says what is wrong. */
function typed(id) {
  const text = at(id).value.trim();
  const found = Number(text.replaceAll("_", "").replace(/,(?=\d{3}\b)/g, ""));
  return text === "" ? undefined : Number.isFinite(found) ? found : text;
}

/** A level, or several. */
function levels() {
  const parts = at("tau").value.split(",").map((each) => each.trim()).filter(Boolean);
  const found = parts.map((each) => (Number.isFinite(Number(each)) ? Number(each) : each));
  return found.length > 1 ? found : found[0];
}

/** The study as its file would hold it; what was left empty is left out. */
function studyNow() {
  const groups = at("groups").value.split(",").map((each) => each.trim()).filter(Boolean);
  const [low, high] = [typed("bounds-low"), typed("bounds-high")];
  const method = document.querySelector("[name=method]:checked").value;
  const quantile = {
    tau: levels(), epsilon: typed("epsilon"), level: typed("level"), method,
    bounds: low === undefined && high === undefined ? undefined : [low ?? "nothing", high ?? "nothing"],
    resolution: typed("resolution"), scale: typed("scale"),
    until: method === "sequence" ? typed("until") : undefined,
  };
  const study = { name: at("name").value.trim(), question: at("question").value.trim() || undefined, groups: groups.length ? groups : undefined, people: typed("people"), quantile, rounds: { deadline: typed("deadline"), grace: typed("grace") } };
  return JSON.parse(JSON.stringify(study)); // leaves out what is undefined
}

function show(plan) {
  const widths = plan.expected.filter((each) => each.width !== null).map((each) => number(Number(each.width.toPrecision(2))));
  const facts = [
    ...(widths.length ? [["Expected width", `about ${widths.join(", ")}`]] : []),
    ["Epsilon, as computed", number(plan.epsilon)],
    ["Rounds", plan.rounds],
    ["People in all", whole(plan.people)],
  ];
  at("plan").hidden = false;
  at("plan").replaceChildren(...facts.map(([name, text]) => made("div", {}, made("dt", {}, name), made("dd", {}, text))));
  const reaches = plan.expected.map((each) => (plan.expected.length > 1 ? `at ${each.of} ${each.text}` : each.text));
  say("reach", reaches.length
    ? `With all these answers, the interval of a group will reach ${reaches.join("; ")}.`
    : "How wide the intervals of such a study will be is not known beforehand.");
  say("assuming", reaches.length ? `Assuming ${plan.expected[0].assuming}.` : "");
  at("warnings").hidden = !plan.warnings.length;
  at("warnings").replaceChildren(...plan.warnings.map((each) => made("li", {}, `Warning: ${each}.`)));
  say("toml", plan.toml);
}

function showNone(why) {
  say("refused", why);
  at("refused").className = "wrong";
  at("plan").hidden = at("warnings").hidden = true;
  say("reach", "");
  say("assuming", "");
  say("toml", "");
}

async function plan() {
  const turn = (latest += 1);
  const study = studyNow();
  const named = study.name !== "";
  at("stops").hidden = study.quantile.method !== "sequence";
  if (!at("key").value) {
    at("start").disabled = true;
    showNone("Type the admin key, and this page says what the study will come to.");
    at("refused").className = "soft";
    return;
  }
  try {
    const found = await asked("/v1/plan", { body: named ? study : { ...study, name: "new study" }, key: at("key").value });
    if (turn !== latest) return; // a later change is on its way
    if (found.refused) {
      at("start").disabled = true;
      showNone(sentence(found.refused));
      return;
    }
    at("refused").className = "soft";
    say("refused", named ? "" : "Give the study a name, and it can start.");
    show(found);
    at("start").disabled = !named;
  } catch (error) {
    if (turn !== latest) return;
    at("start").disabled = true;
    showNone(error.status === 401 || error.status === 403 ? `${error.message} Check the admin key.` : error.message);
  }
}

at("form").addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(plan, PAUSE);
});

at("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (at("start").disabled) return;
  at("start").disabled = true;
  try {
    const begun = await asked("/v1/studies", { body: studyNow(), key: at("key").value });
    location.assign(`/studies/${begun.study}`);
  } catch (error) {
    say("started", error.message);
    at("started").className = "wrong";
    at("start").disabled = false;
  }
});

at("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(at("toml").textContent);
    say("copied", "Copied.");
  } catch {
    getSelection().selectAllChildren(at("toml"));
    say("copied", "The text is selected; copy it with the keyboard.");
  }
});

plan();
