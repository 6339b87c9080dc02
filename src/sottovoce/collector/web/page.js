// What the pages share: elements by name, what the collector answers, and numbers as people read them.
export const at = (id) => document.getElementById(id);

/** An element with attributes and children; a text is set as text, never as markup. */
export function made(tag, attributes = {}, ...children) {
  const found = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) found.setAttribute(name, value);
  found.append(...children);
  return found;
}

/** Set a text where it has changed, so that a screen reader is not told the same twice. */
export function say(id, text) {
  if (at(id).textContent !== text) at(id).textContent = text;
}

/** What the collector answers, or an error whose message is the collector's own sentence. */
export async function asked(path, { body, key } = {}) {
  const headers = { ...(key ? { authorization: `Bearer ${key}` } : {}), ...(body ? { "content-type": "application/json" } : {}) };
  const options = body ? { method: "POST", body: JSON.stringify(body), headers } : { headers };
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error("The collector cannot be reached.");
  }
  const told = await answer.json().catch(() => ({}));
  if (answer.ok) return told;
  const error = new Error(sentence(told.error ?? `the collector refused with status ${answer.status}.`));
  error.status = answer.status;
  throw error;
}

export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

const DIGITS = new Intl.NumberFormat("en", { maximumSignificantDigits: 5 });
const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export const number = (value) => DIGITS.format(value);
export const whole = (value) => WHOLE.format(value);

/** How many came a second between two counts, in words. */
export function rate(before, after) {
  if (!before || after.at <= before.at) return "–";
  const found = Math.max(0, (after.reports - before.reports) / (after.at - before.at));
  return found > 0 && found < 10 ? found.toFixed(1) : whole(found);
}

/** What a study's state is called; one that asks nobody any more is over, whatever its state. */
export const stateOf = (about) => (about.state === "closed" ? "closed" : about.over ? "over" : about.state);
