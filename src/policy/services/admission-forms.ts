import { priorities } from "../../core/settings/admission-settings.js";
import { defaultGateSettings } from "../../core/settings/gate.js";
import { disclosureForm } from "../limits/rule-disclosure.js";
import {
  any,
  duration,
  type Form,
  flag,
  list,
  map,
  mapForm,
  type NameRow,
  number,
  orOff,
  row,
  text,
  whole,
  words,
  written,
} from "../text/form.js";
import { permitBounds, positiveRatioBounds, ratioBounds } from "../text/quantities.js";
import { headerPattern } from "../text/service-texts.js";
import {
  admissionBlocks,
  defaultDeadline,
  defaultReject,
  fullReadingBounds,
  jitterBounds,
  marginBounds,
  memoryTimeBounds,
  orcaCpuBounds,
  queueOrders,
  queueSizeBounds,
  retryAfterBounds,
  slopeBounds,
  statusBounds,
  throttleBounds,
  waitBounds,
} from "./admission-blocks.js";
import { permitKeyBounds } from "./service-admission.js";
import { ownOverloadModes } from "./service-policy.js";
import {
  admissionShape,
  headerChoiceShape,
  admissionBlockShapes as shapes,
  statusShape,
  thresholdShape,
} from "./service-shapes.js";

/** A header's name. */
export const headerText = text({ charsMax: 128 }, headerPattern);

/** A multiple of the service time. */
const multiple = text({ charsMax: 64 }, /^[0-9]+(?:\.[0-9]+)?x$/);

const waitOrMultiple: Form = any(duration(waitBounds), multiple);

/** In each block that decides. */
const dryRun = row(flag, "Decides and counts, and refuses nobody.", false);

const headerChoice = mapForm(
  { shape: headerChoiceShape, docs: "What a header says.", required: ["header"] },
  { header: row(headerText, "The header's name, in lower case.") },
);

const permitsPer = mapForm(
  { shape: shapes.maxInFlightPer, docs: "Permits of each caller or route.", required: ["max"] },
  {
    per: row(
      any(words("caller", "route"), map(headerChoice)),
      "By what they are told apart.",
      "caller",
    ),
    max: row(whole(permitBounds), "The most in flight of one."),
    keysMax: row(whole(permitKeyBounds), "How many are counted by themselves at once.", 10_000),
  },
);

const threshold = mapForm(
  { shape: thresholdShape, docs: "A threshold with two edges.", required: ["hard"] },
  {
    soft: row(number(ratioBounds), "The load from which some are refused."),
    hard: row(number(positiveRatioBounds), "The load from which all are."),
  },
);

const thresholdRow = (priority: string): NameRow =>
  row(
    any(number(positiveRatioBounds), map(threshold)),
    `The load from which requests of class ${priority} are refused.`,
  );

const shedAt = mapForm(
  { shape: shapes.shedAt, docs: "The load from which each class is refused." },
  {
    low: thresholdRow("low"),
    normal: thresholdRow("normal"),
    high: thresholdRow("high"),
    critical: thresholdRow("critical"),
    dryRun,
  },
);

const deadline = mapForm(
  { shape: shapes.deadline, docs: "Refuses requests without time left for an answer." },
  {
    minRemaining: row(
      duration(marginBounds),
      "The least time that must be left.",
      written(defaultDeadline.minRemainingMs),
    ),
    margin: row(
      duration(marginBounds),
      "Kept back for the way and for what comes after.",
      written(defaultDeadline.marginMs),
    ),
    header: row(headerText, "A header that says the time left in milliseconds."),
    dryRun,
  },
);

const codel = mapForm(
  { shape: shapes.codel, docs: "Refuses from a queue that stays long." },
  {
    target: row(duration(waitBounds), "The wait that is good enough.", "100ms"),
    interval: row(duration(waitBounds), "How long it may be exceeded.", "1s"),
  },
);

const queue = mapForm(
  { shape: shapes.queue, docs: "Where requests wait for a permit." },
  {
    size: row(whole(queueSizeBounds), "How many may wait.", 100),
    maxWait: row(duration(waitBounds), "How long one may wait.", "2s"),
    order: row(words(...queueOrders), "Who goes first.", "priority"),
    codel: row(map(codel), "CoDel's test on waits. Left out: not made."),
    dryRun,
  },
);

const sigmoid = mapForm(
  {
    shape: shapes.sigmoid,
    docs: "Refuses the more, the longer the wait.",
    required: ["midpoint", "slope"],
  },
  {
    midpoint: row(waitOrMultiple, "The wait at which half are refused."),
    slope: row(number(slopeBounds), "How steep it is, per second."),
  },
);

const estimatedWait = mapForm(
  {
    shape: shapes.estimatedWait,
    docs: "Refuses what would wait too long.",
    needed: [["max", "sigmoid"]],
  },
  {
    max: row(waitOrMultiple, "The longest wait: a duration, or a multiple of the service time."),
    sigmoid: row(map(sigmoid), "Refuses the more, the longer the wait."),
    dryRun,
  },
);

const gate = mapForm(
  { shape: shapes.gate, docs: "Refuses new requests by the sigmoid's reject probability." },
  {
    openBelow: row(
      number(ratioBounds),
      "Opens below this probability.",
      defaultGateSettings.openBelowRatio,
    ),
    closeAbove: row(
      number(ratioBounds),
      "Closes above this probability.",
      defaultGateSettings.closeAboveRatio,
    ),
    passAtClose: row(
      number(ratioBounds),
      "The part that passes while it is closed.",
      defaultGateSettings.passAtCloseRatio,
    ),
    dryRun,
  },
);

const throttle = mapForm(
  { shape: shapes.throttle, docs: "Refuses as clients should: by how much is refused anyway." },
  {
    k: row(number(throttleBounds), "Requests for each that is accepted.", 2),
    per: row(words("service", "caller"), "Whose requests are compared.", "service"),
    memory: row(duration(memoryTimeBounds), "How long is looked back.", "30s"),
    dryRun,
  },
);

const load = mapForm(
  { shape: shapes.load, docs: "What else fills a service, beside the requests in flight." },
  {
    orcaCpu: row(number(orcaCpuBounds), "The reported CPU that is full.", 0.85),
    orcaMemory: row(number(positiveRatioBounds), "The reported memory that is full.", 0.9),
    latency: row(multiple, "The latency that is full, as a multiple of its baseline: 3x."),
    errorRatio: row(number(positiveRatioBounds), "The share of errors that is full."),
    queueWait: row(duration(waitBounds), "The wait for a permit that is full."),
    signal: row(number(fullReadingBounds), "The reading of the law's signal that is full."),
    combine: row(words("max", "mean"), "How several are taken together.", "max"),
    dryRun,
  },
);

const retryAfter = mapForm(
  { shape: shapes.retryAfter, docs: "What refused callers are told." },
  {
    min: row(
      duration(retryAfterBounds),
      "The least wait, in whole seconds.",
      `${defaultReject.retryAfterSecondsMin}s`,
    ),
    jitter: row(
      number(jitterBounds),
      "How much longer it may be, as a part of it.",
      defaultReject.retryAfterJitterRatio,
    ),
  },
);

const statusRow = row(whole(statusBounds), "The status of this refusal.");

const status = mapForm(
  { shape: statusShape, docs: "Statuses by cause." },
  {
    deadline: statusRow,
    gate: statusRow,
    throttle: statusRow,
    waitCap: statusRow,
    sigmoid: statusRow,
    priority: statusRow,
    load: statusRow,
    concurrency: statusRow,
    queueFull: statusRow,
    queueTimeout: statusRow,
    rateLimit: statusRow,
    ownOverload: statusRow,
  },
);

const reject = mapForm(
  { shape: shapes.reject, docs: "How requests are refused." },
  {
    retryAfter: row(map(retryAfter), "When refused callers may come again."),
    status: row(map(status), "Statuses by cause, where others than usual are wanted."),
    tellRule: row(
      map(disclosureForm),
      "Where refusals name the service and the cause. What a rate limit refuses goes by its own.",
    ),
  },
);

/** `admission`. */
export const admissionForm = mapForm(
  { shape: admissionShape, docs: "What a request has to pass before the service; {} is sound." },
  {
    maxInFlight: row(
      whole(permitBounds),
      "Requests in flight, in the fleet. Left out: a law learns how many.",
    ),
    maxInFlightPer: row(map(permitsPer), "Permits of each caller or route. Left out: none."),
    shedAt: row(
      any(map(shedAt), words("usual", "eager", "off")),
      "The load from which each class is refused.",
      "usual",
    ),
    deadline: row(orOff(deadline), "Refuses requests without time left."),
    queue: row(map(queue), "Where requests wait for a permit. Left out: none waits."),
    estimatedWait: row(map(estimatedWait), "Refuses what would wait too long. Left out: off."),
    gate: row(map(gate), "Refuses new requests while much is refused. Left out: off."),
    throttle: row(map(throttle), "Refuses by how much is refused anyway. Left out: off."),
    load: row(map(load), "What else fills a service. Left out: nothing."),
    reject: row(map(reject), "How requests are refused."),
    caller: row(
      any(words("remoteAddress"), map(headerChoice)),
      "What tells callers apart.",
      "remoteAddress",
    ),
    lateAfter: row(
      duration(waitBounds),
      "A client that gives up after this long was served too late. Usually its deadline.",
    ),
    sampleRatio: row(number(positiveRatioBounds), "Share of responses that are looked at.", 1),
    ownOverload: row(
      words(...ownOverloadModes),
      "While Headgate itself is overloaded: all pass undecided, or all but critical ones are " +
        "refused. Usually as `proxies.headgate.failureModeDeny` says for no answer.",
    ),
    dryRun: row(
      any(flag, list(words(...admissionBlocks))),
      "Decides and counts, and refuses nobody: all blocks, or those of a list.",
      false,
    ),
  },
);

/** A class. */
export const classWords = words(...priorities);
