import type { SigmoidSettings, WaitBound } from "../../core/admission/estimated-wait.js";
import { defaultGateSettings, type GateSettings } from "../../core/admission/gate.js";
import {
  defaultHostFull,
  type HostReadingName,
  hostReadings,
} from "../../core/admission/host-reading.js";
import { type RejectSettings, refusalCauses } from "../../core/admission/refusal.js";
import { disclosure } from "../limits/rule-disclosure.js";
import type { Block } from "../text/block.js";
import {
  duration,
  flag,
  multiple,
  number,
  readBy,
  seconds,
  waitBound,
  whole,
  words,
} from "../text/form.js";
import { field, inner, object } from "../text/object.js";
import {
  type DurationBounds,
  type NumberBounds,
  positiveRatioBounds,
  ratioBounds,
} from "../text/quantities.js";
import { headerName } from "../text/service-texts.js";
import { readingMax } from "./signal-source.js";

/** Maximum wait or deadline in a policy, in milliseconds: an hour. */
export const waitMsMax = 3_600_000;

/** Maximum wait in a waiting room in a policy, in milliseconds: a day. */
export const roomWaitMsMax = 86_400_000;

/** Maximum queue size of a service: each waiting request holds an Envoy stream. */
export const queueSizeMax = 100_000;

/** Bounds of a wait that is not zero. */
export const waitBounds: DurationBounds = { minMs: 1, maxMs: waitMsMax };

/** Bounds of a duration that may be zero. */
export const marginBounds: DurationBounds = { minMs: 0, maxMs: waitMsMax };

/** A field of each block that decides. */
export const dryRun = field(flag, "Decides and counts, but never refuses.", { default: false });

/** `deadline`. */
export const deadline = object(
  { title: "a deadline", docs: "Refuses requests whose deadline leaves no time for a response." },
  {
    minRemaining: field(duration(marginBounds), "The least remaining time.", {
      larger: "stricter",
      as: "minRemainingMs",
      default: 5,
    }),
    margin: field(
      duration(marginBounds),
      "Time reserved for the network and for work after the response.",
      {
        larger: "different",
        as: "marginMs",
        default: 10,
      },
    ),
    header: field(headerName, "A header with the remaining time in milliseconds."),
    dryRun,
  },
);

const codel = object(
  { title: "codel", docs: "Refuses requests from a queue that stays long (CoDel)." },
  {
    target: field(duration(waitBounds), "The acceptable wait.", {
      larger: "looser",
      as: "targetMs",
      default: 100,
    }),
    interval: field(duration(waitBounds), "How long the wait may exceed the target.", {
      larger: "looser",
      as: "intervalMs",
      default: 1_000,
    }),
  },
);

/** `queue`. */
export const queue = object(
  { title: "a queue", docs: "A queue in which requests wait for a permit." },
  {
    size: field(whole({ min: 1, max: queueSizeMax }), "The maximum number of waiting requests.", {
      larger: "looser",
      as: "sizeMax",
      default: 100,
    }),
    maxWait: field(duration(waitBounds), "The maximum wait.", {
      larger: "looser",
      as: "waitMsMax",
      default: 2_000,
    }),
    order: field(
      words("priority", "fifo", "newestFirstUnderOverload"),
      "Who is first. `priority`: by class, then the oldest, or the newest while it loses requests.",
      { default: "priority" },
    ),
    codel: field(inner(codel), "Applies CoDel to waits. Default: off."),
    dryRun,
  },
);

/** Maximum slope, per second: from nearly all to nearly none within a millisecond. */
export const slopePerSecondMax = 10_000;

/** Replaces a wrong value that was reported. */
const someWait: WaitBound = { kind: "duration", ms: 1_000 };

const sigmoidDocs =
  "Refuses more requests the longer the expected wait, and none while nobody waits.";

function sigmoidOf(bounds: DurationBounds, title: string) {
  return object(
    { title, docs: sigmoidDocs },
    {
      midpoint: field(
        waitBound(bounds),
        "The expected wait at which half of the requests are refused.",
        {
          larger: "looser",
          needs: "the expected wait at which half are refused",
        },
      ),
      slope: field(
        number({ min: 0, max: slopePerSecondMax, isMinExcluded: true }),
        "The steepness, per second.",
        {
          larger: "different",
          as: "slopePerSecond",
          needs: "the steepness, per second, such as 0.23",
        },
      ),
    },
    {
      data: ({ midpoint = someWait, slopePerSecond = 1 }): SigmoidSettings => ({
        midpoint,
        slopePerSecond,
      }),
    },
  );
}

/** The names of `estimatedWait`. @param bounds of waits */
function estimatedWaitRows(bounds: DurationBounds, sigmoidTitle: string) {
  return {
    max: field(
      waitBound(bounds),
      "The maximum wait: a duration, or a multiple of the service time such as 100x.",
      { larger: "looser" },
    ),
    sigmoid: field(inner(sigmoidOf(bounds, sigmoidTitle)), sigmoidDocs),
  };
}

function refuseUnbounded(block: Block): void {
  if (!block.isLeftOut("max") || !block.isLeftOut("sigmoid")) return;
  const expected = "max: 100x, sigmoid: {midpoint: 28s, slope: 0.23}, or both";
  const message = '"estimatedWait" sets no bound';
  block.reader.report(block.fields.node, { id: "HG125", message, expected });
}

const needed = [["max", "sigmoid"]];

/** `estimatedWait`. */
export const estimatedWait = object(
  { title: "an estimatedWait", docs: "Refuses what would wait too long.", needed },
  { ...estimatedWaitRows(waitBounds, "a sigmoid"), dryRun },
  { data: (read) => read, check: refuseUnbounded },
);

/** `estimatedWait` of a waiting room, where a service time is the length of a session. */
export const roomEstimatedWait = object(
  {
    title: "an estimatedWait of a room",
    docs: "Turns visitors away who would wait too long. The service time is the session's length.",
    needed,
  },
  estimatedWaitRows({ minMs: 1_000, maxMs: roomWaitMsMax }, "a sigmoid of a room"),
  { data: (read) => read, check: refuseUnbounded },
);

const gateRows = {
  openBelow: field(number(ratioBounds), "The gate opens below this probability.", {
    larger: "looser",
    as: "openBelowRatio",
    default: defaultGateSettings.openBelowRatio,
  }),
  closeAbove: field(number(ratioBounds), "The gate closes above this probability.", {
    larger: "looser",
    as: "closeAboveRatio",
    default: defaultGateSettings.closeAboveRatio,
  }),
  passAtClose: field(
    number(ratioBounds),
    "The ratio of requests that pass while the gate is closed.",
    {
      larger: "looser",
      as: "passAtCloseRatio",
      default: defaultGateSettings.passAtCloseRatio,
    },
  ),
} as const;

/** Reports a gate that does not open below the probability at which it closes. */
function refuseGateOrder(block: Block, { openBelowRatio, closeAboveRatio }: GateSettings): void {
  if (openBelowRatio < closeAboveRatio) return;
  const isOpenWritten = block.field("openBelow") !== undefined;
  block.report(isOpenWritten ? "openBelow" : "closeAbove", {
    id: "HG206",
    message: `the gate opens below ${openBelowRatio} and closes above ${closeAboveRatio}`,
    expected: "an openBelow less than closeAbove",
  });
}

/** `gate`. */
export const gate = object(
  { title: "a gate", docs: "Refuses new requests by the reject probability of the sigmoid." },
  { ...gateRows, dryRun },
  { data: (read) => read, check: (block, data) => refuseGateOrder(block, data) },
);

/** `gate` of a waiting room, which Envoys enforce by themselves. */
export const roomGate = object(
  {
    title: "a gate of a room",
    docs: "Lets Envoys turn visitors away by the reject probability of the sigmoid.",
  },
  gateRows,
  { data: (read): GateSettings => read, check: refuseGateOrder },
);

/** `throttle`. */
export const throttle = object(
  {
    title: "a throttle",
    docs:
      "Refuses requests in proportion to those that the service refuses anyway, as clients " +
      "should.",
  },
  {
    k: field(number({ min: 1, max: 1_000 }), "Attempted requests allowed for each accepted one.", {
      larger: "looser",
      default: 2,
    }),
    per: field(words("service", "caller"), "Whose requests are compared.", { default: "service" }),
    memory: field(duration({ minMs: 100, maxMs: waitMsMax }), "The window that is compared.", {
      larger: "different",
      as: "memoryMs",
      default: 30_000,
    }),
    dryRun,
  },
);

/** Settings of a service's throttle. */
export type ThrottlePolicy = Omit<typeof throttle.defaults, "dryRun">;

/** A multiple above 1: the baseline latency means no load, so a full load lies above it. */
const fullLatency = readBy(multiple, (reader, place) => {
  const read = multiple.read(reader, place);
  if (read === undefined || read > 1) return read;
  return reader.reportContent(place.value ?? place.key, {
    id: "HG141",
    message: "the latency that means a load of 1 must be above the baseline",
    expected: "a multiple above 1x, such as 3x",
  });
});

/** Above 1 if a service may use more CPU than it requests. */
const orcaCpuBounds: NumberBounds = { min: 0, max: 10, isMinExcluded: true };

const fullReadingBounds: NumberBounds = { min: 0, max: readingMax, isMinExcluded: true };

const runQueueBounds: NumberBounds = { min: 0, max: 1_000, isMinExcluded: true };

/** Documents a reading by its description. */
const hostDocs = (name: HostReadingName): string => {
  const { docs } = hostReadings[name];
  return `${docs.charAt(0).toUpperCase()}${docs.slice(1)}.`;
};

const hostRatio = (name: HostReadingName) =>
  field(number(positiveRatioBounds), hostDocs(name), { larger: "looser" });

const fullHostRatio = (name: keyof typeof defaultHostFull) =>
  field(number(positiveRatioBounds), hostDocs(name), {
    larger: "looser",
    default: defaultHostFull[name],
  });

const hostFull = object(
  {
    title: "a host",
    docs: "Readings of the host, or of the cgroup, that mean a load of 1. {} applies defaults.",
  },
  {
    cpu: fullHostRatio("cpu"),
    cpuThrottling: hostRatio("cpuThrottling"),
    cpuPressure: hostRatio("cpuPressure"),
    memory: fullHostRatio("memory"),
    memoryPressure: hostRatio("memoryPressure"),
    memoryStall: fullHostRatio("memoryStall"),
    runQueue: field(number(runQueueBounds), hostDocs("runQueue"), { larger: "looser" }),
    eventLoopDelay: field(duration(waitBounds), hostDocs("eventLoopDelay"), { larger: "looser" }),
  },
);

/** `load`. */
export const load = object(
  { title: "a load", docs: "Additional sources of a service's load, besides requests in flight." },
  {
    orcaCpu: field(number(orcaCpuBounds), "The reported CPU usage that means a load of 1.", {
      larger: "looser",
      as: "orcaCpuRatio",
      default: 0.85,
    }),
    orcaMemory: field(
      number(positiveRatioBounds),
      "The reported memory usage that means a load of 1.",
      {
        larger: "looser",
        as: "orcaMemoryRatio",
        default: 0.9,
      },
    ),
    latency: field(
      fullLatency,
      "The latency that means a load of 1, as a multiple of its baseline: 3x.",
      {
        larger: "looser",
        as: "latencyMultiple",
      },
    ),
    errorRatio: field(number(positiveRatioBounds), "The error ratio that means a load of 1.", {
      larger: "looser",
    }),
    queueWait: field(duration(waitBounds), "The wait for a permit that means a load of 1.", {
      larger: "looser",
      as: "queueWaitMs",
    }),
    signal: field(
      number(fullReadingBounds),
      "The reading of the law's signal that means a load of 1.",
      {
        larger: "looser",
        as: "signalReading",
      },
    ),
    host: field(
      inner(hostFull),
      "Readings of the host that Headgate runs on, as a sidecar. Default: they are not used.",
    ),
    combine: field(words("max", "mean"), "How several loads are combined.", { default: "max" }),
    dryRun,
  },
);

/** Maximum of the minimum `retry-after`, in seconds: a day. */
export const retryAfterMinSecondsMax = 86_400;

const retryAfterMin = seconds(
  { minMs: 1_000, maxMs: retryAfterMinSecondsMax * 1_000 },
  (reader, place) => {
    const message = "`retry-after` is in whole seconds";
    return reader.report(place.key, {
      id: "HG141",
      message,
      expected: "whole seconds, such as 1s",
    });
  },
);

const retryAfter = object(
  { title: "a retryAfter", docs: "The retry-after of refused requests." },
  {
    min: field(retryAfterMin, "The minimum, in whole seconds.", {
      larger: "different",
      as: "retryAfterSecondsMin",
      default: 1,
    }),
    jitter: field(number({ min: 0, max: 10 }), "Random jitter, as a ratio of the minimum.", {
      larger: "different",
      as: "retryAfterJitterRatio",
      default: 0.5,
    }),
  },
);

const statusRow = field(whole({ min: 400, max: 599 }), "The response status for this cause.", {
  larger: "different",
});

const status = object(
  { title: "status", docs: "Response statuses by cause." },
  Object.fromEntries(refusalCauses.map((cause) => [cause, statusRow])),
  {
    data: (read): RejectSettings["statusByCause"] =>
      Object.fromEntries(
        Object.entries(read).flatMap(([cause, code]) =>
          code === undefined ? [] : [[cause, code]],
        ),
      ),
  },
);

/** `reject`. */
export const reject = object(
  { title: "a reject", docs: "How requests are refused." },
  {
    retryAfter: field(inner(retryAfter), "When refused callers may retry."),
    status: field(inner(status), "Response statuses by cause, if they differ from the defaults.", {
      as: "statusByCause",
    }),
    tellRule: field(
      inner(disclosure),
      "Where refusals name the service and the cause. Denials of a rate limit " +
        "follow the rule's own setting.",
      { as: "disclosure" },
    ),
  },
  {
    data: ({
      retryAfter: reported = retryAfter.defaults,
      statusByCause = {},
      disclosure: where,
    }) => {
      const settings: RejectSettings = { ...reported, statusByCause };
      return where === undefined ? settings : { ...settings, disclosure: where };
    },
  },
);
