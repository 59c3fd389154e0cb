import { lawNames } from "../../core/concurrency/concurrency-laws.js";
import {
  duration,
  list,
  map,
  mapForm,
  number,
  row,
  text,
  whole,
  words,
  written,
} from "../text/form.js";
import { permitBounds, positiveRatioBounds } from "../text/quantities.js";
import { valueRule } from "../text/text-rules.js";
import { marginBounds, waitBounds } from "./admission-blocks.js";
import { headerText } from "./admission-forms.js";
import {
  baselines,
  decreaseBounds,
  increaseBounds,
  rttToleranceBounds,
  windowBounds,
} from "./concurrency-settings.js";
import {
  concurrencyKeyBounds,
  concurrencyNamesMax,
  concurrencySources,
  feedbackWords,
} from "./service-concurrency.js";
import {
  concurrencyKeyShape,
  concurrencyShape,
  lawShapes,
  limitsShape,
  pidShape,
  thresholdOfKeyShape,
} from "./service-shapes.js";
import { gainBounds, presetNames, signalThresholdsMax } from "./signal-settings.js";
import {
  everyBounds,
  everyMsMax,
  placeKinds,
  readingBounds,
  staleBounds,
  timeoutMsMin,
} from "./signal-source.js";

const limits = mapForm(
  { shape: limitsShape, docs: "Bounds of the limit on requests in flight." },
  {
    initial: row(whole(permitBounds), "Where a law that learns begins. Usually 50."),
    min: row(whole(permitBounds), "The lowest limit.", 1),
    max: row(whole(permitBounds), "The highest limit.", 1_000),
  },
);

const key = mapForm(
  {
    shape: concurrencyKeyShape,
    docs: "Splits the limit by a header, such as the name of a database.",
    required: ["header"],
  },
  {
    header: row(headerText, "The header that splits it."),
    names: row(list(text(valueRule), concurrencyNamesMax), "Keys that metrics may name."),
    keysMax: row(whole(concurrencyKeyBounds), "Keys held at once.", 1_000),
  },
);

const statistic = row(
  text({ charsMax: 16 }, /^(?:mean|p[0-9]{1,3}(?:\.[0-9]{1,3})?)$/),
  "Which latency counts: mean, or a percentile such as p50.",
  "mean",
);

const aimd = mapForm(
  { shape: lawShapes.aimd, docs: "Adds while all is well, and multiplies when it is not." },
  {
    increase: row(number(increaseBounds), "What is added.", 1),
    decrease: row(number(decreaseBounds), "What it is multiplied with.", 0.5),
  },
);

const vegas = mapForm(
  { shape: lawShapes.vegas, docs: "Keeps the queue in the service short." },
  {
    smoothing: row(number(positiveRatioBounds), "The weight of what is new.", 1),
    statistic,
  },
);

const gradient = mapForm(
  { shape: lawShapes.gradient, docs: "Follows the latency against its baseline." },
  {
    rttTolerance: row(number(rttToleranceBounds), "How much slower is still well.", 1.5),
    smoothing: row(number(positiveRatioBounds), "The weight of what is new.", 0.2),
    baseline: row(words(...baselines.words), "What is the baseline.", baselines.usual),
    statistic,
  },
);

const latencyShed = mapForm(
  {
    shape: lawShapes.latencyShed,
    docs: "Refuses while answers are slower than a threshold.",
    required: ["threshold"],
  },
  {
    threshold: row(duration(waitBounds), "The latency that is too slow."),
    statistic,
    window: row(whole(windowBounds), "Requests that are looked at.", 100),
    factor: row(number(increaseBounds), "How strongly is refused.", 1),
    sustained: row(duration(marginBounds), "How long it must be too slow.", "1s"),
  },
);

const pid = mapForm(
  { shape: pidShape, docs: "A controller instead of a line from target to critical." },
  {
    kp: row(number(gainBounds), "Gain of what is.", 1),
    ki: row(number(gainBounds), "Gain of what was, per second.", 0.005),
    kd: row(number(gainBounds), "Gain of what comes, in seconds.", 0),
  },
);

const thresholds = mapForm(
  {
    shape: thresholdOfKeyShape,
    docs: "What a reading means for one key.",
    required: ["name", "target", "critical"],
  },
  {
    name: row(text(valueRule), "The key, one of `per.names`."),
    target: row(number(readingBounds), "The reading from which capacity falls."),
    critical: row(number(readingBounds), "The reading at which only the least is left."),
  },
);

const url = text({ charsMax: 2_048 }, /^https?:\/\//i);

const signal = mapForm(
  {
    shape: lawShapes.signal,
    docs: "Capacity by a reading from elsewhere, such as a consumer's lag.",
    needed: [[...placeKinds, "preset"]],
    exclusive: [[...placeKinds]],
  },
  {
    preset: row(words(...presetNames), "What is usual where the rest says nothing.", "usual"),
    prometheus: row(text({ charsMax: 4_096 }), "An instant query whose series are added up."),
    server: row(url, "The Prometheus that is asked. Usually the process's own setting."),
    metrics: row(url, "A page in the text format of Prometheus."),
    select: row(text({ charsMax: 1_024 }), 'Series of that page: lag{group="a"}.'),
    redis: row(text({ charsMax: 512 }), "A key of the store: a number, a list, or a hash."),
    http: row(url, "A JSON document."),
    pointer: row(text({ charsMax: 1_024 }), "A JSON pointer to the reading in it."),
    fixed: row(number(readingBounds), "A reading that never changes, for tests."),
    by: row(text({ charsMax: 128 }, /^[a-zA-Z0-9_]+$/), "The label that holds the key."),
    target: row(number(readingBounds), "The reading from which capacity falls.", 10_000),
    critical: row(number(readingBounds), "The reading at which only the least is left.", 100_000),
    smoothing: row(number(positiveRatioBounds), "The weight of what is new.", 1),
    pid: row(map(pid), "A controller instead of a line. Left out: the line."),
    thresholds: row(list(map(thresholds), signalThresholdsMax), "Thresholds of single keys."),
    every: row(duration(everyBounds), "Time between two questions.", "5s"),
    timeout: row(
      duration({ minMs: timeoutMsMin, maxMs: everyMsMax }),
      "The longest that a question takes.",
      written(2_000),
    ),
    staleAfter: row(duration(staleBounds), "How long a reading holds. Usually six times `every`."),
    whenMissing: row(words("min", "max"), "Which bound holds without a reading.", "max"),
  },
);

/** `concurrency`. */
export const concurrencyForm = mapForm(
  { shape: concurrencyShape, docs: "The law that sets the limit, for the fleet." },
  {
    law: row(
      words(...lawNames),
      "How the limit is found. Usually knee, or gradient where Envoys tell or are told of it.",
    ),
    limits: row(map(limits), "Bounds of the limit."),
    per: row(map(key), "Splits the limit by a header. Left out: one limit."),
    sources: row(list(words(...concurrencySources)), "What the law listens to. Usually extProc."),
    feedback: row(
      list(words(...feedbackWords)),
      "Where in every Envoy the limit goes. Usually nowhere.",
    ),
    aimd: row(map(aimd), "Settings of this law."),
    vegas: row(map(vegas), "Settings of this law."),
    gradient: row(map(gradient), "Settings of this law."),
    latencyShed: row(map(latencyShed), "Settings of this law."),
    signal: row(map(signal), "Settings of this law."),
  },
);
