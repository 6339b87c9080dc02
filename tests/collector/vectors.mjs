// Compares the JavaScript device with the shared vectors; prints what differs, and how many were compared.
import { readFileSync } from "node:fs";
const [script, file] = process.argv.slice(2);
const device = await import(script);
const kept = JSON.parse(readFileSync(file, "utf8"));
const bytes = (text) => Uint8Array.from(text.match(/../g), (byte) => parseInt(byte, 16));
let wrong = 0;
let compared = 0;
const same = (what, here, there) => {
  compared += 1;
  if (here !== there) { wrong += 1; console.log(what, here, there); }
};
for (const [epsilon, flips] of kept.flips) same("flips", device.leastFlips(epsilon).toString(), flips);
for (const [needs, word, point] of kept.lots) same("lot", device.drawn(needs, BigInt(word)), point);
for (const [value, point, flips, words, resolution, period, letter] of kept.letters)
  same("letter", device.letterOf(value, point, BigInt(flips), words.map(BigInt), resolution, period), letter);
const [study, id, round, group, point, letter, body] = kept.report;
same("report", device.hex(device.pack(bytes(study), bytes(id), round, group, point, letter)), body);
same("identity", device.hex((await device.readCard(kept.card, 1)).study), kept.identity);
const refused = await device.readCard(kept.card, 0.999999999).then(() => "no", () => "yes");
same("cap", refused, "yes");
console.log(`${compared} compared, ${wrong} wrong`);
