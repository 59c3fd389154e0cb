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

/** What decides calls that ask the same again and again: a `Decider`. */
export type DecidesPrepared = Decides & RehydratesQueries;

/** What the service is made of. */
export interface RateLimitServiceParts {
  readonly decider: DecidesPrepared;
  readonly clock: Clock;
  /** Makes the secret under which requests have digests. */
  readonly random: Random;
  /** How many requests are remembered, where that is not the default. */
  readonly requestCache?: RequestCacheBounds;
  /** Counts what is refused before anybody decides. */
  readonly counters: DecisionCounters;
  /** What responses carry beside their statuses. */
  readonly extras: ResponseExtras;
  /** Whether nobody is refused, whatever is asked. */
  readonly isShadow: boolean;
  /** Follows decisions; undefined where nobody does. */
  readonly tracer?: DecisionTracer | undefined;
}

/** The service's full name. Source: envoy/service/ratelimit/v3/rls.proto. */
const rateLimitServiceName = "envoy.service.ratelimit.v3.RateLimitService";

/**
 * Envoy's RateLimitService: bytes in, a decision, bytes out.
 *
 * Calls reject with `ServiceError` REQUEST_INVALID for what breaks the contract, and with what the
 * decider throws. What asks more than is counted (REQUEST_TOO_LARGE) is answered OVER_LIMIT: Envoy
 * lets pass what is answered with an error, where it is told to.
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

/** What turns verdicts into bytes, the same for all calls. */
interface Encoders {
  readonly encoder: RateLimitResponseEncoder;
  readonly extras: ResponseExtras;
}

/** A call on its way to its answer in bytes. */
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

/** A call as the decider takes it. */
interface ReadRequest {
  readonly prepared: PreparedQuery;
  readonly hits: Hits;
  /** Undefined where nobody wants to know. */
  readonly query: RateLimitQuery | undefined;
  /** Undefined where no answer repeats it. */
  readonly asked: SentRequest | undefined;
}

/** Reads requests; what many calls ask is matched once. */
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

/** The hits of a call whose request is known. */
function hitsOf({ hitsAddend, ownHits }: ScannedRequest, count: number): Hits {
  // Source: the field's comment in rls.proto: 0 is what an unset field looks like, and means 1.
  const requestHits = hitsAddend === 0 ? 1 : hitsAddend;
  if (ownHits === undefined) return requestHits;
  const hits: number[] = [];
  for (let i = 0; i < count; i += 1) {
    hits.push(Math.min(ownHits.get(i) ?? requestHits, costHitsMax));
  }
  return hits;
}

/** How Envoy states the time it waits when it sends no grpc-timeout. Source: Envoy's router. */
const expectedTimeoutField = "x-envoy-expected-rq-timeout-ms";

/** Whole milliseconds of at most nine digits (11 days); anything else is not Envoy's. */
const wholeMs = /^[1-9][0-9]{0,8}$/;

/** The earlier of the two deadlines a caller may state; Infinity when it states none. */
function callerDeadlineMs(call: CallContext, clock: Clock): number {
  const text = call.metadata(expectedTimeoutField);
  if (text === undefined || !wholeMs.test(text)) return call.deadlineMs;
  return Math.min(call.deadlineMs, clock.monotonicMs() + Number(text));
}
