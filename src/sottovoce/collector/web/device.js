// A device in JavaScript: the same integers, the same bytes as protocol/device.py; shared vectors in tests/collector.
// It needs WebCrypto, and nothing else: a browser or Node, no build step. Rows of a regression: protocol/device_regression.py.

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

/** exp(epsilon) times 2^256, never more than it is. */
function exponential(epsilon) {
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
  return sum;
}

/** The smallest flip weight whose likelihood ratio stays within exp(epsilon): what a cap means in integers. */
export function leastFlips(epsilon) {
  const under = (1n << SCALE) + exponential(epsilon);
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
  let left = word % needs.reduce((sum, need) => sum + BigInt(need), 0n);
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

/** Whether a card is written as a card is: what is added up or computed with must be a number, and no text like one. */
function isCard(card) {
  return typeof card.epsilon === "number" && /^[1-9]\d{0,18}$/.test(card.flips) && typeof card.flips === "string" &&
    Array.isArray(card.taus) && [card.resolution, ...card.taus].every(Number.isFinite) && card.resolution >= 0 &&
    Array.isArray(card.groups) && card.groups.length > 0 && card.groups.every((name) => typeof name === "string") &&
    typeof card.nonce === "string";
}

/** The card and the 16 bytes that name the study; refuses a channel above the device's own cap. */
export async function readCard(text, cap) {
  const card = JSON.parse(text);
  if (card?.version !== 1) throw new Error("the card is of another version; load the page again.");
  if (!isCard(card)) throw new Error("the card does not make a study; nothing was answered.");
  const flips = BigInt(card.flips);
  if (flips < leastFlips(card.epsilon) || flips < leastFlips(cap) || 2n * flips >= OUTCOMES) {
    throw new Error("the study's channel costs more epsilon than this device allows; nothing was answered.");
  }
  if (card.regression) checkTerms(card.regression, card.taus, Math.min(card.epsilon, cap));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return { card, flips, study: new Uint8Array(digest).slice(0, 16) };
}

const LETTERS = 1 << 24; // of an alphabet: a report has three bytes for its letter
const MOST_COLUMNS = 200;
const [KIND, PRODUCT_OF, SIGN, CHANNEL_OF] = [1n << 20n, 1n << 21n, 1n << 22n, 1n << 23n];
const [TIGHT, PRODUCT] = [-1, 0]; // cells: at the point, and a bit about a product of two covariates
const LARGEST = 1e100; // of a combination's coefficients: their products stay finite
const FARTHEST = 1e200; // of points and steps, and of the ends of ranges: sums and twice of them stay finite
const slopesOf = (block) => (block.box ? block.box[1] : 1);
const ascends = (numbers) => numbers.every((each, k) => each >= (k ? numbers[k - 1] : 0));

/** A weight of the card; decimal text, because numbers end at 2^53. */
function whole(text) {
  if (typeof text !== "string" || !/^(0|[1-9]\d{0,18})$/.test(text)) throw new Error("the card's weights are not whole numbers.");
  return BigInt(text);
}

/** A box as integers: low, extra, and how many letters there are and lie inside; its outcomes add up to the die. */
function boxOf(shape, weights) {
  const [[kinds, slopes, cells, width], [low, extra, spare]] = [shape, weights];
  const sane = shape.length === 4 && weights.length === 3 && [kinds, slopes, cells, width].every(Number.isSafeInteger) && kinds >= 1 && slopes >= 0 && width >= 1 && width <= cells;
  const few = sane && kinds <= LETTERS && cells <= LETTERS && slopes <= MOST_COLUMNS;
  if (!few) throw new Error("the card's channels do not make a regression.");
  const box = { low: whole(low), extra: whole(extra), letters: BigInt(kinds) * BigInt(cells) ** BigInt(slopes) };
  box.inside = BigInt(width) ** BigInt(slopes);
  const outcomes = box.letters * box.low + box.inside * box.extra + whole(spare);
  if (box.letters > LETTERS || outcomes !== OUTCOMES) throw new Error("the card's channels do not make a regression.");
  return box;
}

/** Refuses channels that are none, or whose likelihood ratio is above exp(cap): integers are compared. */
export function checkTerms(terms, taus, cap) {
  const most = exponential(cap);
  const { response, columns, low, high, two_valued: two = [] } = terms;
  let fits = [columns, low, high, two, terms.channels].every(Array.isArray) && [response, ...columns].every((name) => typeof name === "string");
  if (!fits) throw new Error("the card's columns do not make a regression; nothing was answered.");
  const p = columns.length;
  const within = (top, bottom) => top << SCALE <= most * bottom;
  const paid = ({ low, extra, letters, inside }) => extra === 0n || letters === inside || within(low + extra, low);
  const levels = terms.channels.flatMap((channel) => channel.taus);
  fits = p >= 1 && p <= MOST_COLUMNS && new Set([response, ...columns]).size === p + 1 && low.length === p && high.length === p;
  fits &&= low.every((each, k) => Number.isFinite(each) && Number.isFinite(high[k]) && high[k] / 2 - each / 2 > 0);
  fits &&= two.every((column) => Number.isInteger(column) && column >= 0 && column < p);
  fits &&= levels.length === taus.length && levels.every((tau, k) => tau === taus[k]);
  let cheap = true;
  for (const { taus: own, upto, blocks, bit } of terms.channels) {
    fits &&= upto.length === blocks.length && upto.at(-1) === 1 && upto.every(Number.isFinite) && ascends(upto);
    cheap &&= paid(boxOf([1, 1, 2, 1], bit));
    for (const block of blocks) {
      fits &&= slopesOf(block) <= p;
      if (block.slopes !== null) {
        if (!Array.isArray(block.slopes)) throw new Error("the card's blocks do not name their slopes; nothing was answered.");
        const known = block.slopes.every((slope) => Number.isInteger(slope) && slope >= 1 && slope <= p);
        fits &&= known && new Set(block.slopes).size === slopesOf(block) && block.slopes.length === slopesOf(block);
      }
      if (block.box) {
        fits &&= (block.box[0] === 1 || block.box[0] === own.length + 1) && block.weights.length === 1;
        cheap &&= paid(boxOf(block.box, block.weights[0]));
        continue;
      }
      const rows = block.weights.map((row) => row.map(whole));
      fits &&= own.length === 1 && rows.length > 0 && rows.length % 2 === 0 && rows[0].length <= LETTERS;
      fits &&= rows.every((row) => row.length === rows[0].length && row.reduce((sum, weight) => sum + weight, 0n) === OUTCOMES);
      for (let k = 0; fits && k < rows[0].length; k += 1) {
        const column = rows.map((row) => row[k]);
        cheap &&= within(column.reduce((a, b) => (a > b ? a : b)), column.reduce((a, b) => (a < b ? a : b)));
      }
    }
  }
  if (!fits) throw new Error("the card's channels do not make a regression; nothing was answered.");
  if (!cheap) throw new Error("the study's channel costs more epsilon than this device allows; nothing was answered.");
}

/** The public word of whoever answers a round under an id: nobody chooses a device's question for it. */
export async function wordOf(nonce, round, id) {
  const text = new TextEncoder();
  const key = await crypto.subtle.importKey("raw", text.encode(nonce), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const told = new Uint8Array(20);
  new DataView(told.buffer).setUint32(0, round);
  told.set(id, 4);
  return new DataView(await crypto.subtle.sign("HMAC", key, told)).getBigUint64(0);
}

function publicDraw(word, k) {
  let z = BigInt.asUintN(64, word + k * 0x9e3779b97f4a7c15n);
  z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
  z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
  return z ^ (z >> 31n);
}

const uniform = (word, k) => Number(publicDraw(word, BigInt(k)) >> 11n) * 2 ** -53;
export const channelOf = (word, channels) => (channels > 1 ? Math.floor(uniform(word, CHANNEL_OF) * channels) : 0);

/** The slopes, from 1, that a word asks about. */
function slopesOfWord(word, block, p) {
  const count = slopesOf(block);
  if (block.slopes !== null) return block.slopes;
  if (count === p) return Array.from({ length: p }, (_, k) => k + 1);
  if (count === 1) return [1 + Math.floor(uniform(word, 2) * p)];
  const found = [];
  for (let j = 0; j < p && found.length < count; j += 1) {
    if (uniform(word, 2 + j) * (p - j) < count - found.length) found.push(j + 1);
  }
  return found;
}

function rounded(place, positions, word) {
  let below = Math.floor(place);
  if (Number(word >> 11n) * 2 ** -53 < place - below) below += 1;
  return Math.min(Math.max(below, 0), positions - 1);
}

/** A combination of (1, z). */
function fitted(combination, features) {
  let fit = combination[0];
  features.forEach((value, j) => { fit += combination[1 + j] * value; });
  return fit;
}

/** How many of the fitted quantiles lie at or above the response, the highest of them being meant. */
function sideOf(at, features, response) {
  let [wrong, least, side] = [0, 0, 0];
  for (let level = at.length - 1; level >= 0; level -= 1) {
    wrong += response <= fitted(at[level], features) ? -1 : 1;
    if (wrong < least) [least, side] = [wrong, at.length - level];
  }
  return side;
}

/** The product that a cell asks about, from 0 to 1 over its range. */
function productOf(asked, cell, features, word) {
  if (cell === PRODUCT) {
    const d = features.length + 1;
    let [rest, first] = [1 + Math.floor(uniform(word, PRODUCT_OF) * ((d * (d + 1)) / 2 - 1)), 0];
    for (; rest >= d - first; first += 1) rest -= d - first;
    const product = features[first + rest - 1];
    if (rest === 0) return product * product;
    return 0.5 * ((first > 0 ? product * features[first - 1] : product) + 1);
  }
  const [one, other] = asked.pairs[(cell - 1) % asked.pairs.length].map((each) => fitted(each, features));
  const [low, high] = asked.ranges[cell - 1];
  return (Math.min(Math.max(one * other, low), high) - low) / (high - low);
}

/** A product, its range turned to [-1, 1], with the sign of the side beside the point on which one lies. */
function turnedBy(asked, way, features, response, word) {
  const [step, low, high] = asked.steps[way];
  const [intercept, ...slopes] = asked.point[Math.floor(way / (asked.ways.length / asked.point.length))];
  const fit = fitted([intercept + (publicDraw(word, SIGN) & 1n ? step : -step), ...slopes], features);
  const [one, other] = asked.ways[way].map((each) => fitted(each, features));
  const told = (2 * Math.min(Math.max(one * other, low), high) - low - high) / (high - low);
  return response <= fit ? told : -told;
}

/** The letter of one row: its question is the word's, its noise the dice's (rounding, and the die last). */
export function rowLetter(channel, asked, features, response, word, dice) {
  const u = uniform(word, KIND);
  const beyond = asked.upto.length - asked.ways.length;
  const cell = u >= asked.upto.at(-1) ? TIGHT : asked.upto.findIndex((upto) => u < upto);
  let die = dice.at(-1) >> 2n;
  if (cell !== TIGHT) {
    const { low, extra } = boxOf([1, 1, 2, 1], channel.bit);
    if (die < 2n * low) return Number(die / low);
    if (die - 2n * low >= extra) return 0;
    if (cell < beyond) return rounded(productOf(asked, cell, features, word), 2, dice[0]);
    return rounded(0.5 * (turnedBy(asked, cell - beyond, features, response, word) + 1), 2, dice[0]);
  }
  const at = asked.point;
  const draw = channel.upto.length > 1 ? uniform(word, 1) : 0;
  const block = channel.blocks[channel.upto.length > 1 ? channel.upto.findIndex((upto) => draw < upto) : 0];
  const chosen = slopesOfWord(word, block, features.length);
  if (!block.box) {
    const rows = block.weights.map((row) => row.map(BigInt));
    let weights = rows[0].map((_, k) => rows.reduce((least, row) => (row[k] < least ? row[k] : least), rows[0][k]));
    const common = weights.reduce((sum, weight) => sum + weight, 0n);
    if (die >= common) {
      die -= common;
      const positions = rows.length / 2;
      const place = 0.5 * (features[chosen[0] - 1] + 1) * (positions - 1);
      const own = rows[sideOf(at, features, response) * positions + rounded(place, positions, dice[0])];
      weights = own.map((weight, k) => weight - weights[k]);
    }
    let letter = 0;
    for (; die >= weights[letter]; letter += 1) die -= weights[letter];
    return letter;
  }
  const [kinds, slopes, cells, width] = block.box;
  const { low, extra, letters, inside } = boxOf(block.box, block.weights[0]);
  if (die < low * letters) return Number(die / low);
  const rest = die - low * letters;
  if (rest >= extra * inside) return 0;
  let offset = Number(rest / extra);
  const [side, positions] = [sideOf(at, features, response), cells - width + 1];
  const score = (side >= channel.taus.length ? 1 : 0) - channel.taus[0];
  const scale = kinds > 1 ? 1 : score / Math.max(...channel.taus.map((tau) => Math.max(tau, 1 - tau)));
  let [letter, radix] = [0, 1];
  for (let k = 0; k < slopes; k += 1) {
    const place = 0.5 * (scale * features[chosen[k] - 1] + 1) * (positions - 1);
    letter += radix * (rounded(place, positions, dice[k]) + (offset % width));
    offset = Math.floor(offset / width);
    radix *= cells;
  }
  return kinds > 1 ? letter + radix * side : letter;
}

/** Covariates scaled to [-1, 1]; what lies beyond its bounds is moved to them, as privacy needs it. */
export const scaled = ({ low, high, two_valued: two = [] }, row) => row.map((value, k) => {
  const place = (value - (low[k] / 2 + high[k] / 2)) / (high[k] / 2 - low[k] / 2);
  if (two.includes(k)) return place >= 0 ? 1 : -1;
  return Math.min(Math.max(place, -1), 1);
});

/** The upload of one row of a regression: the id first, of which the question follows, then the letter. */
export async function makeRowReport({ card, flips, study }, query, row, token = null) {
  checkToken(card, token);
  const terms = card.regression;
  const names = [terms.response, ...terms.columns];
  const known = row !== null && typeof row === "object" && Object.keys(row).length === names.length;
  if (!known || !names.every((name) => Number.isFinite(row[name]))) {
    throw new Error("a row has one finite number for each column of the card and no other; nothing was sent.");
  }
  const [response, ...values] = names.map((name) => row[name]);
  if (!query.channels) return makeReport({ card, flips, study }, query, response, token);
  const d = names.length;
  const shaped = (value, [length, ...rest]) =>
    Array.isArray(value) && value.length === length && value.every((each) => (rest.length ? shaped(each, rest) : Number.isFinite(each)));
  const fits =
    query.study === hex(study) && query.channels.length === terms.channels.length &&
    Number.isInteger(query.round) && query.round >= 1 && query.round < 2 ** 32 &&
    Number.isInteger(query.group) && query.group >= 0 && query.group < card.groups.length &&
    query.channels.every(({ point, pairs, ranges, ways, steps, upto }, k) => {
      const levels = terms.channels[k].taus.length;
      return [pairs, ranges, ways, steps, upto].every(Array.isArray) && shaped(point, [levels, d]) && shaped(pairs, [pairs.length, 2, d]) &&
        [pairs, ways].flat(3).every((each) => Math.abs(each) <= LARGEST) &&
        shaped(ranges, [2 * pairs.length, 2]) && shaped(steps, [ways.length, 3]) &&
        [...point, ...ranges, ...steps].flat().every((each) => Math.abs(each) <= FARTHEST) &&
        [...ranges, ...steps.map(([, ...ends]) => ends)].every(([low, high]) => high - low > 0) &&
        shaped(ways, [ways.length, 2, d]) && ways.length % levels === 0 && shaped(upto, [1 + 2 * pairs.length + ways.length]) && ascends([...upto, 1]);
    });
  if (!fits) throw new Error("the collector's query does not fit its study; nothing was answered.");
  const id = token ?? crypto.getRandomValues(new Uint8Array(16));
  const word = await wordOf(card.nonce, query.round, id);
  const channel = channelOf(word, terms.channels.length);
  const widest = Math.max(1, ...terms.channels.flatMap(({ blocks }) => blocks.map(slopesOf)));
  const dice = Array.from(crypto.getRandomValues(new BigUint64Array(widest + 1)));
  const letter = rowLetter(terms.channels[channel], query.channels[channel], scaled(terms, values), response, word, dice);
  return pack(study, id, query.round, query.group, letter >> 8, letter & 255);
}

export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Refuse a token where there are none, and its absence where there are. */
function checkToken(card, token) {
  if (Boolean(card.tokens) !== (token !== null) || (token !== null && token.length !== 16)) {
    throw new Error("a study with tokens needs one of 16 bytes, and another study none; nothing was answered.");
  }
}

/** The upload of one value: all randomness is the system's. */
export function makeReport({ card, flips, study }, query, value, token = null) {
  checkToken(card, token);
  const { points, periods, needs, round, group } = query;
  const fits =
    query.study === hex(study) && [points, periods, needs].every((each) => Array.isArray(each) && each.length === needs.length) &&
    needs.length <= 65536 && [...points, ...periods].every(Number.isFinite) && periods.every((period) => period >= 0) &&
    needs.every((need) => Number.isInteger(need) && need >= 0 && need < 2 ** 40) && needs.some((need) => need > 0) &&
    Number.isInteger(round) && round >= 1 && round < 2 ** 32 &&
    Number.isInteger(group) && group >= 0 && group < Math.min(card.groups.length, 65536);
  if (!fits) throw new Error("the collector's query does not fit its study; nothing was answered.");
  if (!Number.isFinite(value)) throw new Error("a device answers with one finite number; nothing was sent.");
  const words = crypto.getRandomValues(new BigUint64Array(3));
  const id = token ?? crypto.getRandomValues(new Uint8Array(16));
  const point = drawn(needs, words[0]);
  const letter = letterOf(value, points[point], flips, [words[1], words[2]], card.resolution, periods[point]);
  return pack(study, id, round, group, point, letter);
}

/** Refuse a study that would bring all studies of this device above what they may cost together. */
function spentWith(store, study, epsilon, total) {
  const spent = { ...JSON.parse(store.getItem("sottovoce.spent") ?? "{}"), [study]: epsilon };
  if (!(Object.values(spent).reduce((sum, each) => sum + each, 0) <= total)) {
    throw new Error("all studies of this device would cost more epsilon than it allows; nothing was answered.");
  }
  return JSON.stringify(spent);
}

/**
 * Answer once: the report is kept in `store` before it is sent, and a second call sends the same bytes.
 * `url` is the study's, https://host/v1/studies/..., whose card must be the one that it names; `cap` is what one report
 * may cost, `total` all of them together. Two tabs that answer at once send the same bytes, too.
 */
export async function answer(url, value, options) {
  const answered = () => answerOnce(url, value, options);
  return globalThis.navigator?.locks ? navigator.locks.request("sottovoce.answer", answered) : answered();
}

/** What the collector answers, and no other host in its place. */
const fetched = (url, more = {}) => fetch(url, { redirect: "error", ...more });

async function answerOnce(url, value, { cap, group, store, token = null, total = Infinity }) {
  const [host, named] = url.replace(/\/+$/, "").split("/v1/studies/");
  const known = await readCard(await (await fetched(`${host}/v1/studies/${named}/card`)).text(), cap);
  const study = hex(known.study);
  if (named !== study) throw new Error("the card is not that of the study which the address names; nothing was answered.");
  const key = `sottovoce.${study}`;
  let kept = store.getItem(key);
  if (kept === null) {
    const asked = encodeURIComponent(group ?? known.card.groups[0]);
    let query;
    for (let tries = 0; tries < 60; tries += 1) {
      query = await (await fetched(`${host}/v1/studies/${named}/query?group=${asked}`)).json();
      if (query.needs) break;
      if (query.over) throw new Error("the study is over; nothing was answered.");
      await new Promise((done) => setTimeout(done, 200));
    }
    if (!query.needs) throw new Error("the collector asks nobody now; try again later, nothing was answered.");
    const fresh = hex(await (known.card.regression ? makeRowReport : makeReport)(known, query, value, token));
    kept = store.getItem(key); // of another tab, which was first: what was drawn here is thrown away
    if (kept === null) {
      store.setItem("sottovoce.spent", spentWith(store, study, known.card.epsilon, total));
      store.setItem(key, fresh);
      kept = fresh;
    }
  }
  const body = Uint8Array.from(kept.match(/../g), (byte) => parseInt(byte, 16));
  const name = encodeURIComponent(known.card.groups[(body[36] << 8) | body[37]]); // by which a proxy finds its host
  const sent = { method: "POST", body, headers: { "content-type": "application/octet-stream" } };
  const told = await (await fetched(`${host}/v1/reports?group=${name}`, sent)).json();
  return { body, accepted: told.accepted === 1, why: String(told.error ?? told.refused?.[0]?.[1] ?? "") };
}
