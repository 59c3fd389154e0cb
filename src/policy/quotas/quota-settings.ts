import { grpcStatuses } from "../../core/base/grpc-status.js";
import {
  drainTimeUsMax,
  type FailureMode,
  hitsMax,
  type Limit,
  type LimitDefaults,
} from "../../core/limits/limit.js";
import { defaultQuotaTtlMs, quotaTtlMsMin } from "../../core/quota/quota.js";
import { type Pace, readOverrideMax, readPeriod } from "../limits/rate-limit.js";
import { readFailureMode } from "../limits/rule-settings.js";
import { quoteText } from "../problems/problem.js";
import type { Block } from "../text/block.js";
import { formatDuration } from "../text/duration.js";
import type { DurationBounds, NumberBounds } from "../text/quantities.js";
import { readHeaderName } from "../text/service-texts.js";
import type { TextRule } from "../text/text-rules.js";
import type { QuotaBlanket, QuotaDenial } from "./quota-policy.js";
import { quotaDenialShape, quotaExpiryShape, quotaRateShape } from "./quota-shapes.js";

/** The slowest quota: hits an hour. What is slower cannot be divided among many. */
export const quotaHitsPerHourMin = 1;

/** The bounds of `ttl`. Source: Envoy 1.40 cuts it to whole seconds, and 0 is over at once. */
export const quotaTtlBounds: DurationBounds = { minMs: quotaTtlMsMin, maxMs: 300_000 };

/** The bounds of `for` in `afterExpiry`. */
export const quotaExpiryBounds: DurationBounds = { minMs: quotaTtlMsMin, maxMs: 86_400_000 };

/** The bounds of `retryAfter`. */
export const quotaRetryBounds: DurationBounds = { minMs: 1_000, maxMs: 86_400_000 };

/** The bounds of `callsShare`. */
export const callsShareBounds: NumberBounds = { min: 0, max: 0.9 };

/** What holds where a quota says nothing. */
export const defaultQuota = {
  callsShareRatio: 0.1,
  ttlSeconds: defaultQuotaTtlMs / 1_000,
  beforeAssignment: "allow",
  /** As long as a Headgate may be away before its Envoys are back at `beforeAssignment`. */
  expirySeconds: 3_600,
  status: 429,
  retryAfterSeconds: 1,
  /** RESOURCE_EXHAUSTED. */
  grpcStatus: grpcStatuses.resourceExhausted,
} as const;

/** Headers of a refusal, beside `retry-after`. */
export const quotaHeadersMax = 16;

/** Longest body of a refusal, in characters. */
export const quotaBodyCharsMax = 4_096;

/** What an Envoy can do with a bucket that was never assigned anything. */
export const quotaBlankets = ["allow", "deny"] as const satisfies readonly QuotaBlanket[];

/** What it can do after an assignment. */
export const expiryWords = ["limit", "allow", "deny"] as const;

/** What `afterExpiry` says; the limit's share is known when all files are read. */
export interface ReadExpiry {
  readonly fallback: (typeof expiryWords)[number];
  readonly forSeconds: number;
}

/** What the `rate` of a quota says, which is a limit of its domain. */
export type ReadQuotaRate = Pace &
  Pick<Limit, "hits" | "burst" | "role"> & {
    /** Undefined: as the domain says. */
    readonly onStoreFailure: FailureMode | undefined;
    readonly overrideMax: number | undefined;
  };

/** Reads `rate` of a quota; undefined where it is left out, or wrong. */
export function readQuotaRate(quota: Block): ReadQuotaRate | undefined {
  const block = quota.block("rate", quotaRateShape);
  if (block === undefined) return undefined;
  const { reader, fields } = block;
  const hitsField = reader.requiredField(fields, "hits", "how many hits a period lets pass");
  const hits = hitsField && reader.readWhole(hitsField, quotaHitsBounds);
  const periodField = reader.requiredField(fields, "period", "a period such as 1s or 1m");
  const pace = periodField && readPeriod(reader, periodField);
  const burst = block.whole("burst", hits ?? 1, quotaHitsBounds);
  const failureField = block.field("on_store_failure");
  const onStoreFailure = failureField && readFailureMode(reader, failureField);
  const overrideMax = readOverrideMax(reader, fields);
  const role = block.flag("dryRun") ? "shadow" : "enforce";
  if (hits === undefined || pace === undefined) return undefined;
  if (!isDivisible({ hits, periodUs: pace.periodUs })) {
    const message = `${hits} in ${formatDuration(pace.periodUs / 1_000)} is too slow a quota`;
    const expected = `at least ${quotaHitsPerHourMin} an hour; a slower limit needs a call each`;
    return block.report("hits", { id: "HG267", message, expected });
  }
  if (BigInt(burst) * BigInt(pace.periodUs) > BigInt(drainTimeUsMax) * BigInt(hits)) {
    const message = "a full bucket of this quota takes longer than ten years to drain";
    return block.report("burst", { id: "HG144", message });
  }
  return { ...pace, hits, burst, role, onStoreFailure, overrideMax };
}

/** The bounds of a quota's `hits` and `burst`. */
export const quotaHitsBounds = { min: 1, max: hitsMax } as const;

/** Whether a limit is fast enough to be divided; one that blocks is the same to all. */
export function isDivisible({ hits, periodUs }: Pick<Limit, "hits" | "periodUs">): boolean {
  return hits === 0 || hits * 3_600_000_000 >= quotaHitsPerHourMin * periodUs;
}

/** A quota's own rate as the limit that it is. */
export function quotaLimit(name: string, rate: ReadQuotaRate, defaults: LimitDefaults): Limit {
  const overrideMax = rate.overrideMax ?? defaults.overrideMax;
  return {
    name,
    hits: rate.hits,
    unit: rate.unit,
    unitMultiplier: rate.unitMultiplier,
    periodUs: rate.periodUs,
    burst: rate.burst,
    role: rate.role,
    peek: "debt",
    onStoreFailure: rate.onStoreFailure ?? defaults.onStoreFailure,
    ...(overrideMax !== undefined && { overrideMax }),
  };
}

/** Reads `ttl`, in seconds. */
export function readQuotaTtl(quota: Block): number {
  return readWholeSeconds(quota, "ttl", {
    defaultSeconds: defaultQuota.ttlSeconds,
    bounds: quotaTtlBounds,
  });
}

/** A duration of whole seconds: of others Envoy would drop a part. */
function readWholeSeconds(
  block: Block,
  name: string,
  { defaultSeconds, bounds }: { readonly defaultSeconds: number; readonly bounds: DurationBounds },
): number {
  const ms = block.durationMs(name, defaultSeconds * 1_000, bounds);
  if (ms % 1_000 === 0) return ms / 1_000;
  const kept = Math.max(bounds.minMs, Math.ceil(ms / 1_000) * 1_000);
  block.report(name, {
    id: "HG260",
    message: `"${name}" is ${formatDuration(ms)}, of which Envoy keeps whole seconds only`,
    expected: "whole seconds",
    suggestion: formatDuration(kept),
  });
  return defaultSeconds;
}

/** Reads `beforeAssignment`. */
export function readBeforeAssignment(quota: Block): QuotaBlanket {
  const refused = readRefused(quota, "beforeAssignment", {
    limit: "Envoy crashes where it has to count before it was told anything",
  });
  if (refused) return defaultQuota.beforeAssignment;
  return quota.choice("beforeAssignment", {
    usual: defaultQuota.beforeAssignment,
    words: quotaBlankets,
  });
}

/** Reads `afterExpiry`. */
export function readAfterExpiry(quota: Block): ReadExpiry {
  const block = quota.block("afterExpiry", quotaExpiryShape);
  const usual: ReadExpiry = { fallback: "limit", forSeconds: defaultQuota.expirySeconds };
  if (block === undefined) return usual;
  const refused = readRefused(block, "fallback", {
    reuse: "Envoy does not keep a refusal that way",
    last: "Envoy does not keep a refusal that way",
  });
  return {
    fallback: refused
      ? usual.fallback
      : block.choice("fallback", { usual: usual.fallback, words: expiryWords }),
    forSeconds: readWholeSeconds(block, "for", {
      defaultSeconds: defaultQuota.expirySeconds,
      bounds: quotaExpiryBounds,
    }),
  };
}

/** Reports a word that means something, and that Envoys do not do. */
function readRefused(block: Block, name: string, whys: Readonly<Record<string, string>>): boolean {
  const field = block.field(name);
  const content = field && block.reader.contentOf(field);
  const word = content !== undefined && "value" in content ? String(content.value) : "";
  const why = Object.hasOwn(whys, word) ? whys[word] : undefined;
  if (field === undefined || why === undefined) return false;
  const expected = name === "fallback" ? "limit, allow or deny" : "allow or deny";
  const message = `${quoteText(word)}: ${why}`;
  block.reader.reportContent(field.value ?? field.key, { id: "HG269", message, expected });
  return true;
}

const bodyRule: TextRule = {
  charsMax: quotaBodyCharsMax,
  forbidden: /(?![\n\t])[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u,
  expected: `a text of at most ${quotaBodyCharsMax} characters`,
};

const headerValueRule: TextRule = {
  charsMax: 1_024,
  forbidden: /[^ -~]/,
  expected: "a header's value of 1 to 1,024 printable ASCII characters",
};

/** The bounds of a refusal's status. */
export const quotaStatusBounds = { min: 400, max: 599 } as const;

/** Statuses within these bounds that Envoy takes. Source: envoy.type.v3.StatusCode. */
function isEnvoyStatus(status: number): boolean {
  if (status >= 500) return status <= 508 || status === 510 || status === 511;
  return status <= 417 || (status >= 421 && status <= 424) || otherStatuses.includes(status);
}

const otherStatuses: readonly number[] = [426, 428, 429, 431];

/** The bounds of a refusal's gRPC status; 0 would be no refusal. */
export const grpcStatusBounds = { min: 1, max: 16 } as const;

/** Reads `deny`. */
export function readQuotaDenial(quota: Block): QuotaDenial {
  const block = quota.block("deny", quotaDenialShape);
  const retryAfter = (seconds: number) => ({ name: "retry-after", value: String(seconds) });
  const { status, grpcStatus, retryAfterSeconds } = defaultQuota;
  if (block === undefined) {
    return { status, body: undefined, headers: [retryAfter(retryAfterSeconds)], grpcStatus };
  }
  const bounds = quotaRetryBounds;
  const waitSeconds = readWholeSeconds(block, "retryAfter", {
    defaultSeconds: retryAfterSeconds,
    bounds,
  });
  return {
    status: readStatus(block),
    body: block.text("body", bodyRule),
    headers: [retryAfter(waitSeconds), ...readHeaders(block)],
    grpcStatus: block.whole("grpcStatus", grpcStatus, grpcStatusBounds),
  };
}

function readStatus(block: Block): number {
  const status = block.whole("status", defaultQuota.status, quotaStatusBounds);
  if (isEnvoyStatus(status)) return status;
  const message = `Envoy does not answer with ${status} here`;
  block.report("status", {
    id: "HG269",
    message,
    expected: "a status that is registered: 429, 503",
  });
  return defaultQuota.status;
}

function readHeaders(block: Block): QuotaDenial["headers"] {
  const { reader } = block;
  const field = block.field("headers");
  const expected = "headers by name, such as {content-type: application/json}";
  const rows = field && reader.readTextMap(field, { title: "headers", expected });
  if (field === undefined || rows === undefined) return [];
  if (rows.length === 0 || rows.length > quotaHeadersMax) {
    const message = `"headers" of ${rows.length} headers`;
    const bound = `1 to ${quotaHeadersMax} headers`;
    reader.report(field.key, { id: "HG160", message, expected: bound });
    return [];
  }
  return rows.flatMap((row) => {
    const name = readHeaderName(reader, { ...row, value: row.key });
    const value = reader.readText(row, headerValueRule);
    if (name === "retry-after") {
      const message = '"retry-after" has a name of its own here';
      const finding = { id: "HG126", message, expected: "retryAfter: a duration" } as const;
      reader.report(row.key, finding);
    }
    return name === undefined || value === undefined ? [] : [{ name, value }];
  });
}
