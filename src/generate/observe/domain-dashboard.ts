import type { Rule } from "../../core/limits/limit.js";
import { limitWords } from "../../policy/diff/limit-words.js";
import type { Panel, Section } from "./dashboard.js";
import { lines, numberPanel, own, stacked, sumRate } from "./panels.js";

/** Rules that have a panel of their own; the others are among the top ones. */
export const rulePanelsMax = 60;

/** How many rules a list of the top ones has. */
const topCount = 10;

/** The limits of one domain: what is asked of them, and what becomes of it. */
export function domainSections(domain: string, rules: readonly Rule[]): readonly Section[] {
  const limited = rules.filter(({ effect }) => effect.kind === "limited");
  const shown = limited.slice(0, rulePanelsMax);
  const title =
    shown.length === limited.length
      ? "Each rule"
      : `The first ${shown.length} of ${limited.length} rules with limits`;
  return [
    { title: "At a glance", panels: glance(domain) },
    { title: "Top rules", panels: top(domain) },
    ...(shown.length === 0 ? [] : [{ title, panels: shown.map((rule) => rulePanel(rule)) }]),
  ];
}

function glance(domain: string): readonly Panel[] {
  const hits = (outcome: string): string =>
    sumRate(own("headgate_hits_total", { domain, outcome }));
  const asked = sumRate(own("headgate_hits_total", { domain, outcome: outcomesAsked }));
  const near = sumRate(own("headgate_near_limit_hits_total", { domain }));
  return [
    numberPanel({ title: "Asked", about: "Hits a second.", unit: "reqps" }, asked),
    numberPanel(
      {
        title: "Over",
        about: "The share that was refused.",
        unit: "percentunit",
        marks: [{ from: 0.1, color: "orange" }],
      },
      `${hits("over")} / ${asked}`,
    ),
    numberPanel(
      {
        title: "Near",
        about:
          "Of the hits within their limits, the share above NEAR_LIMIT_RATIO of it: callers with " +
          "little left.",
        unit: "percentunit",
        marks: [{ from: 0.5, color: "orange" }],
      },
      `${near} / ${hits("within")}`,
    ),
    stacked(
      {
        title: "Hits",
        about: "By what became of them; shadow_over passed although it was over.",
        unit: "reqps",
        columns: 12,
      },
      { "{{outcome}}": sumRate(own("headgate_hits_total", { domain }), ["outcome"]) },
    ),
  ];
}

const outcomesAsked = ["within", "over", "shadow_over"];

function top(domain: string): readonly Panel[] {
  const topOf = (series: string): string => `topk(${topCount}, ${sumRate(series, ["rule"])})`;
  return [
    lines(
      { title: "Asked most", about: "Hits a second, by rule.", unit: "reqps" },
      { "{{rule}}": topOf(own("headgate_hits_total", { domain, outcome: outcomesAsked })) },
    ),
    lines(
      { title: "Refused most", about: "Hits over a limit, by rule.", unit: "reqps" },
      { "{{rule}}": topOf(own("headgate_hits_total", { domain, outcome: "over" })) },
    ),
    lines(
      {
        title: "Nearest",
        about: "Hits of callers with little left, by rule: what will be refused next.",
        unit: "reqps",
      },
      { "{{rule}}": topOf(own("headgate_near_limit_hits_total", { domain })) },
    ),
    lines(
      {
        title: "Refused without asking the store",
        about: "The store had refused the same a moment ago.",
        unit: "reqps",
      },
      { "{{rule}}": topOf(own("headgate_over_limit_cache_hits_total", { domain })) },
    ),
    lines(
      {
        title: "Too many new keys",
        about: "Descriptors with too new a key, which share a bucket: a flood of made-up callers?",
        unit: "reqps",
      },
      { "{{rule}}": topOf(own("headgate_overflow_descriptors_total", { domain })) },
    ),
  ];
}

function rulePanel({ domain, label, effect, metricPath }: Rule): Panel {
  const labels = { domain, rule: label };
  const limits = effect.kind === "limited" ? effect.limits : [];
  const words = limits.map((limit) => {
    const name = limit.name === undefined ? "" : `${limit.name}: `;
    const role = limit.role === "enforce" ? "" : ` (${limit.role})`;
    return `${name}${limitWords(limit)}${role}`;
  });
  // A rule whose metric has callers' values is counted there alone.
  const hits = metricPath === undefined ? "headgate_hits_total" : "headgate_detailed_hits_total";
  return lines(
    { title: label, about: `For each of its keys ${words.join("; ")}.`, unit: "reqps" },
    {
      "{{outcome}}": sumRate(own(hits, labels), ["outcome"]),
      near: sumRate(own("headgate_near_limit_hits_total", labels)),
    },
  );
}
