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

/** What a header may be called; 64 are enough. Source: RFC 9110, section 5.6.2, token. */
const headerName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}$/;

function headerNameOption(row: OptionText & { readonly defaultValue: string }): OptionRow<string> {
  const parse = (text: string): ParsedOption<string> => {
    if (headerName.test(text)) return { kind: "value", value: text };
    return { kind: "problem", message: "must be the name of a header, of at most 64 characters" };
  };
  return { ...row, valueName: "NAME", defaultText: row.defaultValue, parse };
}

/** What the process changes about every decision and answer. */
export const decisionOptionRows = {
  algorithm: choiceOption<Algorithm["kind"]>({
    env: "HEADGATE_ALGORITHM",
    choices: ["gcra", "fixed_window"],
    defaultValue: "gcra",
    docs:
      "How limits are decided that do not say it: smoothly, or in windows counted from 1970, as " +
      "envoyproxy/ratelimit has them. A limit with a `burst` is smooth in any case.",
  }),
  onStoreFailure: choiceOption<FailureMode>({
    env: "HEADGATE_ON_STORE_FAILURE",
    choices: ["local", "allow", "deny", "error"],
    defaultValue: "local",
    docs:
      "What answers while Redis is away for limits that do not say it. `error` is what " +
      "envoyproxy/ratelimit does: Envoy's own `failure_mode_deny` decides.",
  }),
  shadowMode: switchOption({
    env: "SHADOW_MODE",
    defaultValue: false,
    docs:
      "Decides and counts everything and refuses nobody; statuses still say what would be over. " +
      "What would have been refused is in `headgate_shadowed_requests_total`.",
  }),
  quotaMode: switchOption({
    env: "QUOTA_MODE",
    defaultValue: false,
    docs: "As if every descriptor said `quota_mode`: refused only when all limits are over.",
  }),
  chargesDenied: switchOption({
    env: "HEADGATE_CHARGE_DENIED",
    defaultValue: false,
    docs:
      "Counts hits that were refused as well, up to one more burst, as envoyproxy/ratelimit " +
      "does: who keeps asking stays out, and one limit's refusals use up the others.",
  }),
  nearLimitRatio: decimalOption({
    env: "NEAR_LIMIT_RATIO",
    range: [0, 1],
    defaultValue: 0.8,
    docs: "The part of a limit from which on hits are counted as near it.",
  }),
  hasDynamicMetadata: switchOption({
    env: "RESPONSE_DYNAMIC_METADATA",
    defaultValue: false,
    docs:
      "Responses say in their dynamic metadata what was asked, and the `metadata` of the rules " +
      "that let it pass, for filters that come later.",
  }),
  hasLimitHeaders: switchOption({
    env: "LIMIT_RESPONSE_HEADERS_ENABLED",
    defaultValue: false,
    docs: "Responses carry the tightest limit in three headers, where its rule says nothing else.",
  }),
  tellsWait: switchOption({
    env: "HEADGATE_RETRY_AFTER_HEADER",
    defaultValue: false,
    docs:
      "Refusals carry `retry-after`, unless the rule says `headers: none`: for Envoys that do " +
      "not tell the wait themselves (`enable_retry_after_header`, from 1.40).",
  }),
  limitHeader: headerNameOption({
    env: "LIMIT_LIMIT_HEADER",
    defaultValue: "RateLimit-Limit",
    docs: "The header for the limit's hits in a period.",
  }),
  remainingHeader: headerNameOption({
    env: "LIMIT_REMAINING_HEADER",
    defaultValue: "RateLimit-Remaining",
    docs: "The header for the hits that are left.",
  }),
  resetHeader: headerNameOption({
    env: "LIMIT_RESET_HEADER",
    defaultValue: "RateLimit-Reset",
    docs: "The header for the whole seconds until the limit is unused, or until it lets in again.",
  }),
  hasRequestHeaders: switchOption({
    env: "LIMIT_REQUEST_HEADERS_ENABLED",
    defaultValue: false,
    docs:
      "Requests that go on to the upstream carry the tightest limit in three headers, unless its " +
      "rule says `headers: none`. Envoy adds them to what the client sent: remove those first.",
  }),
  requestLimitHeader: headerNameOption({
    env: "LIMIT_REQUEST_LIMIT_HEADER",
    defaultValue: "RateLimit-Limit",
    docs: "The upstream's header for the limit's hits in a period.",
  }),
  requestRemainingHeader: headerNameOption({
    env: "LIMIT_REQUEST_REMAINING_HEADER",
    defaultValue: "RateLimit-Remaining",
    docs: "The upstream's header for the hits that are left.",
  }),
  requestResetHeader: headerNameOption({
    env: "LIMIT_REQUEST_RESET_HEADER",
    defaultValue: "RateLimit-Reset",
    docs: "The upstream's header for the whole seconds of `LIMIT_RESET_HEADER`.",
  }),
} as const;

type DecisionRows = typeof decisionOptionRows;
type DecisionValues = {
  readonly [Name in keyof DecisionRows]: DecisionRows[Name]["defaultValue"];
};

/** What holds for limits that do not say it. */
export function limitDefaultsOf(
  values: Pick<DecisionValues, "algorithm" | "onStoreFailure">,
): LimitDefaults {
  const { algorithm, onStoreFailure } = values;
  return { algorithm, onStoreFailure };
}

/** What the process changes about every limit. */
export function switchesOf(values: DecisionValues): LimitSwitches {
  const { shadowMode, quotaMode, chargesDenied } = values;
  const defaults = limitDefaultsOf(values);
  return { isShadow: shadowMode, isQuota: quotaMode, chargesDenied, defaults };
}

/** What the process adds to every response. */
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

/** How refusals are told in the log. */
export const refusalOptionRows = {
  refusalsLoggedPerSecond: wholeNumberOption({
    env: "HEADGATE_REFUSALS_LOGGED_PER_SECOND",
    range: [0, loggedRefusalsPerSecondMax],
    defaultValue: 1,
    docs:
      "Lines at level `info` of refused requests, for each rule that a policy does not keep out " +
      "of the log (`tellRule`), and each cause of a service; 0 for none. All together they are " +
      `${loggedRefusalsPerSecondMax} a second at most; each says how many requests it stands for.`,
  }),
} as const;
