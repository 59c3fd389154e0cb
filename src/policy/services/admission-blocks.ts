import {
  type AdmissionBlock,
  type CodelSettings,
  type DeadlineSettings,
  type EstimatedWaitSettings,
  type GateSettings,
  type LoadSettings,
  type QueueSettings,
  type RejectSettings,
  refusalCauses,
  type SigmoidSettings,
  type ThrottleSettings,
} from "../../core/settings/admission-settings.js";
import { defaultGateSettings } from "../../core/settings/gate.js";
import { readDisclosure } from "../limits/rule-disclosure.js";
import type { Block } from "../text/block.js";
import {
  type DurationBounds,
  type NumberBounds,
  positiveRatioBounds,
  ratioBounds,
  readMultiple,
  readWaitBound,
} from "../text/quantities.js";
import { readHeaderName } from "../text/service-texts.js";
import { admissionBlockShapes as shapes, statusShape } from "./service-shapes.js";
import { readingMax } from "./signal-source.js";

/** The longest wait or deadline that a policy may name, in milliseconds: an hour. */
export const waitMsMax = 3_600_000;

/** The longest queue of a service: each that waits holds a stream of Envoy's. */
export const queueSizeMax = 100_000;

/** A wait that is one. */
export const waitBounds: DurationBounds = { minMs: 1, maxMs: waitMsMax };

/** A duration that may also be none. */
export const marginBounds: DurationBounds = { minMs: 0, maxMs: waitMsMax };

/** Where a policy says nothing of deadlines. */
export const defaultDeadline: DeadlineSettings = {
  minRemainingMs: 5,
  marginMs: 10,
  header: undefined,
};

/** Reads `deadline`. */
export function readDeadline(block: Block): DeadlineSettings {
  const header = block.field("header");
  return {
    minRemainingMs: block.durationMs("minRemaining", defaultDeadline.minRemainingMs, marginBounds),
    marginMs: block.durationMs("margin", defaultDeadline.marginMs, marginBounds),
    header: header && readHeaderName(block.reader, header),
  };
}

/** In which order those that wait go. */
export const queueOrders = ["priority", "fifo", "newestFirstUnderOverload"] as const;

/** The bounds of `queue.size`. */
export const queueSizeBounds = { min: 1, max: queueSizeMax } as const;

/** Reads `queue`. */
export function readQueue(block: Block): QueueSettings {
  return {
    sizeMax: block.whole("size", 100, queueSizeBounds),
    waitMsMax: block.durationMs("maxWait", 2_000, waitBounds),
    order: block.choice("order", { usual: "priority", words: queueOrders }),
    codel: readCodel(block),
  };
}

function readCodel(queue: Block): CodelSettings | undefined {
  const block = queue.block("codel", shapes.codel);
  return (
    block && {
      targetMs: block.durationMs("target", 100, waitBounds),
      intervalMs: block.durationMs("interval", 1_000, waitBounds),
    }
  );
}

/** Reads `estimatedWait`; one of its two parts has to be there. */
export function readEstimatedWait(block: Block): EstimatedWaitSettings {
  if (block.isLeftOut("max") && block.isLeftOut("sigmoid")) {
    const expected = "max: 100x, sigmoid: {midpoint: 28s, slope: 0.23}, or both";
    const message = '"estimatedWait" bounds nothing';
    block.reader.report(block.fields.node, { id: "HG125", message, expected });
  }
  return { max: block.waitBound("max", waitBounds), sigmoid: readSigmoid(block) };
}

/** The steepest curve, per second: within a millisecond from nearly all to nearly none. */
export const slopePerSecondMax = 10_000;

/** The bounds of `slope`. */
export const slopeBounds: NumberBounds = { min: 0, max: slopePerSecondMax, isMinExcluded: true };

function readSigmoid(estimatedWait: Block): SigmoidSettings | undefined {
  const block = estimatedWait.block("sigmoid", shapes.sigmoid);
  if (block === undefined) return undefined;
  const { reader, fields } = block;
  const midpointField = reader.requiredField(fields, "midpoint", "the wait that half of all meet");
  const midpoint = midpointField && readWaitBound(reader, midpointField, waitBounds);
  reader.requiredField(fields, "slope", "how steep it is, per second, such as 0.23");
  return {
    midpoint: midpoint ?? { kind: "duration", ms: 1_000 },
    slopePerSecond: block.number("slope", 1, slopeBounds),
  };
}

/** Reads `gate`; it has to open below where it closes. */
export function readGate(block: Block): GateSettings {
  const usual = defaultGateSettings;
  const gate = {
    openBelowRatio: block.number("openBelow", usual.openBelowRatio, ratioBounds),
    closeAboveRatio: block.number("closeAbove", usual.closeAboveRatio, ratioBounds),
    passAtCloseRatio: block.number("passAtClose", usual.passAtCloseRatio, ratioBounds),
  };
  if (gate.openBelowRatio >= gate.closeAboveRatio) {
    const isOpenWritten = block.field("openBelow") !== undefined;
    const { openBelowRatio, closeAboveRatio } = gate;
    block.report(isOpenWritten ? "openBelow" : "closeAbove", {
      id: "HG206",
      message: `the gate opens below ${openBelowRatio} and closes above ${closeAboveRatio}`,
      expected: "an openBelow that is less than closeAbove",
    });
  }
  return gate;
}

/** The bounds of `k`. */
export const throttleBounds: NumberBounds = { min: 1, max: 1_000 };

/** The bounds of `memory`. */
export const memoryTimeBounds: DurationBounds = { minMs: 100, maxMs: waitMsMax };

/** Reads `throttle`. */
export function readThrottle(block: Block): ThrottleSettings {
  return {
    k: block.number("k", 2, throttleBounds),
    per: block.choice("per", { usual: "service", words: ["service", "caller"] }),
    memoryMs: block.durationMs("memory", 30_000, memoryTimeBounds),
  };
}

/** The bounds of `orcaCpu`: above 1 where a service may use more than it asks for. */
export const orcaCpuBounds: NumberBounds = { min: 0, max: 10, isMinExcluded: true };

/** The bounds of a reading that is full. */
export const fullReadingBounds: NumberBounds = { min: 0, max: readingMax, isMinExcluded: true };

/** Reads `load`. */
export function readLoad(block: Block): LoadSettings {
  return {
    orcaCpuRatio: block.number("orcaCpu", 0.85, orcaCpuBounds),
    orcaMemoryRatio: block.number("orcaMemory", 0.9, positiveRatioBounds),
    latencyMultiple: readLatency(block),
    errorRatio: block.number("errorRatio", undefined, positiveRatioBounds),
    queueWaitMs: block.durationMs("queueWait", undefined, waitBounds),
    signalReading: block.number("signal", undefined, fullReadingBounds),
    combine: block.choice("combine", { usual: "max", words: ["max", "mean"] }),
  };
}

/** At its baseline latency is no load at all, so what is full lies above it. */
function readLatency(block: Block): number | undefined {
  const field = block.field("latency");
  const multiple = field && readMultiple(block.reader, field);
  if (field === undefined || multiple === undefined || multiple > 1) return multiple;
  return block.reader.reportContent(field.value ?? field.key, {
    id: "HG141",
    message: "a latency that is a load of 1 lies above its baseline",
    expected: "a multiple above 1x, such as 3x",
  });
}

/** The largest least `retry-after`, in seconds: a day. */
export const retryAfterMinSecondsMax = 86_400;

/** The bounds of `retryAfter.min`. */
export const retryAfterBounds: DurationBounds = {
  minMs: 1_000,
  maxMs: retryAfterMinSecondsMax * 1_000,
};

/** The bounds of `retryAfter.jitter`. */
export const jitterBounds: NumberBounds = { min: 0, max: 10 };

/** Where a policy says nothing of refusals. */
export const defaultReject: RejectSettings = {
  retryAfterSecondsMin: 1,
  retryAfterJitterRatio: 0.5,
  statusByCause: {},
};

/** Reads `reject`. */
export function readReject(admission: Block): RejectSettings {
  const block = admission.block("reject", shapes.reject);
  if (block === undefined) return defaultReject;
  const retry = block.block("retryAfter", shapes.retryAfter);
  const minMs = retry?.durationMs("min", undefined, retryAfterBounds);
  if (minMs !== undefined && minMs % 1_000 !== 0) {
    const message = "`retry-after` is in whole seconds";
    retry?.report("min", { id: "HG141", message, expected: "whole seconds, such as 1s" });
  }
  return {
    retryAfterSecondsMin: minMs === undefined ? 1 : minMs / 1_000,
    retryAfterJitterRatio:
      retry?.number("jitter", undefined, jitterBounds) ?? defaultReject.retryAfterJitterRatio,
    statusByCause: readStatuses(block),
    ...readTold(block),
  };
}

function readTold({ reader, fields }: Block): Pick<RejectSettings, "disclosure"> {
  const disclosure = readDisclosure(reader, fields, undefined);
  return disclosure === undefined ? {} : { disclosure };
}

/** The bounds of a refusal's status. */
export const statusBounds = { min: 400, max: 599 } as const;

function readStatuses(reject: Block): RejectSettings["statusByCause"] {
  const block = reject.block("status", statusShape);
  if (block === undefined) return {};
  const statuses = refusalCauses.flatMap((cause) => {
    const status = block.whole(cause, undefined, statusBounds);
    return status === undefined ? [] : [[cause, status] as const];
  });
  return Object.fromEntries(statuses);
}

/** Blocks by the names that `dryRun` has for them, in the order of the checks. */
export const admissionBlocks: readonly AdmissionBlock[] = [
  "deadline",
  "gate",
  "throttle",
  "estimatedWait",
  "priority",
  "load",
  "permits",
  "queue",
  "rateLimit",
];
