// What all pages share: elements by name, what the program behind a page answers, and numbers as people read them.
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

/** What asks the program behind a page, which is called so: it returns the answer, or an error with its own sentence. */
export function asking(who) {
  return async (path, { body, key } = {}) => {
    const headers = { ...(key ? { authorization: `Bearer ${key}` } : {}), ...(body ? { "content-type": "application/json" } : {}) };
    const options = body ? { method: "POST", body: JSON.stringify(body), headers } : { headers };
    let answer;
    try {
      answer = await fetch(path, options);
    } catch {
      throw new Error(`The ${who} cannot be reached.`);
    }
    const told = await answer.json().catch(() => ({}));
    if (answer.ok) return told;
    const error = new Error(sentence(told.error ?? `the ${who} refused with status ${answer.status}.`));
    error.status = answer.status;
    throw error;
  };
}

export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

const DIGITS = new Intl.NumberFormat("en", { maximumSignificantDigits: 5 });
const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export const number = (value) => DIGITS.format(value);
export const whole = (value) => WHOLE.format(value);
