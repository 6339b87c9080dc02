// Lets a JavaScript device answer many times about two inputs that the audit made; prints the bytes it sends, as hex.
// The device's script is named by its file; the card, the query and the inputs come on standard input.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { answer } = await import(pathToFileURL(process.argv[2]));
const { url, card, epsilon, query, value, trials } = JSON.parse(readFileSync(0, "utf8"));
const hex = (bytes) => Buffer.from(bytes).toString("hex");
let sent = null;
globalThis.fetch = async (where, how) => {
  if (how?.method === "POST") sent = how.body;
  const text = where.endsWith("/card") ? card : JSON.stringify(how?.method === "POST" ? { accepted: 1 } : query);
  return { text: async () => text, json: async () => JSON.parse(text) };
};
const lines = [];
for (let k = 0; k < trials; k += 1) {
  const kept = new Map();
  const store = { getItem: (key) => kept.get(key) ?? null, setItem: (key, said) => void kept.set(key, said) };
  const bodies = [];
  for (let time = 0; time < 2; time += 1) {
    await answer(url, value, { cap: epsilon, store });
    bodies.push(hex(sent));
  }
  lines.push(bodies.join(" "));
}
console.log(lines.join("\n"));
