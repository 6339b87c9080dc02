// Lets the JavaScript device meet a collector that lies; prints what it does wrong, and how many checks there were.
import { readFileSync } from "node:fs";
const [script, quantile, regression] = process.argv.slice(2);
const device = await import(script);
const CARD = JSON.parse(readFileSync(quantile, "utf8")).card;
const ROWS = JSON.parse(readFileSync(regression, "utf8"));
const text = new TextEncoder();
let wrong = 0;
let checks = 0;
const check = (what, holds) => {
  checks += 1;
  if (!holds) { wrong += 1; console.log(what); }
};
const fails = (call) => Promise.resolve().then(call).then(() => false, () => true);
const nameOf = async (card) => device.hex(new Uint8Array(await crypto.subtle.digest("SHA-256", text.encode(card))).slice(0, 16));
const changed = (card, more) => {
  const whole = { ...JSON.parse(card), ...more };
  return JSON.stringify(Object.fromEntries(Object.keys(whole).sort().map((key) => [key, whole[key]])));
};

class Store {
  kept = new Map();
  getItem(key) { return this.kept.get(key) ?? null; }
  setItem(key, value) { this.kept.set(key, String(value)); }
}

// A collector: what it says of each study, what it was sent, and whether the report was kept before.
const collector = { cards: new Map(), query: {}, sent: [], kept: [], reply: { accepted: 1, refused: [] }, store: null, options: [] };
globalThis.fetch = async (url, options = {}) => {
  collector.options.push(options);
  const path = new URL(url).pathname;
  const study = path.split("/")[3];
  const json = (value) => ({ json: async () => value, text: async () => value });
  if (path.endsWith("/card")) return json(collector.cards.get(study));
  await new Promise((done) => setTimeout(done, 1)); // others come in between
  if (path.endsWith("/query")) return json({ study: await nameOf(collector.cards.get(study)), round: 1, group: 0, points: [30, 60], periods: [0, 0], needs: [5, 5], ...collector.query });
  const body = device.hex(options.body);
  collector.kept.push([...collector.store.kept.values()].includes(body));
  collector.sent.push(body);
  if (collector.reply instanceof Error) throw collector.reply;
  return json(collector.reply);
};
const HOST = "https://collector.example/v1/studies/";
async function run(card, named = null) {
  const name = named ?? (await nameOf(card));
  collector.cards.set(name, card);
  return HOST + name;
}
const fresh = (more = {}) => {
  collector.sent = [];
  collector.kept = [];
  collector.store = new Store();
  return { cap: 1, store: collector.store, ...more };
};

const url = await run(CARD);
let options = fresh();
await device.answer(url, 44, options);
await device.answer(`${url}/`, -1e9, options);
check("a second answer sends the same bytes", collector.sent.length === 2 && collector.sent[0] === collector.sent[1]);
check("a report is kept before it is sent", collector.kept.every(Boolean));
check("nobody is followed elsewhere", collector.options.every((each) => each.redirect === "error"));

for (const reply of [new TypeError("away"), { error: "broken" }, { accepted: 0, refused: [[0, "late"]] }, {}, { refused: 7 }]) {
  collector.reply = reply;
  const said = await device.answer(url, 44, options).catch(() => null);
  check("an error is no acceptance", said === null || (said.accepted === false && typeof said.why === "string"));
}
collector.reply = { accepted: 1, refused: [] };
check("errors get no second letter", new Set(collector.sent).size === 1);

options = fresh();
await Promise.all([1, 2, 3, 4].map(() => device.answer(url, 44, options)));
check("tabs that answer at once send the same bytes", new Set(collector.sent).size === 1);

options = fresh();
await run(changed(CARD, { nonce: "ff" }), await nameOf(CARD));
check("another card at the same address is refused", await fails(() => device.answer(url, 44, options)));
check("and nothing is sent", collector.sent.length === 0 && options.store.kept.size === 0);
await run(CARD);

options = fresh({ total: 2 });
const many = await Promise.all([...Array(6).keys()].map((k) => run(changed(CARD, { nonce: `0${k}` }))));
const said = await Promise.allSettled(many.map((each) => device.answer(each, 44, options)));
check("studies at once cost no more than all may", said.filter((each) => each.status === "fulfilled").length === 2);
check("and no more letters leave", new Set(collector.sent).size === 2);
check("a total that is no number refuses", await fails(() => device.answer(url, 44, fresh({ total: NaN }))));

for (const cap of [0.999999, 0, -1, NaN, undefined, Infinity, "x"]) check(`a cap of ${cap} refuses`, await fails(() => device.readCard(CARD, cap)));
const cards = [
  { epsilon: "0x1" }, { epsilon: "1" }, { epsilon: [1] }, { epsilon: null }, { epsilon: 1e999 }, { epsilon: 0.5 },
  { flips: 1240273392707995214 }, { flips: "0x1136" }, { flips: "-1" }, { flips: "" }, { flips: ["1240273392707995214"] },
  { groups: [] }, { groups: "all" }, { groups: { length: 1 } }, { groups: [1] }, { resolution: -1 }, { resolution: "1" },
  { resolution: undefined }, { taus: ["0.5"] }, { taus: 0.5 }, { version: "1" }, { nonce: 7 }, { epsilon: 0.999 },
];
for (const more of cards) {
  const card = changed(CARD, more);
  const there = await run(card);
  check(`a card with ${JSON.stringify(more)} is refused`, await fails(async () => device.answer(there, 44, fresh({ cap: 3, total: 3 }))));
  check("without a letter", collector.sent.length === 0);
}
for (const card of ["null", "[]", "7", '"x"', "{}", "no"]) check(`a card ${card} is refused`, await fails(() => device.readCard(card, 1)));
check("flips of one outcome fewer are refused", await fails(() => device.readCard(changed(CARD, { flips: String(BigInt(JSON.parse(CARD).flips) - 1n) }), 3)));
const dear = changed(CARD, { epsilon: 3, flips: device.leastFlips(3).toString() });
check("a dearer channel than the cap is refused", await fails(() => device.readCard(dear, 2)));
check("and taken by who allows it", !(await fails(() => device.readCard(dear, 3))));

const known = await device.readCard(CARD, 1);
const here = { study: device.hex(known.study), round: 1, group: 0, points: [30, 60], periods: [0, 0], needs: [5, 5] };
const queries = [
  { points: [NaN, 1] }, { points: [null, 1] }, { points: ["1", "2"] }, { points: "12" }, { points: { length: 2 } }, { points: [1] },
  { periods: [-1, 0] }, { periods: [Infinity, 0] }, { needs: [0, 0] }, { needs: [1.5, 1] }, { needs: [-1, 5] }, { needs: [2 ** 60, 1] },
  { needs: [] , points: [], periods: [] }, { round: 0 }, { round: 2 ** 32 }, { round: "1" }, { group: known.card.groups.length }, { group: -1 }, { group: "0" },
  { study: "00".repeat(16) }, { points: Array(65537).fill(1), periods: Array(65537).fill(0), needs: Array(65537).fill(1) },
];
for (const more of queries) check(`a query with ${JSON.stringify(more).slice(0, 60)} is refused`, await fails(() => device.makeReport(known, { ...here, ...more }, 44)));
for (const value of [NaN, Infinity, "5", null, undefined, true, 5n]) check(`a value ${String(value)} is refused`, await fails(() => device.makeReport(known, here, value)));

// The same dice and another value: all bytes but the letter are the same, whatever is asked.
const system = crypto.getRandomValues.bind(crypto);
function seeded(seed) {
  let state = BigInt(seed) + 1n;
  const word = () => {
    state = BigInt.asUintN(64, state * 6364136223846793005n + 1442695040888963407n);
    return state ^ (state >> 29n);
  };
  Object.defineProperty(crypto, "getRandomValues", {
    configurable: true,
    value: (array) => array.map(() => (array instanceof BigUint64Array ? BigInt.asUintN(64, word()) : Number(word() >> 40n & 255n))),
  });
}
const unseeded = () => Object.defineProperty(crypto, "getRandomValues", { configurable: true, value: system });
const VALUES = [0, 1, -1, 44, 1e-300, 1e300, -1e300, 1.7e308, -1.7e308];
for (const resolution of [0, 1, 1e308]) {
  const own = await device.readCard(changed(CARD, { resolution }), 1);
  for (const point of [0, 44, -1.7e308, 5e-324]) for (const period of [0, 5e-324, 1, 1.7e308]) {
    const seen = new Set();
    for (const value of VALUES) {
      seeded(23);
      const asked = { ...here, study: device.hex(own.study), points: [point, 0], periods: [period, 1], needs: [1, 3] };
      seen.add(device.hex(device.makeReport(own, asked, value)).slice(0, -2));
    }
    if (seen.size > 1) check(`what is seen at ${point}, ${period}, ${resolution}`, false);
  }
}
const faint = await device.readCard(changed(CARD, { epsilon: 1e-12, flips: device.leastFlips(1e-12).toString() }), 1);
let same = true;
for (let seed = 0; seed < 40; seed += 1) {
  const bodies = [0, 100].map((value) => {
    seeded(seed);
    return device.hex(device.makeReport(faint, { ...here, study: device.hex(faint.study) }, value));
  });
  same &&= bodies[0] === bodies[1];
}
check("where epsilon is nearly nothing, two values send the same bytes", same);
unseeded();

// Its own dice: ids, points and letters differ from report to report; each fails by chance less than once in 2^100.
const bodies = [100, 0].map((value) => Array.from({ length: 500 }, () => device.makeReport(known, here, value)));
for (const own of bodies) {
  check("letters are both", new Set(own.map((body) => body[40])).size === 2);
  check("points are both", new Set(own.map((body) => body[39])).size === 2);
  check("ids are all others", new Set(own.map((body) => device.hex(body.slice(16, 32)))).size === 500);
}
const ones = bodies.map((own) => own.reduce((sum, body) => sum + body[40], 0));
check("a value above its points says so more often", ones[0] > ones[1]);

// A row: bounds between which nothing can be divided, boxes too large to count, columns that are names of other things.
const narrow = JSON.parse(ROWS[0].card);
narrow.regression.low = [0, 0];
narrow.regression.high = [5e-324, 30];
check("bounds without a width are refused", await fails(() => device.readCard(JSON.stringify(narrow), 24)));
const box = ROWS.map((each) => JSON.parse(each.card)).find((each) => each.regression.channels[0].blocks[0].box);
for (const shape of [[1, 1e9, 2, 1], [1, 2, 2 ** 40, 1], [1.5, 1, 2, 1], [1, 1, 1, 2], [1, -1, 2, 1], [1, 201, 1, 1], ["1", 1, 2, 1]]) {
  const other = structuredClone(box);
  other.regression.channels[0].blocks[0].box = shape;
  check(`a box ${shape} is refused`, await fails(() => device.readCard(JSON.stringify(other), 24)));
}
for (const row of ROWS) {
  const own = await device.readCard(row.card, 24);
  const terms = own.card.regression;
  const asked = { study: device.hex(own.study), round: 3, group: 0, channels: row.asked };
  const seen = new Set();
  for (const value of VALUES) {
    seeded(7);
    seen.add(device.hex(await device.makeRowReport(own, asked, Object.fromEntries([terms.response, ...terms.columns].map((name) => [name, value])))).slice(0, 76));
  }
  check("of a row nothing is seen but its letter", seen.size === 1);
}
unseeded();
console.log(`${checks} checks, ${wrong} wrong`);
