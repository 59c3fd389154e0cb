import type { Algorithm, FailureMode, LimitDefaults } from "../../core/limits/limit.js";
import { loggedRefusalsPerSecondMax } from "../../decide/rate-limit/refusal-log.js";
import type { LimitSwitches } from "../../decide/rate-limit/switches.js";
import type { ResponseExtrasOptions } from "../../rpc/rls/rls-extras.js";
import {
  choiceOption,
  decimalOption,
  type OptionRow,
  type OptionText,
  type ParsedOption,
  switchOption,
  wholeNumberOption,
} from "./option.js";

/** Valid header names, of at most 64 characters. Source: RFC 9110, section 5.6.2, token. */
const headerName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}$/;

function headerNameOption(row: OptionText & { readonly defaultValue: string }): OptionRow<string> {
  const parse = (text: string): ParsedOption<string> => {
    if (headerName.test(text)) return { kind: "value", value: text };
    return { kind: "problem", message: "must be a header name of at most 64 characters" };
  };
  return { ...row, valueName: "NAME", defaultText: row.defaultValue, parse };
}

/** What the process changes about every decision and response. */
export const decisionOptionRows = {
  algorithm: choiceOption<Algorithm["kind"]>({
    env: "HEADGATE_ALGORITHM",
    choices: ["gcra", "fixed_window"],
    defaultValue: "gcra",
    docs:
      "The default algorithm: smooth (`gcra`), or windows counted from 1970 as in " +
      "envoyproxy/ratelimit. A limit with a `burst` is always smooth.",
  }),
  onStoreFailure: choiceOption<FailureMode>({
    env: "HEADGATE_ON_STORE_FAILURE",
    choices: ["local", "allow", "deny", "error"],
    defaultValue: "local",
    docs:
      "The default failure mode of limits while Redis is unreachable. `error` is " +
      "the behaviour of envoyproxy/ratelimit: Envoy's own `failure_mode_deny` " +
      "decides.",
  }),
  shadowMode: switchOption({
    env: "SHADOW_MODE",
    defaultValue: false,
    docs:
      "Decides and counts everything but denies nothing. Statuses still show what " +
      "would be over; `headgate_shadowed_requests_total` counts it.",
  }),
  quotaMode: switchOption({
    env: "QUOTA_MODE",
    defaultValue: false,
    docs:
      "Treats every descriptor as if it had `quota_mode`: a request is denied only " +
      "when all its limits are over.",
  }),
  chargesDenied: switchOption({
    env: "HEADGATE_CHARGE_DENIED",
    defaultValue: false,
    docs:
      "Also charges denied hits, up to one more burst, as envoyproxy/ratelimit " +
      "does. Callers that keep retrying stay denied, and denials of one limit use " +
      "up the others.",
  }),
  nearLimitRatio: decimalOption({
    env: "NEAR_LIMIT_RATIO",
    range: [0, 1],
    defaultValue: 0.8,
    docs: "The ratio of a limit from which hits count as near the limit.",
  }),
  hasDynamicMetadata: switchOption({
    env: "RESPONSE_DYNAMIC_METADATA",
    defaultValue: false,
    docs:
      "Responses contain the request's descriptors and the `metadata` of the rules " +
      "that allowed it as dynamic metadata, for later filters.",
  }),
  hasLimitHeaders: switchOption({
    env: "LIMIT_RESPONSE_HEADERS_ENABLED",
    defaultValue: false,
    docs: "Responses contain the tightest limit in three headers, unless its rule sets `headers`.",
  }),
  tellsWait: switchOption({
    env: "HEADGATE_RETRY_AFTER_HEADER",
    defaultValue: false,
    docs:
      "Denials carry `retry-after`, unless the rule has `headers: none`. For " +
      "Envoys without `enable_retry_after_header` (before 1.40).",
  }),
  limitHeader: headerNameOption({
    env: "LIMIT_LIMIT_HEADER",
    defaultValue: "RateLimit-Limit",
    docs: "The header for the hits allowed in a period.",
  }),
  remainingHeader: headerNameOption({
    env: "LIMIT_REMAINING_HEADER",
    defaultValue: "RateLimit-Remaining",
    docs: "The header for the remaining hits.",
  }),
  resetHeader: headerNameOption({
    env: "LIMIT_RESET_HEADER",
    defaultValue: "RateLimit-Reset",
    docs:
      "The header for the whole seconds until the limit is unused, or until a denied " +
      "request fits.",
  }),
  hasRequestHeaders: switchOption({
    env: "LIMIT_REQUEST_HEADERS_ENABLED",
    defaultValue: false,
    docs:
      "Requests to the upstream carry the tightest limit in three headers, unless " +
      "its rule has `headers: none`. Envoy appends them to headers from the " +
      "client: remove those first.",
  }),
  requestLimitHeader: headerNameOption({
    env: "LIMIT_REQUEST_LIMIT_HEADER",
    defaultValue: "RateLimit-Limit",
    docs: "The upstream header for the hits allowed in a period.",
  }),
  requestRemainingHeader: headerNameOption({
    env: "LIMIT_REQUEST_REMAINING_HEADER",
    defaultValue: "RateLimit-Remaining",
    docs: "The upstream header for the remaining hits.",
  }),
  requestResetHeader: headerNameOption({
    env: "LIMIT_REQUEST_RESET_HEADER",
    defaultValue: "RateLimit-Reset",
    docs: "The upstream header for the whole seconds of `LIMIT_RESET_HEADER`.",
  }),
} as const;

type DecisionRows = typeof decisionOptionRows;
type DecisionValues = {
  readonly [Name in keyof DecisionRows]: DecisionRows[Name]["defaultValue"];
};

/** Returns the defaults for limits that do not set these fields. */
export function limitDefaultsOf(
  values: Pick<DecisionValues, "algorithm" | "onStoreFailure">,
): LimitDefaults {
  const { algorithm, onStoreFailure } = values;
  return { algorithm, onStoreFailure };
}

/** Returns what the process changes about every limit. */
export function switchesOf(values: DecisionValues): LimitSwitches {
  const { shadowMode, quotaMode, chargesDenied } = values;
  const defaults = limitDefaultsOf(values);
  return { isShadow: shadowMode, isQuota: quotaMode, chargesDenied, defaults };
}

/** Returns what the process adds to every response. */
export function extrasOf(values: DecisionValues): ResponseExtrasOptions {
  const { hasLimitHeaders, hasRequestHeaders, hasDynamicMetadata, tellsWait } = values;
  return {
    headerNames: hasLimitHeaders
      ? { limit: values.limitHeader, remaining: values.remainingHeader, reset: values.resetHeader }
      : undefined,
    requestHeaderNames: hasRequestHeaders
      ? {
          limit: values.requestLimitHeader,
          remaining: values.requestRemainingHeader,
          reset: values.requestResetHeader,
        }
      : undefined,
    tellsWait,
    hasDynamicMetadata,
  };
}

/** How refusals are logged. */
export const refusalOptionRows = {
  refusalsLoggedPerSecond: wholeNumberOption({
    env: "HEADGATE_REFUSALS_LOGGED_PER_SECOND",
    range: [0, loggedRefusalsPerSecondMax],
    defaultValue: 1,
    docs:
      "Log lines per second at level `info` about denied requests, for each rule " +
      "(unless `tellRule` turns it off) and for each cause of a service; 0: none. " +
      `The total is at most ${loggedRefusalsPerSecondMax} a second. Each line ` +
      "contains the number of requests that it represents.",
  }),
} as const;
