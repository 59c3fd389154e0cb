import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { Clock } from "../../core/clock.js";
import type { DecisionSample, TailFilter, TailFollower } from "../../decide/decision-tail.js";
import type { LimitService, TailDecisionsRequest } from "../../gen/headgate/admin/v1/admin_pb.js";
import { adminCallKey, demandPart } from "./call.js";
import { AdminFailure } from "./failures.js";
import { readAsked } from "./key-methods.js";
import { encodeEntries, timeOf, wideOf } from "./messages.js";
import { RequestReader } from "./request-reader.js";
import type { AdminServiceParts } from "./service-parts.js";

/** How often what has come is sent, in milliseconds. */
const tailEveryMs = 100;

/** Where nothing has come for so long, an empty message shows that the stream is open. */
const tailQuietMsMax = 10_000;

/** How often it is looked at whether the caller is still known, in milliseconds. */
const tailRecheckMs = 10_000;

/**
 * Decisions as they are made. The reader sets the pace: while it takes nothing nothing is read from
 * the ring, which drops, and counts.
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
        throw new AdminFailure("exhausted", "as many read decisions now as may; try again later");
      }
      return sendDecisions(parts.clock, follower, context);
    },
  };
}

function readFilter(
  parts: AdminServiceParts,
  request: TailDecisionsRequest,
  context: HandlerContext,
): TailFilter {
  const reader = new RequestReader();
  const sampleRatio = reader.part("sample_ratio", request.sampleRatio, { max: 1, usual: 0.01 });
  const paceRule = { max: 1_000, usual: 50 };
  const perSecondMax = reader.count("per_second_max", request.perSecondMax, paceRule);
  const having = request.having.length === 0 ? [] : reader.entries("having", request.having);
  const asked = readAsked(parts, request, { reader, context });
  const { deniedOnly: isDeniedOnly } = request;
  return { ...asked, isDeniedOnly, having, sampleRatio, perSecondMax };
}

async function* sendDecisions(clock: Clock, follower: TailFollower, context: HandlerContext) {
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
          throw new AdminFailure("unknownCaller", "the credentials hold no more");
        }
      }
      const { samples, droppedCount } = follower.take();
      const isQuiet = samples.length === 0 && droppedCount === 0;
      if (isQuiet && nowMs - sentMs < tailQuietMsMax) continue;
      sentMs = nowMs;
      yield { decisions: samples.map(encodeSample), droppedCount: wideOf(droppedCount) };
    }
  } finally {
    follower.stop();
  }
}

function encodeSample(sample: DecisionSample) {
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
