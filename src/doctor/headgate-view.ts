import { parsePlain, textAt } from "./json-access.js";

/** Longest page of metrics that is read, in UTF-16 units. */
export const metricsCharsMax = 67_108_864;

/** What Headgate says of itself. */
export interface HeadgateView {
  /** `ready`, `degraded` and so on; undefined where it does not say. */
  readonly status: string | undefined;
  /** `ok` or `unavailable`; undefined where it does not say. */
  readonly storeState: string | undefined;
  readonly policyVersion: string | undefined;
  readonly lastReloadProblem: boolean;
  readonly version: string | undefined;
  /** Metrics without labels, or summed up over all of their labels. */
  readonly totals: ReadonlyMap<string, number>;
  /** An upper bound of what 99 of 100 decisions took, in milliseconds; undefined: too few yet. */
  readonly decisionMsP99: number | undefined;
}

/** Reads the bodies of /readyz and /metrics; what cannot be read of them is left out. */
export function readHeadgate({
  readiness,
  metrics,
}: {
  readonly readiness: string;
  readonly metrics: string;
}): HeadgateView {
  const read = parsePlain(readiness);
  const ready = read.kind === "read" ? read.value : undefined;
  const totals = new Map<string, number>();
  const buckets: Bucket[] = [];
  let version: string | undefined;
  for (const line of metrics.slice(0, metricsCharsMax).split("\n")) {
    const sample = readSample(line);
    if (sample === undefined) continue;
    const { name, labels, value } = sample;
    totals.set(name, (totals.get(name) ?? 0) + value);
    if (name === "headgate_build_info") version = labelOf(labels, "version");
    if (name === `${decisionMetric}_bucket`) {
      const upTo = labelOf(labels, "le");
      if (upTo !== undefined) buckets.push({ upToSeconds: Number(upTo), count: value });
    }
  }
  return {
    status: textAt(ready, "status"),
    storeState: textAt(ready, "store", "state"),
    policyVersion: textAt(ready, "policy", "version"),
    lastReloadProblem: textAt(ready, "policy", "lastReloadProblem") !== undefined,
    version,
    totals,
    decisionMsP99: highQuantile(buckets),
  };
}

const decisionMetric = "headgate_decision_duration_seconds";

/** Of fewer decisions no hundredth can be told, and the first ones wait for cold code. */
const decisionCountMin = 100;

interface Bucket {
  readonly upToSeconds: number;
  readonly count: number;
}

/** The bound of the first bucket that holds 99 of 100. */
function highQuantile(buckets: readonly Bucket[]): number | undefined {
  const total = buckets.reduce((most, { count }) => Math.max(most, count), 0);
  if (total < decisionCountMin) return undefined;
  let leastSeconds = Number.POSITIVE_INFINITY;
  for (const { upToSeconds, count } of buckets) {
    // The last bound, +Inf, is no number here, and below nothing.
    if (count >= 0.99 * total && upToSeconds < leastSeconds) leastSeconds = upToSeconds;
  }
  return Number.isFinite(leastSeconds) ? leastSeconds * 1_000 : undefined;
}

interface Sample {
  readonly name: string;
  readonly labels: string;
  readonly value: number;
}

/** Source: Prometheus, "Exposition formats", text. */
function readSample(line: string): Sample | undefined {
  if (line === "" || line.startsWith("#")) return undefined;
  const space = line.lastIndexOf(" ");
  const head = line.slice(0, space);
  const value = Number(line.slice(space + 1));
  const brace = head.indexOf("{");
  const name = brace === -1 ? head : head.slice(0, brace);
  if (Number.isNaN(value) || !/^[A-Za-z_:][\w:]*$/.test(name)) return undefined;
  return { name, labels: brace === -1 ? "" : head.slice(brace), value };
}

/** Of a label whose value holds no quotes, which is all that are looked at. */
function labelOf(labels: string, name: string): string | undefined {
  return new RegExp(`[{,]${name}="([^"]*)"`).exec(labels)?.[1];
}
