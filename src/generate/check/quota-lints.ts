import {
  type EnvoyMessage,
  type EnvoyValue,
  fieldAt,
  messageAt,
  numberField,
  textField,
} from "./envoy-message.js";
import type { Lint, LintScope } from "./lint.js";

const filter = "envoy.extensions.filters.http.rate_limit_quota.v3";
const quota = `${filter}.RateLimitQuotaBucketSettings`;

/** Shortest time that Envoy honors, in seconds. */
const keptSecondsMin = 2;

/** Lints of the quota filter, which Envoy 1.40 implements only in part. */
export const quotaLints: readonly Lint[] = [
  { on: `${quota}.NoAssignmentBehavior`, check: checkNoAssignment },
  { on: `${quota}.ExpiredAssignmentBehavior`, check: checkExpired },
  { on: "envoy.type.v3.RateLimitStrategy", check: checkStrategy },
  { on: `${filter}.RateLimitQuotaOverride`, check: checkOverride },
  { on: `${quota}.DenyResponseSettings`, check: checkDenial },
];

function checkNoAssignment(message: EnvoyMessage, { report }: LintScope): void {
  const strategy = messageAt(message, "fallback_rate_limit");
  if (strategy?.fields.has("token_bucket") !== true) return;
  report({
    id: "HG418",
    path: strategy.path,
    message: "the bucket's second request crashes Envoy",
    hint: "set blanket_rule",
  });
}

function checkExpired(message: EnvoyMessage, { report }: LintScope): void {
  const reused = fieldAt(message, "reuse_last_assignment");
  if (reused !== undefined) {
    const text = "Envoy does not keep a denial, and everything passes";
    report({ id: "HG436", path: reused.path, message: text, hint: "set fallback_rate_limit" });
  }
  const name = "expired_assignment_behavior_timeout";
  const seconds = numberField(message, name);
  if (seconds === undefined || (Number.isInteger(seconds) && seconds >= keptSecondsMin)) return;
  report({
    id: "HG430",
    path: [...message.path, name],
    message: `Envoy truncates ${seconds}s to ${Math.floor(seconds)}s`,
    hint: `write whole seconds, at least ${keptSecondsMin}s`,
  });
}

function checkStrategy(message: EnvoyMessage, scope: LintScope): void {
  const { report } = scope;
  checkFills(message, scope);
  const value: EnvoyValue | undefined = message.fields.get("requests_per_time_unit");
  if (value === undefined) return;
  const text = "requests_per_time_unit lets everything pass";
  report({ id: "HG429", path: value.path, message: text, hint: "use token_bucket" });
}

/** Envoy divides by the interval in whole seconds, which may be zero. */
function checkFills(message: EnvoyMessage, { report }: LintScope): void {
  const seconds = numberField(message, "token_bucket", "fill_interval");
  if (seconds === undefined || (Number.isInteger(seconds) && seconds >= 1)) return;
  report({
    id: "HG435",
    path: [...message.path, "token_bucket", "fill_interval"],
    message:
      seconds < 1
        ? `${seconds}s lets everything pass`
        : `Envoy truncates ${seconds}s to ${Math.floor(seconds)}s`,
    hint: "write whole seconds, at least 1s, with more tokens each time",
  });
}

function checkOverride({ path }: EnvoyMessage, { report }: LintScope): void {
  report({
    id: "HG437",
    path,
    message: "Envoy does not accept quota settings on virtual hosts and routes",
    hint: "add a filter for each, and enable it there with FilterConfig",
  });
}

function checkDenial(message: EnvoyMessage, { report }: LintScope): void {
  const text = textField(message, "grpc_status", "message");
  if (text === undefined || text === "" || fieldAt(message, "http_body") === undefined) return;
  report({
    id: "HG438",
    path: [...message.path, "grpc_status", "message"],
    message: "the message replaces http_body",
    hint: "remove it: gRPC calls get http_body as their message",
  });
}
