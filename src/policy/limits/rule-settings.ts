import type { JsonObject } from "../../core/base/json.js";
import {
  type BodyStyle,
  type Denial,
  type FailureMode,
  type HeaderStyle,
  isPattern,
  type MetricStep,
  type PathStep,
} from "../../core/limits/limit.js";
import type { Field, Fields, NodeReader } from "../text/node-reader.js";
import type { Dialect } from "../text/shapes.js";
import { readRuleMetadata } from "./metadata.js";
import { stepLabel } from "./rule-list.js";

/** What a descriptor says beside its limits. */
export interface RuleSettings {
  readonly mode: Denial;
  /** Undefined: as the domain says. */
  readonly onStoreFailure: FailureMode | undefined;
  readonly isShared: boolean;
  readonly isDetailedMetric: boolean;
  readonly isValueInMetric: boolean;
  readonly metadata: JsonObject | undefined;
  readonly headers: HeaderStyle | undefined;
  readonly body: BodyStyle | undefined;
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

/** Reads the settings of a descriptor; what is wrong is reported, and reads as left out. */
export function readSettings(reader: NodeReader, fields: Fields, dialect: Dialect): RuleSettings {
  const field = (name: string): Field | undefined => fields.byName.get(name);
  const isSet = (name: string): boolean => {
    const flag = field(name);
    return flag !== undefined && reader.readFlag(flag, dialect) === true;
  };
  const failure = field("on_store_failure");
  const metadata = field("metadata");
  const headers = field("headers");
  const body = field("body");
  return {
    mode: readMode(reader, {
      fields,
      dialect,
      isShadow: isSet("shadow_mode"),
      isQuota: isSet("quota_mode"),
    }),
    onStoreFailure: failure && readFailureMode(reader, failure),
    isShared: isSet("share_threshold"),
    isDetailedMetric: isSet("detailed_metric"),
    isValueInMetric: isSet("value_to_metric"),
    metadata: metadata && readRuleMetadata(reader, metadata, dialect),
    headers:
      headers &&
      reader.readChoice(headers, headerStyles, { id: "HG133", what: "a kind of headers" }),
    body: body && reader.readChoice(body, bodyStyles, { id: "HG133", what: "a kind of body" }),
  };
}

/** Which headers tell callers of a limit. */
export const headerStyles: readonly HeaderStyle[] = ["x-ratelimit", "ietf", "none"];
/** What a refusal may hold. */
export const bodyStyles: readonly BodyStyle[] = ["problem+json"];

/** A limit that denies nobody has no part in a quota either: shadow wins, as in the reference. */
function readMode(reader: NodeReader, { fields, dialect, isShadow, isQuota }: ModeFlags): Denial {
  const quotaField = fields.byName.get("quota_mode");
  if (isShadow && isQuota && dialect === "headgate" && quotaField !== undefined) {
    const message = '"quota_mode" and "shadow_mode" exclude each other';
    reader.report(quotaField.key, { id: "HG126", message, expected: "one of the two" });
  }
  if (isShadow) return "shadow";
  return isQuota ? "quota" : "enforce";
}

interface ModeFlags {
  readonly fields: Fields;
  readonly dialect: Dialect;
  readonly isShadow: boolean;
  readonly isQuota: boolean;
}

/** What answers while the store is away. */
export const failureModes: readonly FailureMode[] = ["local", "allow", "deny", "error"];

/** `on_store_failure`: what answers for a limit while the store cannot. */
export function readFailureMode(reader: NodeReader, field: Field): FailureMode | undefined {
  return reader.readChoice(field, failureModes, {
    id: "HG133",
    what: "an answer for when the store is away",
  });
}

/** Refuses `share_threshold` where there is no pattern whose values could share. */
export function refuseSharing(
  reader: NodeReader,
  fields: Fields,
  { step, isShared }: { readonly step: PathStep; readonly isShared: boolean },
): void {
  const field = fields.byName.get("share_threshold");
  if (field === undefined || !isShared || isPattern(step)) return;
  const message = '"share_threshold" stands where neither key nor value holds "*"';
  reader.report(field.key, { id: "HG128", message });
}

/** What stands in keys in place of an entry's value; undefined where the value itself does. */
export function sharePattern(step: PathStep, { isShared }: RuleSettings): string | undefined {
  return isShared && isPattern(step) ? (step.value ?? "*") : undefined;
}

/** How a step shows in the metrics of a rule, its own or one below. */
export function metricStep(
  step: PathStep,
  { isShared, isValueInMetric }: RuleSettings,
): MetricStep {
  const isOpen = step.value === undefined || isPattern(step);
  if (isOpen && isValueInMetric && !isShared) return { kind: "request" };
  return { kind: "policy", text: stepLabel(step) };
}

/** The metric path of a rule with `detailed_metric`: each value but those that are shared. */
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
