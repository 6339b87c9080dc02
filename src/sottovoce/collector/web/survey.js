// The survey: the answer is randomised here, in the visitor's browser, and the page shows exactly what leaves.
import { answer, hex, readCard } from "/device.js";
import { asked, at, made, number, say, sentence } from "/page.js";

const CAP = "sottovoce.cap";
const USUAL = 2; // the limit of a visitor who has set none
const study = location.pathname.split("/")[2];
const url = `${location.origin}/v1/studies/${study}`;
const DRAWN = "drawn when you answer";
const LETTER = "Drawn by a die that only this browser sees, from what is asked then and from your numbers: it tells no more of them than epsilon allows.";
let card, kept;

const numeric = (text) => (text.trim() === "" ? NaN : Number(text.trim().replace(",", ".")));

const bytesOf = (text) => Uint8Array.from(text.match(/../g) ?? [], (byte) => parseInt(byte, 16));

/** What this browser remembers; a browser that keeps nothing cannot promise to send the same bytes again. */
function memory() {
  try {
    localStorage.setItem("sottovoce.tried", "1");
    localStorage.removeItem("sottovoce.tried");
    return localStorage;
  } catch {
    throw new Error("This browser lets the page keep nothing, so the same bytes could not be sent again; nothing was answered.");
  }
}

function capNow() {
  const set = numeric(localStorage.getItem(CAP) ?? "");
  return set > 0 && set <= 24 ? set : USUAL;
}

/** Show the 41 bytes, field by field: before an answer what is known of them, after it what they are. */
function showBytes(body) {
  const field = (from, to) => hex(body.slice(from, to));
  const whole = (from, to) => parseInt(field(from, to), 16);
  const group = body ? card.groups[whole(36, 38)] : at("group").value || card.groups[0];
  const rows = [
    ["study", 16, body ? field(0, 16) : study, "Which study this is for."],
    ["id", 16, body ? field(16, 32) : card.tokens ? "your token" : DRAWN, card.tokens
      ? "Your token, so that each person is counted once: whoever gave it to you can tell by it that this report is yours."
      : "A random number of this report alone, so that it is counted once. It says nothing of you."],
    ["round", 4, body ? field(32, 36) : DRAWN, body ? `Round ${whole(32, 36)} of the study.` : "The round that is open then."],
    ["group", 2, body ? field(36, 38) : `the number of ${group}`, `Your group: ${group}.`],
    ...(card.regression ? [["letter", 3, body ? field(38, 41) : DRAWN, LETTER]] : [
    ["point", 2, body ? field(38, 40) : DRAWN, "Which of the round's points your answer was compared with; drawn by lot here."],
    ["letter", 1, body ? field(40, 41) : DRAWN, "0 or 1: whether your answer lies above that point, told truthfully or not as a die decides that only this browser sees."],
    ]),
  ];
  at("bytes").replaceChildren(...rows.map(([name, size, said, means]) => {
    const head = made("th", { scope: "row" }, name, made("small", {}, `${size} byte${size > 1 ? "s" : ""}`));
    return made("tr", {}, head, made("td", { class: said === DRAWN ? "soft" : "bytes" }, said), made("td", {}, means));
  }));
  say("sent", body ? "What left this device" : "What leaves this device");
}

/** What is kept here from an earlier visit: the same bytes are sent again, never new ones. */
function showKept() {
  at("fields").hidden = at("which").hidden = at("tokens").hidden = true;
  at("send").textContent = "Send the same bytes again";
  say("promise", "This browser has answered this study. An answer is given once: a second throw of the die would tell more about you.");
  showBytes(bytesOf(kept));
}

function told(text, wrong = false) {
  at("told").className = wrong ? "wrong" : "";
  say("told", text);
}

async function send(event) {
  event.preventDefault();
  const fields = [...at("fields").querySelectorAll("input")];
  for (const each of fields) each.setAttribute("aria-invalid", String(kept === null && !Number.isFinite(numeric(each.value))));
  const bad = fields.find((each) => each.getAttribute("aria-invalid") === "true");
  if (bad) {
    told(`Please give ${fields.length > 1 ? "a number in each field" : "one number"}; nothing has left this device.`, true);
    bad.focus();
    return;
  }
  const numbers = fields.map((each) => numeric(each.value));
  const value = card.regression ? Object.fromEntries(fields.map((each, k) => [each.name, numbers[k]])) : numbers[0];
  const token = at("token").value.trim();
  if (kept === null && card.tokens && !/^[0-9a-f]{32}$/i.test(token)) {
    told("Please give the token that you were sent, 32 digits and letters; nothing has left this device.", true);
    at("token").focus();
    return;
  }
  at("send").disabled = true;
  try {
    const group = at("group").value || card.groups[0];
    const sent = await answer(url, value, { cap: capNow(), group, store: memory(), token: card.tokens ? bytesOf(token) : null });
    for (const each of fields) each.value = "";
    kept = hex(sent.body);
    showKept();
    told(sent.accepted
      ? "Thank you. The 41 bytes below were kept, and nothing else was sent."
      : `The 41 bytes below were sent and not counted: ${sent.why.replace(/\.$/, "")}.`, !sent.accepted);
    at("told").focus();
  } catch (error) {
    kept = localStorage.getItem(keyOf());
    if (kept !== null) showKept();
    const away = error instanceof TypeError;
    told(away ? "The collector cannot be reached; try again later, the same bytes will be sent." : sentence(error.message), true);
  }
  at("send").disabled = false;
}

const keyOf = () => `sottovoce.${study}`;

/** Whether this browser can answer this study; if not, why, in one sentence. */
async function refusal(query, text) {
  if (!globalThis.crypto?.subtle) return "This page came without encryption, so the browser lends it no die: open it over https.";
  if (kept !== null) return "";
  if (query.over) return "The study is over; thank you for coming.";
  try {
    await readCard(text, capNow());
  } catch (error) {
    const dear = `This study costs epsilon ${number(card.epsilon)}, more than the limit of this browser, ${number(capNow())}; nothing was answered. You can set another limit below.`;
    return card.epsilon > capNow() ? dear : sentence(error.message);
  }
  return "";
}

/** A field for each column of a regression, beside that of the response. */
function addFields() {
  const { response, columns, low, high } = card.regression;
  at("value").name = response;
  say("question", `${card.question ? `${card.question} ` : ""}(${response})`);
  if (at("fields").querySelectorAll("input").length > 1) return;
  columns.forEach((name, k) => {
    const hint = made("p", { class: "hint", id: `hint-${k}` }, `From ${number(low[k])} to ${number(high[k])}; what lies beyond is taken as the nearer of them.`);
    const input = made("input", { id: `column-${k}`, name, inputmode: "decimal", autocomplete: "off", "aria-describedby": `hint-${k}` });
    at("fields").append(made("label", { for: `column-${k}` }, name), hint, input);
  });
}

async function look() {
  const answered = await fetch(`${url}/card`);
  if (!answered.ok) throw Object.assign(new Error(), { status: answered.status });
  const text = await answered.text();
  card = JSON.parse(text);
  kept = memory().getItem(keyOf());
  const query = await asked(`${url}/query?group=${encodeURIComponent(at("group").value || card.groups[0])}`);
  document.title = `${card.name}: Sottovoce`;
  say("name", card.name);
  say("question", card.question || "Your answer, a number");
  const many = Boolean(card.regression);
  say("promise", `Your ${many ? "numbers stay" : "number stays"} in this browser: one letter leaves, ` +
    `${many ? "drawn by a die" : "and a die decides whether it tells the truth"} (epsilon ${number(card.epsilon)}).`);
  if (many) addFields();
  if (!at("group").options.length) at("group").replaceChildren(...card.groups.map((name) => new Option(name)));
  at("which").hidden = card.groups.length < 2;
  at("tokens").hidden = !card.tokens;
  at("results").href = `/studies/${study}`;
  if (kept === null) showBytes(null);
  else showKept();
  const why = await refusal(query, text);
  at("send").disabled = why !== "";
  told(why || (query.needs || kept !== null ? "" : "Nobody is asked just now: the study waits between two rounds, or is paused. You may try."), why !== "" && !query.over);
}

at("token").value = location.hash.slice(1); // what follows # in an address is not sent to anybody
at("form").addEventListener("submit", send);
at("group").addEventListener("change", () => showBytes(null));
at("cap").addEventListener("change", async () => {
  const cap = numeric(at("cap").value);
  if (!(cap > 0 && cap <= 24)) {
    say("cap-told", "Give an epsilon above 0, up to 24; the limit stays as it was.");
    return;
  }
  localStorage.setItem(CAP, String(cap));
  say("cap-told", `The limit is now ${number(cap)}.`);
  await look();
});

try {
  await look();
  at("cap").value = String(capNow());
} catch (error) {
  told(error.status === 404 ? "There is no such study here; please check the address." : error.message || "The collector cannot be reached.", true);
}
