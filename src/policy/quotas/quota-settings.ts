import { grpcStatuses } from "../../core/base/grpc-status.js";
import { httpStatuses } from "../../core/base/http-status.js";
import {
  drainTimeUsMax,
  hitsMax,
  type Limit,
  type LimitDefaults,
  type Role,
} from "../../core/limits/limit.js";
import { defaultQuotaTtlMs, quotaTtlMsMin } from "../../core/quota/quota.js";
import { overrideMaxField, period } from "../limits/rate-limit.js";
import { failureMode } from "../limits/rule-settings.js";
import { quoteText } from "../problems/problem.js";
import { formatDuration } from "../text/duration.js";
import {
  type FieldType,
  flag,
  readBy,
  ruledText,
  seconds,
  text,
  whole,
  words,
} from "../text/form.js";
import { field, object, type Values } from "../text/object.js";
import type { DurationBounds } from "../text/quantities.js";
import { headerName, headerPattern } from "../text/service-texts.js";
import type { TextRule } from "../text/text-rules.js";

/** Minimum rate of a quota, in hits an hour. A slower one cannot be divided among many. */
export const quotaHitsPerHourMin = 1;

/** Maximum number of headers of a refusal, besides `retry-after`. */
export const quotaHeadersMax = 16;

/** Maximum length of the body of a refusal, in characters. */
export const quotaBodyCharsMax = 4_096;

/** The bounds of a quota's `hits` and `burst`. */
const quotaHitsBounds = { min: 1, max: hitsMax } as const;

const rateRows = {
  hits: field(whole(quotaHitsBounds), "Hits allowed in each period, in the whole fleet.", {
    needs: "how many hits a period lets pass",
  }),
  period: field(period, "Any period: 1s, 10s, 1m, 1h30m.", {
    needs: "a period such as 1s or 1m",
  }),
  burst: field(whole(quotaHitsBounds), "Hits that may arrive at once. Default: `hits`."),
  on_store_failure: field(
    failureMode,
    "What applies while the store is unreachable and leases have expired. Default: " +
      "that of the domain.",
    { as: "onStoreFailure" },
  ),
  overrideMax: overrideMaxField,
  dryRun: field(flag, "Counts and reports, but never denies.", { default: false }),
};

/** `rate` of a quota; undefined if it is wrong. */
export const quotaRate = object(
  {
    title: "a quota's rate",
    docs: "A limit of the domain, at the path of the quota's buckets.",
  },
  rateRows,
  {
    data(read): ReadQuotaRate | undefined {
      const rate = rateOf(read);
      return rate && (!isDivisible(rate) || isDrainedLate(rate)) ? undefined : rate;
    },
    check(block, _, read) {
      const rate = rateOf(read);
      if (rate === undefined) return;
      const { hits, periodUs } = rate;
      if (!isDivisible(rate)) {
        const message = `${hits} in ${formatDuration(periodUs / 1_000)} is too slow for a quota`;
        const expected = `at least ${quotaHitsPerHourMin} an hour`;
        const finding = {
          message,
          expected: `${expected}; a slower limit needs a call for each request`,
        };
        block.report("hits", { id: "HG267", ...finding });
      } else if (isDrainedLate(rate)) {
        const message = "a full bucket of this quota takes longer than ten years to drain";
        block.report("burst", { id: "HG144", message });
      }
    },
  },
);

function rateOf({
  hits,
  period: pace,
  burst = hits ?? 1,
  dryRun,
  ...rest
}: Values<typeof rateRows>) {
  if (hits === undefined || pace === undefined) return undefined;
  const role: Role = dryRun ? "shadow" : "enforce";
  return { ...pace, hits, burst, role, ...rest };
}

/** The `rate` of a quota, which is a limit of its domain. */
export type ReadQuotaRate = NonNullable<ReturnType<typeof rateOf>>;

function isDrainedLate({ hits, burst, periodUs }: ReadQuotaRate): boolean {
  return BigInt(burst) * BigInt(periodUs) > BigInt(drainTimeUsMax) * BigInt(hits);
}

/** Reports whether a limit is fast enough to be divided; one of 0 hits blocks all alike. */
export function isDivisible({ hits, periodUs }: Pick<Limit, "hits" | "periodUs">): boolean {
  return hits === 0 || hits * 3_600_000_000 >= quotaHitsPerHourMin * periodUs;
}

/** Returns a quota's own rate as a limit. */
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

/** A duration of whole seconds: Envoy would drop a fraction. */
function keptSeconds(bounds: DurationBounds): FieldType<number> {
  return seconds(bounds, (reader, place, ms) => {
    const kept = Math.max(bounds.minMs, Math.ceil(ms / 1_000) * 1_000);
    return reader.report(place.key, {
      id: "HG260",
      message: `"${place.name}" is ${formatDuration(ms)}, and Envoy accepts whole seconds only`,
      expected: "whole seconds",
      suggestion: formatDuration(kept),
    });
  });
}

/** `ttl`. Source: Envoy 1.40 truncates it to whole seconds, and 0 expires at once. */
export const ttlField = field(
  keptSeconds({ minMs: quotaTtlMsMin, maxMs: 300_000 }),
  "How long an assignment is valid, in whole seconds from 2s to 5m. A dead Envoy " +
    "keeps its share that long.",
  { larger: "different", isGenerated: false, as: "ttlSeconds", default: defaultQuotaTtlMs / 1_000 },
);

/** Words that Envoys support; known words that they do not support are refused with a reason. */
function doneWords<const Word extends string>(
  done: readonly Word[],
  {
    whys,
    expected,
  }: { readonly whys: Readonly<Record<string, string>>; readonly expected: string },
): FieldType<Word> {
  const type = words(...done);
  return readBy(type, (reader, place) => {
    const content = reader.contentOf(place);
    const word = content !== undefined && "value" in content ? String(content.value) : "";
    const why = Object.hasOwn(whys, word) ? whys[word] : undefined;
    if (why === undefined) return type.read(reader, place);
    const message = `${quoteText(word)}: ${why}`;
    return reader.reportContent(place.value ?? place.key, { id: "HG269", message, expected });
  });
}

/** `beforeAssignment`. */
export const beforeAssignmentField = field(
  doneWords(["allow", "deny"], {
    whys: { limit: "Envoy crashes if it has to count before its first assignment" },
    expected: "allow or deny",
  }),
  "What an Envoy does with requests of a new bucket before its first assignment.",
  { default: "allow" },
);

const notKept = "Envoy does not keep such a denial after expiry";

/** `afterExpiry`. The share of the limit is known after all files are read. */
export const quotaExpiry = object(
  {
    title: "an afterExpiry",
    docs: "What an Envoy does with a bucket whose assignment has expired and was not renewed.",
  },
  {
    fallback: field(
      doneWords(["limit", "allow", "deny"], {
        whys: { reuse: notKept, last: notKept },
        expected: "limit, allow or deny",
      }),
      "`limit`: an Envoy's share of the smallest limit, divided by " +
        "`proxies.expected` and by classes. `allow`: everything passes. `deny`: " +
        "nothing passes.",
      { default: "limit" },
    ),
    for: field(
      keptSeconds({ minMs: quotaTtlMsMin, maxMs: 86_400_000 }),
      "For how long, in whole seconds. After that, `beforeAssignment` applies again.",
      // How long Headgate may be away before its Envoys return to `beforeAssignment`.
      { larger: "different", as: "forSeconds", default: 3_600 },
    ),
  },
);

/** The content of `afterExpiry`. */
export type ReadExpiry = typeof quotaExpiry.defaults;

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

const statusType = whole({ min: 400, max: 599 });

/** A status that Envoy supports. */
const status = readBy(statusType, (reader, place) => {
  const read = statusType.read(reader, place);
  if (read === undefined || isEnvoyStatus(read)) return read;
  const message = `Envoy cannot answer with ${read} here`;
  const expected = "a registered status: 429, 503";
  return reader.report(place.key, { id: "HG269", message, expected });
});

/** Source: envoy.type.v3.StatusCode. */
function isEnvoyStatus(code: number): boolean {
  if (code >= 500) return code <= 508 || code === 510 || code === 511;
  return code <= 417 || (code >= 421 && code <= 424) || otherStatuses.includes(code);
}

const otherStatuses: readonly number[] = [426, 428, 429, 431];

/** A header of a refusal. */
interface DenialHeader {
  readonly name: string;
  readonly value: string;
}

const headersExpected = "headers by name, such as {content-type: application/json}";

const furtherHeaders = readBy<readonly DenialHeader[]>(
  { kind: "texts", key: headerPattern, value: text({ charsMax: 1_024 }), max: quotaHeadersMax },
  (reader, place) => {
    const rows = reader.readTextMap(place, { title: "headers", expected: headersExpected });
    if (rows === undefined) return undefined;
    if (rows.length === 0 || rows.length > quotaHeadersMax) {
      const message = `"headers" of ${rows.length} headers`;
      const bound = `1 to ${quotaHeadersMax} headers`;
      return reader.report(place.key, { id: "HG160", message, expected: bound });
    }
    return rows.flatMap((row) => {
      const name = headerName.read(reader, { ...row, value: row.key });
      const value = reader.readText(row, headerValueRule);
      if (name === "retry-after") {
        const message = 'use "retryAfter" instead of the header "retry-after"';
        const finding = { id: "HG126", message, expected: "retryAfter: a duration" } as const;
        reader.report(row.key, finding);
      }
      return name === undefined || value === undefined ? [] : [{ name, value }];
    });
  },
);

/** `deny`. */
export const quotaDenial = object(
  { title: "a deny", docs: "The response to a request that is over the quota." },
  {
    status: field(status, "The HTTP status.", {
      larger: "different",
      default: httpStatuses.tooManyRequests,
    }),
    retryAfter: field(
      keptSeconds({ minMs: 1_000, maxMs: 86_400_000 }),
      "The `retry-after` of the response, in whole seconds.",
      { larger: "different", default: 1 },
    ),
    body: field(
      ruledText(bodyRule),
      "The body of the response, and the message of a gRPC status. Default: none.",
    ),
    headers: field(furtherHeaders, "Additional response headers.", { default: [] }),
    grpcStatus: field(
      // 0 (OK) would be no refusal.
      whole({ min: 1, max: 16 }),
      "The gRPC status for gRPC calls; 8 is RESOURCE_EXHAUSTED.",
      { larger: "different", default: grpcStatuses.resourceExhausted },
    ),
  },
  {
    data({ retryAfter, headers: further, ...rest }) {
      const after = { name: "retry-after", value: String(retryAfter) };
      const headers: readonly DenialHeader[] = [after, ...further];
      return { ...rest, headers };
    },
  },
);
