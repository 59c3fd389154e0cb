import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { Clock } from "../../core/base/clock.js";
import type {
  DecisionSample,
  TailFilter,
  TailFollower,
} from "../../decide/inspect/decision-tail.js";
import {
  type OpenAnswer,
  type PutQuestion,
  questionsEveryMs,
  type ReplicaQuestion,
} from "../../fleet/claims/replica-questions.js";
import {
  LimitService,
  type TailDecisionsRequest,
  type TailDecisionsResponse,
  TailDecisionsResponseSchema,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { questionOf } from "./ask-others.js";
import { adminCallKey, demandPart } from "./call.js";
import { AdminFailure } from "./failures.js";
import { readAsked } from "./key-methods.js";
import { encodeEntries, timeOf, wideOf } from "./messages.js";
import { RequestReader } from "./request-reader.js";
import type { AdminServiceParts } from "./service-parts.js";

/** How often decisions are sent, in milliseconds: rarely, because each message costs a write. */
const tailEveryMs = 2 * questionsEveryMs;

/** After this time without decisions, an empty message shows that the stream is open. */
const tailQuietMsMax = 10_000;

/** How often the stream checks that the caller is still known, in milliseconds. */
const tailRecheckMs = 10_000;

/**
 * The method that returns decisions as they are made. The reader sets the pace: while it takes
 * nothing, nothing is read from the ring, which then drops decisions, and counts them.
 */
export function tailMethod(
  parts: AdminServiceParts,
): Pick<ServiceImpl<typeof LimitService>, "tailDecisions"> {
  return {
    tailDecisions: (request, context) => {
      const tail = demandPart(parts.tail);
      const filter = readFilter(parts, request, context);
      const follower = tail.follow(filter);
      if (follower === undefined) {
        throw new AdminFailure(
          "exhausted",
          "the maximum number of callers reads decisions; try again later",
        );
      }
      const others = request.thisReplica ? undefined : new OtherTails(parts, request, context);
      return sendDecisions({ parts, follower, others }, context);
    },
  };
}

function readFilter(
  parts: AdminServiceParts,
  request: TailDecisionsRequest,
  context: HandlerContext,
): TailFilter {
  const reader = new RequestReader();
  const sampleRatio = reader.part("sample_ratio", request.sampleRatio, {
    max: 1,
    defaultValue: 0.01,
  });
  const paceRule = { max: 1_000, defaultValue: 50 };
  const perSecondMax = reader.count("per_second_max", request.perSecondMax, paceRule);
  const having = request.having.length === 0 ? [] : reader.entries("having", request.having);
  const asked = readAsked(parts, request, { reader, context });
  const { deniedOnly: isDeniedOnly } = request;
  return { ...asked, isDeniedOnly, having, sampleRatio, perSecondMax };
}

/** Decisions of the other replicas, requested as often as these poll for questions. */
class OtherTails {
  readonly #parts: AdminServiceParts;
  readonly #question: ReplicaQuestion;
  #put: PutQuestion | undefined;
  #askedMs = Number.NEGATIVE_INFINITY;

  constructor(parts: AdminServiceParts, request: TailDecisionsRequest, context: HandlerContext) {
    this.#parts = parts;
    this.#question = questionOf(LimitService.method.tailDecisions, request, context);
  }

  /** Returns new decisions. None if the store is unreachable: the next call tries again. */
  async take(nowMs: number): Promise<readonly TailDecisionsResponse[]> {
    const { replicas } = this.#parts;
    if (replicas === undefined || nowMs - this.#askedMs < questionsEveryMs) return [];
    this.#askedMs = nowMs;
    try {
      if (this.#put === undefined && replicas.liveCount() > 1) {
        this.#put = await replicas.put(this.#question);
      }
      const answers = (await this.#put?.take()) ?? [];
      return answers.map(({ body }) => fromBinary(TailDecisionsResponseSchema, body));
    } catch {
      return [];
    }
  }

  async close(): Promise<void> {
    await this.#put?.close();
  }
}

/** Follows decisions for another replica, as this method does for a caller. */
export function openTail(
  parts: AdminServiceParts,
  request: TailDecisionsRequest,
  context: HandlerContext,
): OpenAnswer | undefined {
  const follower = parts.tail?.follow(readFilter(parts, request, context));
  if (follower === undefined) return undefined;
  return {
    take: async () => {
      const { samples, droppedCount } = follower.take();
      if (samples.length === 0 && droppedCount === 0) return undefined;
      const decisions = samples.map((sample) => encodeSample(sample, parts.replica));
      const message = { decisions, droppedCount: wideOf(droppedCount) };
      return toBinary(TailDecisionsResponseSchema, create(TailDecisionsResponseSchema, message));
    },
    close: () => follower.stop(),
  };
}

interface Sending {
  readonly parts: AdminServiceParts;
  readonly follower: TailFollower;
  /** Undefined: only this replica's are wanted. */
  readonly others: OtherTails | undefined;
}

async function* sendDecisions({ parts, follower, others }: Sending, context: HandlerContext) {
  const { clock, replica } = parts;
  const { isStillAllowed } = context.values.get(adminCallKey);
  let sentMs = clock.monotonicMs();
  let checkedMs = sentMs;
  try {
    // At once, so that a reader knows that it is connected.
    yield { decisions: [], droppedCount: 0n };
    while (!context.signal.aborted) {
      await pause(clock, tailEveryMs, context.signal);
      const nowMs = clock.monotonicMs();
      if (nowMs - checkedMs >= tailRecheckMs) {
        checkedMs = nowMs;
        if (!(await isStillAllowed())) {
          throw new AdminFailure("unknownCaller", "the credentials are no longer valid");
        }
      }
      const { samples, droppedCount } = follower.take();
      const elsewhere = (await others?.take(nowMs)) ?? [];
      const isQuiet = samples.length === 0 && droppedCount === 0 && elsewhere.length === 0;
      if (isQuiet && nowMs - sentMs < tailQuietMsMax) continue;
      sentMs = nowMs;
      const decisions = samples.map((sample) => encodeSample(sample, replica));
      yield { decisions, droppedCount: wideOf(droppedCount) };
      for (const { decisions, droppedCount } of elsewhere) yield { decisions, droppedCount };
    }
  } finally {
    follower.stop();
    await others?.close();
  }
}

function encodeSample(sample: DecisionSample, replica: string) {
  const { epochMs, domain, entries, ruleLabel = "", isDenied, decidedBy } = sample;
  return {
    time: timeOf(epochMs),
    domain,
    entries: encodeEntries(entries),
    ruleLabel,
    isDenied,
    hits: wideOf(sample.hits),
    remainingHits: wideOf(sample.remainingHits),
    decidedBy,
    replica,
  };
}

/** Resolves after a time, or when the call has ended. */
function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal.removeEventListener("abort", end);
      resolve();
    };
    const cancel = clock.schedule(delayMs, end);
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });
}
