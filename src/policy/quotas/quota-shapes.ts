import { plainShape as shape } from "../text/shapes.js";

/** An item of `quotas`. */
export const quotaShape = shape("a quota", [
  "name",
  "domain",
  "services",
  "match",
  "when",
  "bucket",
  "rate",
  "classes",
  "callsShare",
  "ttl",
  "beforeAssignment",
  "afterExpiry",
  "deny",
]);

/** A part of a bucket that is a map. */
export const quotaPartShape = shape("a part of a bucket", [
  "header",
  "query",
  "value",
  "as",
  "default",
]);

/** `rate` of a quota. */
export const quotaRateShape = shape("a quota's rate", [
  "hits",
  "period",
  "burst",
  "on_store_failure",
  "overrideMax",
  "dryRun",
]);

/** `classes` of a quota. */
export const quotaClassesShape = shape("a quota's classes", ["header", "weights"]);

/** `afterExpiry` of a quota. */
export const quotaExpiryShape = shape("an afterExpiry", ["fallback", "for"]);

/** `deny` of a quota. */
export const quotaDenialShape = shape("a deny", [
  "status",
  "retryAfter",
  "body",
  "headers",
  "grpcStatus",
]);
