import type { Clock, Random } from "../../core/base/clock.js";
import { ServiceError, toServiceError } from "../../core/base/errors.js";
import type { Digest } from "../../core/collections/keyed-hash.js";
import { costHitsMax } from "../../core/limits/bucket.js";
import type { Verdict } from "../../core/limits/verdict.js";
import type { DecisionCounters, DecisionTrace } from "../../decide/rate-limit/counters.js";
import type { DecisionCall } from "../../decide/rate-limit/decision.js";
import type { PreparedQuery } from "../../decide/rate-limit/prepared-query.js";
import type { Hits, RateLimitQuery } from "../../decide/rate-limit/query.js";
import type { ShedMode } from "../../decide/rate-limit/shedding.js";
import type {
  CallContext,
  ServiceHandlers,
  UnaryAnswer,
  UnaryHandler,
} from "../../wire/grpc/service.js";
import type { DecisionSpan, DecisionTracer } from "../grpc/decision-trace.js";
import type { Decides } from "./json.js";
import { RateLimitResponseEncoder } from "./rls-encoder.js";
import type { ResponseExtras } from "./rls-extras.js";
import { type SentRequest, toQuery } from "./rls-request.js";
import {
  type RehydratesQueries,
  RequestCache,
  type RequestCacheBounds,
} from "./rls-request-cache.js";
import { decodeRequest } from "./rls-request-decoder.js";
import { type ScannedRequest, scanRateLimitRequest } from "./rls-scanner.js";

/** Decides calls, and reuses the queries of identical ones: a `Decider`. */
export type DecidesPrepared = Decides & RehydratesQueries;

/** Dependencies and settings of the service. */
export interface RateLimitServiceParts {
  readonly decider: DecidesPrepared;
  readonly clock: Clock;
  /** Creates the secret for the digests of requests. */
  readonly random: Random;
  /** Bounds of the request cache. Absent: the defaults. */
  readonly requestCache?: RequestCacheBounds;
  /** Counts requests that fail before they are decided. */
  readonly counters: DecisionCounters;
  /** Creates the parts of responses besides their statuses. */
  readonly extras: ResponseExtras;
  /** Whether no request is denied, whatever it asks. */
  readonly isShadow: boolean;
  /** Traces decisions. Undefined if tracing is off. */
  readonly tracer?: DecisionTracer | undefined;
}

/** The service's full name. Source: envoy/service/ratelimit/v3/rls.proto. */
const rateLimitServiceName = "envoy.service.ratelimit.v3.RateLimitService";

/**
 * Creates Envoy's RateLimitService: bytes in, a decision, bytes out.
 *
 * Calls fail with `ServiceError` REQUEST_INVALID if they break the contract, and with the errors of
 * the decider. A request that is too large (REQUEST_TOO_LARGE) is answered OVER_LIMIT, or OK in
 * shadow mode: Envoy may be configured to let requests pass after an error.
 */
export function createRateLimitService(parts: RateLimitServiceParts): ServiceHandlers {
  const { decider, clock, counters, extras, tracer } = parts;
  const encoder = new RateLimitResponseEncoder();
  const tooLargeAnswer = encoder.encode({ isDenied: !parts.isShadow, statuses: [] });
  const encoders: Encoders = { encoder, extras };
  const refuseTooLarge = (answer: UnaryAnswer): void => answer.reply(tooLargeAnswer.slice());
  const requests = new RequestReader(parts);
  const passedAnswer = encoder.encode({ isDenied: false, statuses: [] });
  const refusedAnswer = encoder.encode({ isDenied: true, statuses: [] });
  const answerUnread = (answer: UnaryAnswer, mode: ShedMode): void => {
    if (mode === "error") answer.fail(new ServiceError("MEMORY_FULL"));
    else answer.reply((mode === "allow" ? passedAnswer : refusedAnswer).slice());
  };
  const handle: UnaryHandler = (bytes, call, answer) => {
    const shedMode = decider.shed?.();
    if (shedMode !== undefined) {
      answerUnread(answer, shedMode);
      return;
    }
    let read: ReadRequest;
    let span: DecisionSpan | undefined;
    try {
      span = tracer?.begin((name) => call.metadata(name));
      read = requests.read(bytes);
    } catch (thrown) {
      const { code } = toServiceError(thrown);
      span?.failed(code);
      if (code === "REQUEST_TOO_LARGE") refuseTooLarge(answer);
      else answer.fail(thrown);
      return;
    }
    const deadlineMs = callerDeadlineMs(call, clock);
    const { prepared, hits, query, asked } = read;
    const own = { prepared, hits, query, deadlineMs, asked, answer, span };
    decider.ask(prepared, new RateLimitCall(own, encoders));
  };
  const onTooLarge = (answer: UnaryAnswer): void => {
    counters.countFailure("REQUEST_TOO_LARGE");
    refuseTooLarge(answer);
  };
  return {
    name: rateLimitServiceName,
    methods: [{ kind: "unary", name: "ShouldRateLimit", handle, onTooLarge }],
  };
}

type OwnParts = Pick<
  RateLimitCall,
  "prepared" | "hits" | "query" | "deadlineMs" | "asked" | "answer" | "span"
>;

/** Encodes verdicts. Shared by all calls. */
interface Encoders {
  readonly encoder: RateLimitResponseEncoder;
  readonly extras: ResponseExtras;
}

/** One call, until its response is sent. */
class RateLimitCall implements DecisionCall {
  readonly prepared: PreparedQuery;
  readonly hits: Hits;
  readonly query: RateLimitQuery | undefined;
  readonly deadlineMs: number;
  readonly asked: SentRequest | undefined;
  readonly answer: UnaryAnswer;
  readonly span: DecisionSpan | undefined;
  readonly trace: DecisionTrace | undefined;
  readonly #encoders: Encoders;

  constructor(own: OwnParts, encoders: Encoders) {
    const { prepared, hits, query, deadlineMs, asked, answer, span } = own;
    this.prepared = prepared;
    this.hits = hits;
    this.query = query;
    this.deadlineMs = deadlineMs;
    this.asked = asked;
    this.answer = answer;
    this.span = span;
    this.trace = span?.trace;
    this.#encoders = encoders;
  }

  decided(verdict: Verdict): void {
    let bytes: Uint8Array;
    try {
      bytes = this.#encode(verdict);
    } catch (thrown) {
      this.failed(thrown);
      return;
    }
    this.answer.reply(bytes);
    this.span?.decided(this.prepared, verdict);
  }

  failed(thrown: unknown): void {
    this.span?.failed(toServiceError(thrown).code);
    this.answer.fail(thrown);
  }

  #encode(verdict: Verdict): Uint8Array {
    const { encoder, extras } = this.#encoders;
    const { prepared, asked } = this;
    if (extras.mayAdd(prepared, verdict)) {
      return Buffer.concat([encoder.encode(verdict), extras.encode({ prepared, verdict, asked })]);
    }
    return encoder.encode(verdict, verdict.isDenied ? extras.naming(prepared, verdict) : undefined);
  }
}

/** A call in the form that the decider expects. */
interface ReadRequest {
  readonly prepared: PreparedQuery;
  readonly hits: Hits;
  /** Undefined unless an observer needs it. */
  readonly query: RateLimitQuery | undefined;
  /** May be undefined if responses do not repeat it. */
  readonly asked: SentRequest | undefined;
}

/** Reads requests. Identical ones are matched only once. */
class RequestReader {
  readonly #parts: RateLimitServiceParts;
  readonly #known: RequestCache;

  constructor(parts: RateLimitServiceParts) {
    this.#parts = parts;
    this.#known = new RequestCache(parts.decider, parts.random, parts.requestCache);
  }

  /** @throws ServiceError REQUEST_INVALID, REQUEST_TOO_LARGE, POLICY_MISSING */
  read(bytes: Uint8Array): ReadRequest {
    const scanned = scanRateLimitRequest(bytes);
    if (scanned === undefined) return this.#decode(bytes);
    const digest = this.#known.digestOf(scanned.identity);
    const prepared = this.#known.find(digest);
    if (prepared === undefined) return this.#decode(bytes, digest);
    const hits = hitsOf(scanned, prepared.descriptors.length);
    const { decider, extras } = this.#parts;
    const isWanted = decider.wantsQuery?.(prepared) === true;
    if (!isWanted && !extras.needsAsked) {
      return { prepared, hits, query: undefined, asked: undefined };
    }
    const asked = decodeRequest(bytes);
    return { prepared, hits, query: isWanted ? toQuery(asked) : undefined, asked };
  }

  #decode(bytes: Uint8Array, digest?: Readonly<Digest>): ReadRequest {
    const { decider, counters } = this.#parts;
    let asked: SentRequest;
    let query: RateLimitQuery;
    try {
      asked = decodeRequest(bytes);
      query = toQuery(asked);
    } catch (thrown) {
      counters.countFailure(toServiceError(thrown).code);
      throw thrown;
    }
    const isKept = digest !== undefined && this.#known.wantsKept();
    const prepared = decider.prepare(query, isKept);
    if (digest !== undefined) this.#known.add(digest, prepared, isKept);
    const hits = query.descriptors.map((descriptor) => descriptor.hits);
    const isWanted = decider.wantsQuery?.(prepared) === true;
    return { prepared, hits, query: isWanted ? query : undefined, asked };
  }
}

/** Returns the hits of a call whose request is cached. */
function hitsOf({ hitsAddend, ownHits }: ScannedRequest, count: number): Hits {
  // Source: the field's comment in rls.proto: an unset field also reads as 0, and means 1.
  const requestHits = hitsAddend === 0 ? 1 : hitsAddend;
  if (ownHits === undefined) return requestHits;
  const hits: number[] = [];
  for (let i = 0; i < count; i += 1) {
    hits.push(Math.min(ownHits.get(i) ?? requestHits, costHitsMax));
  }
  return hits;
}

/** The header with Envoy's timeout if it sends no grpc-timeout. Source: Envoy's router. */
const expectedTimeoutField = "x-envoy-expected-rq-timeout-ms";

/** Whole milliseconds of at most nine digits (11 days). Anything else is not from Envoy. */
const wholeMs = /^[1-9][0-9]{0,8}$/;

/** Returns the earlier of the two deadlines that a caller may set. Infinity if it sets none. */
function callerDeadlineMs(call: CallContext, clock: Clock): number {
  const text = call.metadata(expectedTimeoutField);
  if (text === undefined || !wholeMs.test(text)) return call.deadlineMs;
  return Math.min(call.deadlineMs, clock.monotonicMs() + Number(text));
}
