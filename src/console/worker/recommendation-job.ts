import type { Digest } from "../../core/collections/keyed-hash.js";
import { type PolicyText, parsePolicy } from "../../policy/parse.js";
import { buildPolicy, type Policy } from "../../policy/policy.js";
import { parsePeriod } from "../../policy/text/period.js";
import { withBudgetFacts } from "../../recommend/budget-log.js";
import { addRule } from "../../recommend/new-rule.js";
import { recommendFromLogs, unreadableRatioMax } from "../../recommend/recommend-from-logs.js";
import { proposes } from "../../recommend/recommendation.js";
import { recommendationHtml, recommendationReport } from "../../recommend/report/html-report.js";
import { wantedFacts } from "../../simulate/asked-service.js";
import { CountedLog } from "../../simulate/counted-log.js";
import { SeededRandom } from "../../simulate/engine/seeded-random.js";
import { isGzip, lineBatches } from "../../simulate/line-batches.js";
import { type LogFormat, LogReader } from "../../simulate/log-reader.js";
import type { LoggedRequest, WantedFacts } from "../../simulate/logged-request.js";
import { parseParts } from "../../simulate/part-texts.js";
import type { Markup } from "../../simulate/report/markup.js";
import { createDigest } from "./digest.js";

/** Part of the requests of callers other than outliers that may be refused. */
const refusedRequestRatioMax = 0.001;

/** An access log, and the options of a recommendation. */
export interface RecommendationJob {
  /** Read in the browser, at least twice. */
  readonly log: File;
  readonly format: LogFormat;
  readonly policies: readonly PolicyText[];
  /** Descriptor of a limit to add to the policy; empty: none. */
  readonly per: string;
  /** Period of that limit. */
  readonly period: string;
  /** Part of the callers that may have a request refused on a day. */
  readonly refusedCallerRatioMax: number;
  /** Whether optional settings of services are written, too. */
  readonly isFixed: boolean;
  /** Key of the callers' pseudonyms in the report, so that others cannot identify them. */
  readonly secret: Readonly<Digest>;
}

/** Result of the job. */
export type RecommendationOutcome =
  | { readonly kind: "refused"; readonly message: string }
  | {
      readonly kind: "recommended";
      readonly markup: readonly Markup[];
      readonly html: string;
      readonly lineCount: number;
      readonly unreadableCount: number;
      /** The policy with the proposed limits; undefined: nothing is proposed. */
      readonly files: readonly PolicyText[] | undefined;
    };

/** Receives the progress: the part of the log read, and the number of the pass, from 1. */
type OnProgress = (ratio: number, pass: number) => void;

interface ReadPolicy {
  readonly sources: readonly PolicyText[];
  readonly policy: Policy;
}

/** Observes a log, and proposes limits. */
export async function recommendFor(
  job: RecommendationJob,
  onProgress: OnProgress,
): Promise<RecommendationOutcome> {
  const given = readPolicy(job);
  if (typeof given === "string") return { kind: "refused", message: given };
  const passes = new LogPasses(job, given.policy, onProgress);
  const nameOf = createDigest(job.secret);
  try {
    const recommended = await recommendFromLogs({
      ...given,
      given: job.policies,
      isFixed: job.isFixed,
      isChosen: () => true,
      headers: wantedOf(given.policy).headers,
      forAll: undefined,
      options: {
        refusedCallerRatioMax: job.refusedCallerRatioMax,
        refusedRequestRatioMax,
        headroom: undefined,
      },
      readLogs: (take) => passes.readOnce(take),
      digest: createDigest({ a: 1, b: 2, c: 3, d: 4 }),
      nameOf: (text) => `caller-${nameOf(text).slice(0, 8)}`,
      random: new SeededRandom(1),
    });
    if (recommended.kind === "problem") {
      return { kind: "refused", message: recommended.message };
    }
    const { recommendation, sources } = recommended;
    return {
      kind: "recommended",
      markup: recommendationReport(recommendation),
      html: recommendationHtml(recommendation),
      lineCount: passes.lineCount,
      unreadableCount: passes.unreadableCount,
      files: proposes(recommendation) ? sources : undefined,
    };
  } catch (error) {
    if (error instanceof UnreadableLog) return { kind: "refused", message: error.message };
    throw error;
  }
}

/** Reads the policy, with the requested limit. */
function readPolicy({ policies, per, period }: RecommendationJob): ReadPolicy | string {
  const parsed = parsePolicy(policies);
  if (parsed.kind === "problems") return "The policy has problems: see its editor.";
  const policy = buildPolicy("given", parsed);
  if (per === "") return { sources: policies, policy };
  const parts = parseParts(per);
  if (typeof parts === "string") return `A limit for "${per}": ${parts}.`;
  if (parsePeriod(period).kind === "unreadable") return "A period is such as 10s, 1m or 1h.";
  const added = addRule(policies, policy, { service: undefined, parts, period });
  if (added.kind === "problem") return `A limit for "${per}": ${added.message}.`;
  const extended = parsePolicy(added.sources);
  if (extended.kind === "problems") return `The policy cannot take a limit for "${per}".`;
  return { sources: added.sources, policy: buildPolicy("extended", extended) };
}

/** Problem with a log, as a sentence. */
class UnreadableLog extends Error {}

/** Reads a log several times. The first time reports its problems. */
class LogPasses {
  readonly #job: RecommendationJob;
  readonly #policy: Policy;
  readonly #onProgress: OnProgress;
  #pass = 0;
  lineCount = 0;
  unreadableCount = 0;

  constructor(job: RecommendationJob, policy: Policy, onProgress: OnProgress) {
    this.#job = job;
    this.#policy = policy;
    this.#onProgress = onProgress;
  }

  async readOnce(take: (request: LoggedRequest) => void): Promise<void> {
    this.#pass += 1;
    const { format } = this.#job;
    const wanted = wantedOf(this.#policy);
    const names = { wanted, renamed: new Map() };
    const counted = new CountedLog(new LogReader(format, names), take);
    for await (const lines of lineBatches(this.#chunks())) {
      for (const line of lines) counted.read(line);
    }
    if (this.#pass > 1) return;
    const { lineCount, unreadableCount, firstUnreadable = 0, problem } = counted;
    this.lineCount = lineCount;
    this.unreadableCount = unreadableCount;
    if (lineCount === 0) throw new UnreadableLog("The log is empty.");
    if (problem !== undefined) throw new UnreadableLog(`The log cannot be read: ${problem}.`);
    if (unreadableCount / lineCount <= unreadableRatioMax) return;
    const part = `${Math.round((100 * unreadableCount) / lineCount)} % of the lines`;
    throw new UnreadableLog(`${part} cannot be read, line ${firstUnreadable} first.`);
  }

  /** Returns the bytes of the log, decompressed. */
  async *#chunks(): AsyncGenerator<Uint8Array> {
    const { log } = this.#job;
    let readBytes = 0;
    const stream = log.stream().pipeThrough(
      new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
        transform: (chunk, controller) => {
          readBytes += chunk.length;
          this.#onProgress(readBytes / Math.max(1, log.size), this.#pass);
          controller.enqueue(chunk);
        },
      }),
    );
    try {
      const isPacked = isGzip(new Uint8Array(await log.slice(0, 2).arrayBuffer()));
      const unpacked = isPacked ? stream.pipeThrough(new DecompressionStream("gzip")) : stream;
      const reader = unpacked.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        yield value;
      }
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new UnreadableLog(`The file cannot be read to its end: ${why}`);
    }
  }
}

/** Returns the facts to read from each line of a log. */
function wantedOf(policy: Policy): WantedFacts {
  return withBudgetFacts({ ...wantedFacts(policy.services), timing: "wanted" }, policy);
}
