// The survey: the answer is randomised here, in the visitor's browser, and the page shows exactly what leaves.
import { answer, hex } from "/device.js";

const at = (id) => document.getElementById(id);
const url = `${location.origin}/v1/studies/${location.pathname.split("/")[2]}`;
const card = await (await fetch(`${url}/card`)).json();
document.title = `${card.name}: Sottovoce`;
at("name").textContent = card.name;
at("question").textContent = card.question || "Your answer, a number";
at("promise").textContent =
  `Your number stays in this browser. One letter leaves, and a die decides whether it tells the truth (epsilon ${card.epsilon}).`;
at("group").replaceChildren(...card.groups.map((name) => new Option(name)));
at("which").hidden = card.groups.length < 2;

at("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const value = Number(at("value").value.trim().replace(",", "."));
  const say = (text) => { at("done").hidden = false; at("told").textContent = text; };
  if (!Number.isFinite(value) || at("value").value.trim() === "") {
    say("Please give one number; nothing has left this device.");
    return;
  }
  at("send").disabled = true;
  try {
    const sent = await answer(url, value, { cap: card.epsilon, group: at("group").value, store: localStorage });
    const [round, group, point] = [[32, 36], [36, 38], [38, 40]].map(([a, b]) => parseInt(hex(sent.body.slice(a, b)), 16));
    at("value").value = "";
    at("bytes").textContent =
      `study   ${hex(sent.body.slice(0, 16))}\nid      ${hex(sent.body.slice(16, 32))}\n` +
      `round   ${round}\ngroup   ${card.groups[group]}\npoint   ${point}\nletter  ${sent.body[40]}`;
    say(sent.accepted
      ? "Thank you. These 41 bytes were kept, and nothing else was sent; answering again sends the same bytes."
      : `These 41 bytes were sent and not counted: ${sent.why}.`);
  } catch (error) {
    say(error.message);
    at("send").disabled = false;
  }
});
