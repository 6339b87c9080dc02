// A device in JavaScript: the same integers, the same bytes as protocol/device.py; shared vectors in tests/collector.
// It needs WebCrypto, and nothing else: a browser or Node, no build step.

const OUTCOMES = 1n << 62n;
const SCALE = 256n; // bits after the point of the fixed-point exponential

/** The exact fraction of a double, as [numerator, power of two of the denominator]. */
function exact(value) {
  let shift = 0n;
  while (!Number.isInteger(value)) {
    value *= 2;
    shift += 1n;
  }
  return [BigInt(value), shift];
}

/** The smallest flip weight whose likelihood ratio stays within exp(epsilon): what a cap means in integers. */
export function leastFlips(epsilon) {
  if (!(epsilon > 0 && epsilon <= 24)) throw new Error("a cap is an epsilon above 0 and up to 24.");
  const one = 1n << SCALE;
  const [top, shift] = exact(epsilon);
  const x = (top << SCALE) >> (shift + 5n); // a thirty-second of it, whose series is short
  let term = one;
  let sum = one;
  for (let k = 1n; term > 0n; k += 1n) {
    term = ((term * x) >> SCALE) / k;
    sum += term;
  }
  for (let k = 0; k < 5; k += 1) sum = (sum * sum) >> SCALE;
  const under = one + sum;
  return ((OUTCOMES << SCALE) + under - 1n) / under;
}

/** Whether a value lies above a point or, with a period, in the upper half of it. */
export function score(value, point, period) {
  if (period === 0) return value > point;
  const turns = (value - point) / period;
  return turns - Math.floor(turns) >= 0.5;
}

/** The letter of one value: one throw of a die of 2^62 faces, and one of the dither; words are BigInts. */
export function letterOf(value, point, flips, words, resolution, period) {
  const lowest = flips << 2n;
  const die = words[0];
  if (resolution > 0) value += resolution * (Number(words[1] >> 11n) * 2 ** -53 - 0.5);
  const truth = score(value, point, period) && die >= lowest;
  return truth || die > (1n << 64n) - 1n - lowest ? 1 : 0;
}

/** The point that a word of lot falls on, by the answers that each still needs. */
export function drawn(needs, word) {
  let left = word % BigInt(needs.reduce((sum, need) => sum + need, 0));
  for (let point = 0; point < needs.length; point += 1) {
    if (left < BigInt(needs[point])) return point;
    left -= BigInt(needs[point]);
  }
  throw new Error("a lottery needs at least one answer to be open.");
}

/** An upload of one report: 16 bytes of study and 25 bytes of report. */
export function pack(study, id, round, group, point, letter) {
  const body = new Uint8Array(41);
  body.set(study, 0);
  body.set(id, 16);
  const view = new DataView(body.buffer);
  view.setUint32(32, round);
  view.setUint16(36, group);
  view.setUint16(38, point);
  view.setUint8(40, letter);
  return body;
}

/** The card and the 16 bytes that name the study; refuses a channel above the device's own cap. */
export async function readCard(text, cap) {
  const card = JSON.parse(text);
  if (card.version !== 1) throw new Error("the card is of another version; load the page again.");
  const flips = BigInt(card.flips);
  if (flips < leastFlips(card.epsilon) || flips < leastFlips(cap) || 2n * flips >= OUTCOMES) {
    throw new Error("the study's channel costs more epsilon than this device allows; nothing was answered.");
  }
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return { card, flips, study: new Uint8Array(digest).slice(0, 16) };
}

export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** The upload of one value: all randomness is the system's. */
export function makeReport({ card, flips, study }, query, value) {
  const numbers = [...query.points, ...query.periods, ...query.needs];
  const fits =
    query.study === hex(study) &&
    query.points.length === query.needs.length &&
    query.periods.length === query.needs.length &&
    numbers.every(Number.isFinite) &&
    query.needs.every((need) => Number.isSafeInteger(need) && need >= 0) &&
    Number.isInteger(query.round) && query.round >= 1 &&
    Number.isInteger(query.group) && query.group >= 0 && query.group < card.groups.length;
  if (!fits) throw new Error("the collector's query does not fit its study; nothing was answered.");
  if (!Number.isFinite(value)) throw new Error("a device answers with one finite number; nothing was sent.");
  const words = crypto.getRandomValues(new BigUint64Array(3));
  const id = crypto.getRandomValues(new Uint8Array(16));
  const point = drawn(query.needs, words[0]);
  const dice = [words[1], words[2]];
  const letter = letterOf(value, query.points[point], flips, dice, card.resolution, query.periods[point]);
  return pack(study, id, query.round, query.group, point, letter);
}

/**
 * Answer once: the report is kept in `store` before it is sent, and a second call sends the same bytes.
 * `url` is the study's, https://host/v1/studies/...
 */
export async function answer(url, value, { cap, group, store }) {
  const known = await readCard(await (await fetch(`${url}/card`)).text(), cap);
  const key = `sottovoce.${hex(known.study)}`;
  let kept = store.getItem(key);
  if (kept === null) {
    const name = encodeURIComponent(group ?? known.card.groups[0]);
    let query;
    for (let tries = 0; tries < 60; tries += 1) {
      query = await (await fetch(`${url}/query?group=${name}`)).json();
      if (query.needs) break;
      if (query.over) throw new Error("the study is over; nothing was answered.");
      await new Promise((done) => setTimeout(done, 200));
    }
    if (!query.needs) throw new Error("the collector asks nobody now; try again later, nothing was answered.");
    kept = hex(makeReport(known, query, value));
    store.setItem(key, kept);
  }
  const body = Uint8Array.from(kept.match(/../g), (byte) => parseInt(byte, 16));
  const told = await (
    await fetch(`${url.split("/v1/studies/")[0]}/v1/reports`, { method: "POST", body, headers: { "content-type": "application/octet-stream" } })
  ).json();
  return { body, accepted: told.accepted === 1, why: told.error ?? told.refused?.[0]?.[1] ?? "" };
}
