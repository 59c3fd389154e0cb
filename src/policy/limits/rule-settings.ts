import type { JsonObject } from "../../core/base/json.js";
import {
  type BodyStyle,
  type Denial,
  type FailureMode,
  type HeaderStyle,
  isPattern,
  type MetricStep,
  type PathStep,
  type RuleDisclosure,
} from "../../core/limits/limit.js";
import type { Block } from "../text/block.js";
import { choice, readBy } from "../text/form.js";
import { field, innerBy, readField } from "../text/object.js";
import type { Dialect } from "../text/shapes.js";
import { readRuleMetadata } from "./metadata.js";
import { dialectFlag } from "./rate-limit.js";
import { disclosure } from "./rule-disclosure.js";
import { stepLabel } from "./rule-list.js";

/** Properties of a descriptor other than its limits. */
export interface RuleSettings {
  readonly mode: Denial;
  /** Undefined: the domain's setting. */
  readonly onStoreFailure: FailureMode | undefined;
  readonly isShared: boolean;
  readonly isDetailedMetric: boolean;
  readonly isValueInMetric: boolean;
  readonly metadata: JsonObject | undefined;
  readonly headers: HeaderStyle | undefined;
  readonly body: BodyStyle | undefined;
}

/** The answer while the store is unreachable. */
export const failureMode = choice(
  { what: "an answer for when the store is away" },
  "local",
  "allow",
  "deny",
  "error",
);

/** `on_store_failure` of a descriptor or a domain. */
export const storeFailureField = field(
  failureMode,
  "What the limit answers while the store is unreachable: `local` (this replica's " +
    "share, in memory), `allow`, `deny`, or `error` (Envoy's own failure mode " +
    "decides).",
  { dependentDefault: "local" },
);

/** `tellRule` of a descriptor or a domain. */
export const disclosureField = field(
  innerBy(disclosure, (block) => block),
  "Where denials name their rule. Default of each setting: that of the domain.",
);

function rowsOf(dialect: Dialect) {
  const old = dialectFlag(dialect);
  const none = { default: false } as const;
  return {
    on_store_failure: storeFailureField,
    shadow_mode: field(old, "Counts and reports, but never denies.", none),
    quota_mode: field(old, "Denies only when all quota mode limits of the request are over.", none),
    share_threshold: field(old, "All values that the pattern matches share one limit.", none),
    headers: field(
      choice({ what: "a kind of headers" }, "x-ratelimit", "ietf", "none"),
      "Response headers that tell callers their limit. `ietf` sends `RateLimit` " +
        "and `RateLimit-Policy`. With either kind, denials carry `retry-after`. " +
        "Default: the process setting.",
    ),
    body: field(
      choice({ what: "a kind of body" }, "problem+json"),
      "The body of a denial. `problem+json` names the limit and the wait (RFC " +
        "9457). Default: Envoy's own body.",
    ),
    tellRule: disclosureField,
    detailed_metric: field(
      old,
      "Shows values of callers in metrics: each combination of values has its own series.",
      none,
    ),
    value_to_metric: field(old, "Adds the value of this entry to the metric name.", none),
    metadata: field(
      readBy({ kind: "json" }, (reader, place) => readRuleMetadata(reader, place, dialect)),
      "Free-form metadata. Headgate returns it as dynamic metadata when the rule " +
        "allows a request.",
    ),
  };
}

/** Settings that act on the limit of their own descriptor, and are not inherited. */
export const limitSettingNames: readonly string[] = [
  "on_store_failure",
  "quota_mode",
  "detailed_metric",
  "metadata",
  "headers",
  "body",
  "tellRule",
];

/** The settings of a descriptor, by dialect. */
export const settings = {
  ratelimit: { rows: rowsOf("ratelimit") },
  headgate: { rows: rowsOf("headgate") },
};

/** Reads the settings of a descriptor; a wrong one is reported, and reads as left out. */
export function readSettings(block: Block, dialect: Dialect): RuleSettings {
  const form = settings[dialect];
  return {
    mode: readMode(block, dialect),
    onStoreFailure: readField(form, block, "on_store_failure"),
    isShared: readField(form, block, "share_threshold"),
    isDetailedMetric: readField(form, block, "detailed_metric"),
    isValueInMetric: readField(form, block, "value_to_metric"),
    metadata: readField(form, block, "metadata"),
    headers: readField(form, block, "headers"),
    body: readField(form, block, "body"),
  };
}

/** Applies `tellRule` to the inherited setting; undefined if neither is set. */
export function readDisclosure(
  block: Block,
  inherited: RuleDisclosure | undefined,
): RuleDisclosure | undefined {
  const own = readField({ rows: { tellRule: disclosureField } }, block, "tellRule");
  return own === undefined ? inherited : disclosure.read(own, inherited);
}

/** A limit that never denies has no part in a quota: shadow wins, as in envoyproxy/ratelimit. */
function readMode(block: Block, dialect: Dialect): Denial {
  const isShadow = readField(settings[dialect], block, "shadow_mode");
  const isQuota = readField(settings[dialect], block, "quota_mode");
  if (isShadow && isQuota && dialect === "headgate") block.refusePair("quota_mode", "shadow_mode");
  if (isShadow) return "shadow";
  return isQuota ? "quota" : "enforce";
}

/** Refuses `share_threshold` if the descriptor has no pattern whose values could share. */
export function refuseSharing(
  block: Block,
  { step, isShared }: { readonly step: PathStep; readonly isShared: boolean },
): void {
  if (!isShared || isPattern(step)) return;
  const message = '"share_threshold" is set, but neither key nor value contains "*"';
  block.report("share_threshold", { id: "HG128", message });
}

/** Returns the text that replaces an entry's value in keys; undefined if the value is used. */
export function sharePattern(step: PathStep, { isShared }: RuleSettings): string | undefined {
  return isShared && isPattern(step) ? (step.value ?? "*") : undefined;
}

/** Returns how a step appears in the metrics of a rule, its own or one below. */
export function metricStep(
  step: PathStep,
  { isShared, isValueInMetric }: RuleSettings,
): MetricStep {
  const isOpen = step.value === undefined || isPattern(step);
  if (isOpen && isValueInMetric && !isShared) return { kind: "request" };
  return { kind: "policy", text: stepLabel(step) };
}

/** Returns the metric path of a rule with `detailed_metric`: each value except shared ones. */
export function detailedMetric(
  path: readonly PathStep[],
  sharePatterns: readonly (string | undefined)[],
): readonly MetricStep[] {
  return path.map((step, i): MetricStep => {
    const isOpen = step.value === undefined || isPattern(step);
    const isOwnValue = isOpen && sharePatterns[i] === undefined;
    return isOwnValue ? { kind: "request" } : { kind: "policy", text: stepLabel(step) };
  });
}
