// The controls: what they say in words, and the question that they stand for.
import { at, made, number, say, whole } from "/parts.js";

const KEPT = "question"; // in the tab, so that a page that is loaded again stands where it stood
let changed = () => {};
let most = 5;

const epsilonAt = (place) => Number((10 ** (place / 50 - 1)).toPrecision(2));
const placeOf = (epsilon) => Math.round(50 * (Math.log10(epsilon) + 1));

/** A small number as it was typed, with a point or a comma before its decimals; NaN where it is none. */
const typed = (text) => (text.trim() === "" ? NaN : Number(text.replace(",", ".")));
const chosen = (name) => document.querySelector(`[name=${name}]:checked`).value;

const guessed = () => (at("known-of").hidden ? "none" : chosen("guess"));

/** A level in words: which part lies below. */
export function levelInWords(tau) {
  if (!(tau > 0 && tau < 1)) return "A number between 0 and 1, such as 0.5.";
  const below = number(100 * tau);
  const called = { 0.5: "The median: ", 0.25: "The lower quartile: ", 0.75: "The upper quartile: " }[tau] ?? "";
  return `${called}${below} % of the values lie below it.`;
}

/** Epsilon in words: odds, and how many answers tell the truth. */
export function epsilonInWords(epsilon) {
  if (!(epsilon > 0)) return "A positive number, such as 1.";
  const odds = number(Number(Math.exp(epsilon).toPrecision(2)));
  const truth = (100 / (1 + Math.exp(-epsilon))).toPrecision(epsilon > 4.6 ? 4 : 2);
  return `A record answers once, yes or no, and a die decides whether it tells the truth: about ${number(Number(truth))} of 100 do. ` +
    `Whoever sees the answer can shift the odds between any two values of the record by at most a factor exp(epsilon), here ${odds}.`;
}

/** A row for one quantile. */
function addLevel(tau) {
  const row = made("div", { class: "tau" });
  const slide = made("input", { type: "range", min: "0.01", max: "0.99", step: "0.01", value: tau, "aria-label": "Quantile, as a slider" });
  const box = made("input", { inputmode: "decimal", autocomplete: "off", value: tau, "aria-label": "Quantile" });
  const words = made("p", { class: "hint" });
  const remove = made("button", { type: "button", class: "plain small" }, "Remove");
  const tell = () => {
    words.textContent = levelInWords(typed(box.value));
    slide.setAttribute("aria-valuetext", words.textContent);
    remove.setAttribute("aria-label", `Remove the ${box.value} quantile`);
  };
  slide.addEventListener("input", () => {
    box.value = slide.value;
    tell();
  });
  box.addEventListener("input", () => {
    if (typed(box.value) > 0) slide.value = typed(box.value);
    tell();
  });
  remove.addEventListener("click", () => {
    row.remove();
    countLevels();
    at("add").focus();
    changed();
  });
  row.append(made("div", { class: "slider" }, slide, box, remove), words);
  at("taus").append(row);
  tell();
}

function countLevels() {
  const rows = [...document.querySelectorAll(".tau")];
  for (const row of rows) {
    row.querySelector("button").hidden = rows.length < 2;
    row.querySelector(".slider").classList.toggle("of-several", rows.length > 1);
  }
  at("add").hidden = rows.length >= most;
  at("several").hidden = rows.length < 2;
  const sequence = document.querySelector("[value=sequence]");
  sequence.disabled = rows.length > 1;
  if (sequence.disabled && sequence.checked) document.querySelector("[value=staged]").checked = true;
}

/** A level that is not there yet. */
function another() {
  const there = levels();
  return [0.5, 0.9, 0.25, 0.75, 0.1, 0.99].find((each) => !there.includes(each)) ?? 0.6;
}

const levels = () => [...document.querySelectorAll(".tau")].map((row) => typed(row.querySelector("[inputmode]").value));

function tellEpsilon() {
  const epsilon = typed(at("epsilon").value);
  say("epsilon-hint", epsilonInWords(epsilon));
  at("epsilon-slide").setAttribute("aria-valuetext", `epsilon ${at("epsilon").value}`);
}

const STEPS = {
  "whole numbers": "Whole numbers are taken as rounded to 1. If they are heaped at another step, as ages at 5, say so.",
  numbers: "Values that are rounded, such as prices to 0.05, need their step, or ties spoil the interval.",
  durations: "Times that are rounded, such as to 5min, need their step, or ties spoil the interval.",
  "dates with a time": "Times that are rounded, such as to 1h, need their step, or ties spoil the interval.",
};
const GUESSES = { dates: ["such as 2026-01-31", "such as 12h"], "dates with a time": ["such as 2026-01-31 14:00", "such as 12h"], durations: ["such as 5min", "such as 5min"] };

/** Show those controls alone that say something now. */
export function arrange(columns) {
  const column = columns.find((each) => each.name === at("value").value);
  const kind = column?.kind ?? "numbers";
  at("known-of").hidden = !/number|date|duration/.test(kind); // categories have no distances
  at("bounds").hidden = guessed() !== "bounds";
  at("spread").hidden = guessed() !== "sd";
  at("kind-of").hidden = !kind.endsWith("numbers");
  at("resolution-of").hidden = !(kind in STEPS);
  say("resolution-hint", STEPS[kind] ?? "");
  [at("low").placeholder, at("sd").placeholder] = GUESSES[kind] ?? ["", ""];
  say("value-hint", column === undefined ? "" : `Holds ${kind}${column.missing ? `; ${whole(column.missing)} missing ones are left out` : ""}.`);
  for (const each of at("site").options) each.disabled = each.value !== "" && each.value === at("value").value;
}

/** The question as it stands; null while there is none. */
export function questionNow() {
  const taus = levels();
  const epsilon = typed(at("epsilon").value);
  if (lacking() !== "") return null;
  return {
    value: at("value").value, site: at("site").value || null, only: at("site").value && at("only").value ? at("only").value : null,
    taus, epsilon, method: chosen("method"), level: Number(at("level").value),
    resolution: at("resolution-of").hidden ? "" : at("resolution").value.trim(),
    kind: at("kind-of").hidden ? null : at("kind").value || null,
    guess: { kind: guessed(), low: at("low").value, high: at("high").value, sd: at("sd").value },
  };
}

/** What is missing before there is a question; nothing if there is one. */
export function lacking() {
  if (at("value").value === "") return "Choose a column, and this says how long the interval will be before anybody is asked.";
  if (!levels().every((tau) => tau > 0 && tau < 1)) return "A quantile lies between 0 and 1: correct its number.";
  if (!(typed(at("epsilon").value) > 0)) return "Epsilon lies above 0: correct its number.";
  const empty = { bounds: ["low", "high"], sd: ["sd"] }[guessed()]?.some((id) => at(id).value.trim() === "");
  return empty ? "Fill in what everybody knows of the values, or choose Nothing." : "";
}

/** Let the controls stand as a question has it. */
function stand(question) {
  for (const id of ["value", "level", "resolution", "epsilon"]) at(id).value = question[id] ?? "";
  at("site").value = question.site ?? "";
  at("kind").value = question.kind ?? "";
  for (const id of ["low", "high", "sd"]) at(id).value = question.guess[id];
  for (const name of ["method", "guess"]) {
    document.querySelector(`[name=${name}][value=${name === "guess" ? question.guess.kind : question.method}]`).checked = true;
  }
  at("taus").replaceChildren();
  question.taus.forEach(addLevel);
}

const USUAL = { value: "", site: null, taus: [0.5], epsilon: 1, method: "staged", level: 0.95, resolution: "", kind: null, guess: { kind: "none", low: "", high: "", sd: "" } };

/** Fill the controls for a file, and call back after every change. */
export function begin(about, after) {
  changed = after;
  most = about.most_levels;
  const kinds = [...new Set(about.columns.filter((each) => each.value).map((each) => each.kind))];
  const option = (name) => made("option", { value: name }, name);
  at("value").replaceChildren(made("option", { value: "" }, "Choose a column"), ...kinds.map((kind) =>
    made("optgroup", { label: kind }, ...about.columns.filter((each) => each.kind === kind).map((each) => option(each.name)))));
  at("site").replaceChildren(made("option", { value: "" }, "none: all in one place"), ...about.columns.filter((each) => each.site).map((each) => option(each.name)));
  let kept = null;
  try {
    kept = JSON.parse(sessionStorage.getItem(KEPT));
    stand({ ...USUAL, ...kept });
  } catch {
    stand(USUAL);
  }
  if (at("value").selectedIndex < 0) at("value").value = "";
  if (at("site").selectedIndex < 0) at("site").value = "";
  countLevels();
  at("epsilon-slide").value = placeOf(typed(at("epsilon").value));
  tellEpsilon();
  at("epsilon-slide").addEventListener("input", () => {
    at("epsilon").value = epsilonAt(Number(at("epsilon-slide").value));
    tellEpsilon();
  });
  at("epsilon").addEventListener("input", () => {
    const epsilon = typed(at("epsilon").value);
    if (epsilon > 0) at("epsilon-slide").value = placeOf(epsilon);
    tellEpsilon();
  });
  at("add").addEventListener("click", () => {
    addLevel(another());
    countLevels();
    changed();
  });
  at("form").addEventListener("input", () => changed());
  return kept?.only ?? null;
}

/** Keep the question in this tab. */
export const keep = (question) => sessionStorage.setItem(KEPT, JSON.stringify(question));
