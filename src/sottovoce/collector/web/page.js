// What the pages of a collector share beside what all pages do.
import { asking, whole } from "/parts.js";
export { at, made, number, say, sentence, whole } from "/parts.js";

/** What the collector answers, or an error whose message is the collector's own sentence. */
export const asked = asking("collector");

/** How many came a second between two counts, in words. */
export function rate(before, after) {
  if (!before || after.at <= before.at) return "–";
  const found = Math.max(0, (after.reports - before.reports) / (after.at - before.at));
  return found > 0 && found < 10 ? found.toFixed(1) : whole(found);
}

/** What a study's state is called; one that asks nobody any more is over, whatever its state. */
export const stateOf = (about) => (about.state === "closed" ? "closed" : about.over ? "over" : about.state);
