// Compares a regression's letters in JavaScript with the shared vectors; prints what differs, and how many were compared.
import { readFileSync } from "node:fs";
const [script, file] = process.argv.slice(2);
const device = await import(script);
const bytes = (text) => Uint8Array.from(text.match(/../g), (byte) => parseInt(byte, 16));
let wrong = 0;
let compared = 0;
const same = (what, here, there) => {
  compared += 1;
  if (here !== there) { wrong += 1; console.log(what, here, there); }
};
for (const { card: text, identity, asked, letters } of JSON.parse(readFileSync(file, "utf8"))) {
  const known = await device.readCard(text, 24);
  const { card } = known;
  const terms = card.regression;
  same("identity", device.hex(known.study), identity);
  same("cap", await device.readCard(text, card.epsilon).then(() => "no", () => "yes"), "no");
  same("cap", await device.readCard(text, card.epsilon * 0.999999).then(() => "no", () => "yes"), "yes");
  for (const [round, id, word, channel, row, dice, letter] of letters) {
    const own = await device.wordOf(card.nonce, round, bytes(id));
    same("word", own.toString(), word);
    same("channel", device.channelOf(own, terms.channels.length), channel);
    const features = device.scaled(terms, row.slice(1));
    const found = device.rowLetter(terms.channels[channel], asked[channel], features, row[0], own, dice.map(BigInt));
    same("letter", found, letter);
  }
  for (const part of ["low", "extra"]) { // one outcome of the die moved is no channel, or one that costs more
    const other = structuredClone(terms);
    const { box, weights } = other.channels[0].blocks[0];
    const at = box && part === "extra" ? 1 : 0;
    weights[0][at] = (BigInt(weights[0][at]) + 1n).toString();
    let said = "taken";
    try { device.checkTerms(other, card.taus, card.epsilon); } catch { said = "refused"; }
    same("weights", said, "refused");
  }
  const row = Object.fromEntries([terms.response, ...terms.columns].map((name) => [name, 1]));
  const query = { study: device.hex(known.study), round: 3, group: 0, channels: asked };
  const report = await device.makeRowReport(known, query, row);
  same("report", device.hex(report.slice(32, 38)), "000000030000");
  for (const [strange, other] of [[{ ...query, round: 0 }, row], [{ ...query, channels: [] }, row], [query, { wait: 1 }], [query, 7]]) {
    same("refused", await device.makeRowReport(known, strange, other).then(() => "taken", () => "refused"), "refused");
  }
}
console.log(`${compared} compared, ${wrong} wrong`);
