// What a question will come to, in words: width, who answers, what it costs, and what to know beforehand.
import { at, made, number, say, sentence, whole } from "/parts.js";

/** A level as a percentage, with as many digits as tell two of them apart. */
function percent(level, apart) {
  const digits = apart < 0.001 ? 3 : apart < 0.01 ? 2 : 1;
  return `${Number((100 * level).toFixed(digits))} %`;
}

/** From which point of the values to which an interval will run. */
export function reach({ low, high }) {
  if (low <= 0 && high >= 1) return "Both ends may stay open: nothing is sure to be known.";
  if (low <= 0) return `Up to about the ${percent(high, 1)} point of the values; the lower end may stay open.`;
  if (high >= 1) return `From about the ${percent(low, 1)} point of the values on; the upper end may stay open.`;
  return `From about the ${percent(low, high - low)} point to the ${percent(high, high - low)} point of the values.`;
}

/** The width of an interval as a heading, and what more there is to say. */
function widthOf(each, several) {
  const of = several ? `${number(each.of)}: ` : "";
  if (!each.text) return made("li", {}, made("span", { class: "big" }, `${of}${reach(each)}`));
  const others = each.shortest === each.longest ? "" : ` By other shapes of distribution ${each.shortest ?? "open"} to ${each.longest ?? "open"}.`;
  const about = each.text.startsWith("less") ? sentence(each.text) : `About ${each.text}`;
  return made("li", {}, made("span", { class: "big" }, `${of}${about} wide`), `${reach(each)}${others}`);
}

function factsOf(plan, question) {
  const { count, smallest, largest } = plan.sites;
  const without = [...new Set(plan.widths.map((each) => each.without).filter(Boolean))];
  return [
    ["Records that answer", whole(plan.records)],
    ...(plan.missing ? [["Missing, left out", whole(plan.missing)]] : []),
    ...(plan.unplaced ? [["Without a site", whole(plan.unplaced)]] : []),
    ...(question.site ? [["Sites", count > 1 ? `${whole(count)} (${whole(smallest)} to ${whole(largest)})` : whole(count)]] : []),
    ["Epsilon, as computed", number(plan.epsilon)],
    ...(without.length ? [["Width without privacy", without.join(", ")]] : []),
  ];
}

/** What the rows have paid and will have. */
export function costInWords({ before, after, limit }) {
  const most = limit === null ? "; no limit is set" : `, of at most ${number(limit)}`;
  return before > 0
    ? `These rows have paid epsilon ${number(before)} so far; this question makes it ${number(after)}${most}.`
    : `These rows have paid nothing so far; this question costs epsilon ${number(after)}${most}.`;
}

/** Show a plan. */
export function showPlan(plan, question) {
  const several = plan.widths.length > 1;
  at("plan").hidden = false;
  say("refused", "");
  at("widths").replaceChildren(...plan.widths.map((each) => widthOf(each, several)));
  const told = plan.widths.some((each) => each.text);
  say("assuming", `Assuming ${plan.assuming}.${told ? "" : " Say above what everybody knows of the values, and the width is told in values, too."}`);
  at("facts").replaceChildren(...factsOf(plan, question).map(([name, text]) => made("div", {}, made("dt", {}, name), made("dd", {}, text))));
  at("sites-of").hidden = !question.site;
  const more = plan.sites.count - plan.sites.listed.length;
  const rows = plan.sites.listed.map(([name, records]) => made("tr", {}, made("th", { scope: "row" }, name), made("td", {}, whole(records))));
  if (more > 0) rows.push(made("tr", {}, made("td", { colspan: "2" }, `and ${whole(more)} more`)));
  at("sites").replaceChildren(...rows);
  const again = plan.asked_before ? [`Question ${plan.asked_before} of this session was the same: its answer is below, and asking again costs again.`] : [];
  at("warnings").replaceChildren(...[...plan.warnings, ...again].map((each) => made("li", {}, `${sentence(each).replace(/\.$/, "")}.`)));
  say("cost", plan.cost.refused ? sentence(plan.cost.refused) : costInWords(plan.cost));
  at("cost").className = plan.cost.refused ? "wrong" : "";
  at("paid").hidden = plan.cost.limit === null;
  if (plan.cost.limit !== null) {
    Object.assign(at("paid"), { max: plan.cost.limit, low: 0.5 * plan.cost.limit, high: 0.9 * plan.cost.limit, optimum: 0 });
    at("paid").value = Math.min(plan.cost.after, plan.cost.limit);
  }
}

/** Say why there is no plan. */
export function showNone(why, wrong) {
  at("plan").hidden = true;
  say("refused", why);
  at("refused").className = wrong ? "wrong" : "soft";
}
