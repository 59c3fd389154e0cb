import type { Rule } from "../../core/limits/limit.js";
import { limitWords } from "../../policy/diff/limit-words.js";
import type { Panel, Section } from "./dashboard.js";
import { lines, numberPanel, own, stacked, sumRate } from "./panels.js";

/** Maximum number of rules with a panel of their own. Others only appear in the top lists. */
export const rulePanelsMax = 60;

/** Number of rules in a top list. */
const topCount = 10;

/** Returns the sections of a domain's limits: requests, and their results. */
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
    numberPanel({ title: "Asked", about: "Hits per second.", unit: "reqps" }, asked),
    numberPanel(
      {
        title: "Over",
        about: "The ratio that was denied.",
        unit: "percentunit",
        marks: [{ from: 0.1, color: "orange" }],
      },
      `${hits("over")} / ${asked}`,
    ),
    numberPanel(
      {
        title: "Near",
        about:
          "Hits above NEAR_LIMIT_RATIO, as a ratio of hits within limits: callers " +
          "with little left.",
        unit: "percentunit",
        marks: [{ from: 0.5, color: "orange" }],
      },
      `${near} / ${hits("within")}`,
    ),
    stacked(
      {
        title: "Hits",
        about: "By outcome; shadow_over passed although it was over.",
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
      { title: "Most requested", about: "Hits per second, by rule.", unit: "reqps" },
      { "{{rule}}": topOf(own("headgate_hits_total", { domain, outcome: outcomesAsked })) },
    ),
    lines(
      { title: "Most denied", about: "Hits over a limit, by rule.", unit: "reqps" },
      { "{{rule}}": topOf(own("headgate_hits_total", { domain, outcome: "over" })) },
    ),
    lines(
      {
        title: "Nearest",
        about: "Hits of callers with little left, by rule. They will be denied next.",
        unit: "reqps",
      },
      { "{{rule}}": topOf(own("headgate_near_limit_hits_total", { domain })) },
    ),
    lines(
      {
        title: "Denied without a store call",
        about: "The over-limit cache still contained the denial.",
        unit: "reqps",
      },
      { "{{rule}}": topOf(own("headgate_over_limit_cache_hits_total", { domain })) },
    ),
    lines(
      {
        title: "Too many new keys",
        about:
          "Descriptors with too many new keys, charged to a shared bucket. Somebody " +
          "may be inventing values.",
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
  // A rule with callers' values in its metric is only counted there.
  const hits = metricPath === undefined ? "headgate_hits_total" : "headgate_detailed_hits_total";
  return lines(
    { title: label, about: `For each key ${words.join("; ")}.`, unit: "reqps" },
    {
      "{{outcome}}": sumRate(own(hits, labels), ["outcome"]),
      near: sumRate(own("headgate_near_limit_hits_total", labels)),
    },
  );
}
