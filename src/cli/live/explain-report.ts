import { many } from "../../core/base/many.js";
import { formatAmount } from "../../core/budgets/amount-text.js";
import type {
  BudgetExplanation,
  DescriptorExplanation,
  ExplainResponse,
  Explanation,
  KeyState,
  QuotaExplanation,
  RequestMarks,
  UsageExplanation,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import type { Plain } from "../../rpc/codec/plain-message.js";
import { drawBar, drawSplitBar } from "../terminal/bar.js";
import type { Drawing } from "../terminal/drawing.js";
import { countText, entriesText, rateText, safeText, waitText } from "../terminal/quantity.js";
import { truncateText, wrapText } from "../terminal/text-width.js";
import { limitText, overrideText, usedText, whenText } from "./keys-report.js";

const barColumns = 10;

/** Maximum number of rules without a match shown for each descriptor; JSON has all. */
const triedShownMax = 8;

/** A line of a tree, and the lines below it. */
interface Branch {
  readonly text: string;
  readonly paint?: (text: string) => string;
  readonly below?: readonly Branch[];
}

/** Draws the explanation as a tree, and the candidate's tree below it if there is one. */
export function drawExplanation(
  { current, candidate }: Plain<ExplainResponse>,
  drawing: Drawing,
): readonly string[] {
  if (current === undefined) return ["Nothing was explained."];
  const lines = drawOne(current, drawing);
  if (candidate === undefined) return lines;
  const { style } = drawing;
  const change =
    current.isDenied === candidate.isDenied
      ? "The candidate decides the same."
      : "The candidate decides differently: " +
        `${candidate.isDenied ? "it denies the request" : "it allows the request"}.`;
  return [
    style.bold("Active"),
    ...lines,
    "",
    style.bold("Candidate"),
    ...drawOne(candidate, drawing),
    "",
    change,
  ];
}

function drawOne(explanation: Plain<Explanation>, drawing: Drawing): readonly string[] {
  const { style, columnsMax } = drawing;
  const { isDenied, policyVersion, service, descriptors, leftOut, isDomainKnown } = explanation;
  const { quotas, delay, usage, marks } = explanation;
  const held = delay === undefined ? "" : `, after a delay of ${waitText(delay)}`;
  const verdict = isDenied ? style.bad("denied") : style.good(`allowed${held}`);
  const by = service === "" ? "" : `, service ${safeText(service)}`;
  const about = style.dim(truncateText(`  policy ${safeText(policyVersion)}${by}`, columnsMax - 7));
  const branches: Branch[] = [
    // No rule applies to an unknown domain.
    ...(isDomainKnown ? descriptors : []).map((one) => descriptorBranch(one, drawing)),
    ...leftOut.map(({ key, why }) => ({
      text: `not sent: descriptor with ${safeText(key)}: ${safeText(why)}`,
      paint: style.dim,
    })),
    ...quotas.map((quota) => quotaBranch(quota, drawing)),
    ...(usage === undefined ? [] : [usageBranch(usage, drawing)]),
    ...(marks === undefined ? [] : [marksBranch(marks, drawing)]),
  ];
  const { nearestDomain } = explanation;
  const nearest = nearestDomain === "" ? "" : `; did you mean ${safeText(nearestDomain)}?`;
  if (!isDomainKnown) {
    branches.push({
      text: `the policy does not have this domain, so it passes${nearest}`,
      paint: style.bad,
    });
  } else if (branches.length === 0) branches.push({ text: "this request sends no descriptors" });
  return [`${verdict}${about}`, ...drawBranches(branches, "", columnsMax)];
}

function descriptorBranch(descriptor: Plain<DescriptorExplanation>, drawing: Drawing): Branch {
  const { style } = drawing;
  const { entries, hits, matchedLabel, tried, isOver, states } = descriptor;
  const cost = hits === 1n ? "" : `, ${countText(hits)} hits`;
  const others = tried.filter(({ isMatch }) => !isMatch);
  const shown = others.slice(0, triedShownMax);
  const below: Branch[] = [
    {
      text:
        (matchedLabel === "" ? "no rule matches" : `rule ${safeText(matchedLabel)}`) +
        `: ${effectWords(descriptor)}`,
      paint: isOver ? style.bad : matchedLabel === "" ? style.dim : style.good,
      below: states.map((state) => stateBranch(state, drawing)),
    },
    ...shown.map(({ label, why }) => ({
      text: `not ${safeText(label)}: ${safeText(why)}`,
      paint: style.dim,
    })),
  ];
  if (others.length > shown.length) {
    below.push({
      text: `and ${many(others.length - shown.length, "rule")} more`,
      paint: style.dim,
    });
  }
  return { text: `${entriesText(entries)}${cost}`, paint: style.bold, below };
}

/** Draws what Envoys decide themselves: the underlying limits, and the assigned parts of them. */
function quotaBranch(explained: Plain<QuotaExplanation>, drawing: Drawing): Branch {
  const { quota, condition, descriptor, bucketCount, demandRate, heldRate } = explained;
  const held = heldRate === undefined ? "no bound" : `${rateText(heldRate)} assigned`;
  const use =
    bucketCount === 0n
      ? "no Envoy has reported it to this Headgate"
      : `${many(Number(bucketCount), "bucket")} here, ${rateText(demandRate)} requested, ${held}`;
  const bucket = descriptor === undefined ? [] : [descriptorBranch(descriptor, drawing)];
  return {
    text: `quota ${safeText(quota)}: Envoys decide by their assignments: ${use}`,
    paint: drawing.style.bold,
    below: [...(condition === "" ? [] : [{ text: `only if ${safeText(condition)}` }]), ...bucket],
  };
}

/** Draws how the call is measured, and each account that it is charged to. */
function usageBranch(usage: Plain<UsageExplanation>, { style }: Drawing): Branch {
  const { model, priceModel, isPriceKnown, budgets, isDeniedByHidden } = usage;
  const price =
    priceModel === ""
      ? ""
      : isPriceKnown
        ? `, priced as ${safeText(priceModel)}`
        : ", which has no price, so it costs as much as the dearest";
  const named = model === "" ? "a model that is not known" : `model ${safeText(model)}`;
  const below = budgets.map((budget) => budgetBranch(budget, style));
  if (isDeniedByHidden) below.push({ text: "refused by a budget that you may not see" });
  const none = below.length === 0 ? ": no budget applies" : "";
  return { text: `call of ${named}${price}${none}`, paint: style.bold, below };
}

function budgetBranch(explained: Plain<BudgetExplanation>, style: Drawing["style"]): Branch {
  const { account, capacity, spent, reserved, estimate, effect, isOver, isWarned } = explained;
  const { budget = "", values = [] } = account ?? {};
  const whose = values.map((value) => (value === "" ? "(none)" : safeText(value))).join(", ");
  const partOf = (of: bigint): number => Number(of) / Math.max(1, Number(capacity));
  const parts = { first: partOf(spent), second: partOf(reserved) };
  const amount = (of: bigint): string => formatAmount(of, explained);
  const capped = explained.isCapped ? ", capped at the capacity" : "";
  // A call always counts as one call, so declared or learned estimates do not apply.
  const source =
    explained.unit === "calls" ? "" : `, ${sourceTexts[explained.estimateSource] ?? ""}`;
  return {
    text:
      `budget ${safeText(budget)}${whose === "" ? "" : ` of ${whose}`}: ` +
      `${budgetEffectText(explained)}${isWarned ? ", with a warning" : ""}`,
    paint: isOver && effect === "refuse" ? style.bad : style.good,
    below: [
      {
        text:
          `${drawSplitBar(parts, barColumns)}  ${amount(spent)} spent, ` +
          `${amount(reserved)} reserved of ${amount(capacity)}`,
      },
      { text: `the call reserves ${amount(estimate)}${source}${capped}` },
    ],
  };
}

function budgetEffectText({ effect, retryAfter, capacity }: Plain<BudgetExplanation>): string {
  const when =
    retryAfter === undefined
      ? capacity === 0n
        ? "its capacity is 0, so it never fits"
        : "fits when other calls end"
      : `fits again in ${waitText(retryAfter)}`;
  switch (effect) {
    case "fits":
      return "the call fits";
    case "refuse":
      return `refused, ${when}`;
    case "annotate":
      return `over, so the call is annotated; ${when}`;
    case "fallback":
      return `over, so the call falls back; ${when}`;
    default:
      return `over, but a dry run; ${when}`;
  }
}

const sourceTexts: Readonly<Record<string, string>> = {
  declared: "as it declares",
  requestBytes: "by its size",
  learned: "as learned from earlier calls",
  initial: "initial estimate",
};

/** Draws the headers that the upstream gets, and the destination of the request. */
function marksBranch(
  { headers, fallbackCluster }: Plain<RequestMarks>,
  { style }: Drawing,
): Branch {
  const below = Object.entries(headers).map(([name, value]) => ({
    text: `sets ${safeText(name)}: ${safeText(value)}`,
  }));
  if (fallbackCluster !== "") below.push({ text: `goes to cluster ${safeText(fallbackCluster)}` });
  return { text: "the request passes, but changes", paint: style.bold, below };
}

function effectWords(descriptor: Plain<DescriptorExplanation>): string {
  const { effect, isOver, changesAfter, states } = descriptor;
  switch (effect) {
    case "unlimited":
      return "unlimited";
    case "replaced":
      return "skipped, because another rule of this request replaces it";
    case "unmatched":
      return "allowed";
    default:
      if (!isOver) return "within its limits";
      if (states.some(({ override }) => override?.effect.case === "isFrozen")) {
        return "frozen by an operator";
      }
      return changesAfter === undefined
        ? "over its limit permanently"
        : `over its limit, fits again in ${waitText(changesAfter)}`;
  }
}

function stateBranch(state: Plain<KeyState>, { style }: Drawing): Branch {
  const { limit, override, usedHits, remainingHits, key } = state;
  const name = limit === undefined || limit.name === "" ? "" : `${safeText(limit.name)}: `;
  const burst = Number(limit?.burst ?? 0n);
  const bar = drawBar(burst === 0 ? 1 : usedHits / burst, barColumns);
  const below: Branch[] = [
    {
      text:
        `${bar}  ${usedText(usedHits)} of ${countText(burst)} used, ` +
        `${countText(remainingHits)} left`,
      paint: remainingHits === 0n ? style.bad : style.good,
    },
    { text: whenText(state, "the call") },
  ];
  if (override !== undefined) below.push({ text: `override ${overrideText(override)}` });
  if (key !== "") below.push({ text: `key ${safeText(key)}`, paint: style.dim });
  return { text: `${name}${limit === undefined ? "" : limitText(limit)}`, below };
}

function drawBranches(
  branches: readonly Branch[],
  indent: string,
  columnsMax: number,
): readonly string[] {
  return branches.flatMap(({ text, paint = (plain) => plain, below = [] }, i) => {
    const isLast = i === branches.length - 1;
    const head = `${indent}${isLast ? "└─ " : "├─ "}`;
    const under = `${indent}${isLast ? "   " : "│  "}`;
    // Continuation lines keep the vertical line to the branches below.
    const more = `${under}${below.length > 0 ? "│  " : ""}`;
    const [first = "", ...others] = wrapText(text, columnsMax - more.length);
    const lines = [head + paint(first), ...others.map((line) => more + paint(line))];
    return [...lines, ...drawBranches(below, under, columnsMax)];
  });
}
