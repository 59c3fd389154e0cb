import {
  type HostReadingName,
  hostReadingNames,
  hostReadings,
} from "../../core/admission/host-reading.js";
import { parseJsonPointer } from "../../core/base/json-pointer.js";
import { parseSeriesSelector, type SeriesSelector } from "../../core/base/series-selector.js";
import type { Block } from "../text/block.js";
import { formatDuration } from "../text/duration.js";
import { duration, number, readBy, ruledText, text, words } from "../text/form.js";
import { field, inner, readField } from "../text/object.js";
import { url } from "../text/service-texts.js";
import type { TextRule } from "../text/text-rules.js";
import { type KafkaPlace, kafka } from "./kafka-source.js";

/** External source of readings: place, polling interval, and how long readings are valid. */
export interface SignalSource {
  readonly place: SignalPlace;
  /** Time between two queries. Default 5,000. */
  readonly everyMs: number;
  /** Maximum time of one query, at most `everyMs`. Default 2,000, or `everyMs`. */
  readonly timeoutMs: number;
  /** How long a reading is valid if no newer one arrives. Default six times `everyMs`. */
  readonly staleAfterMs: number;
  /** Bound of the limit that applies then. Default "max": lost readings are no reason to refuse. */
  readonly whenMissing: "min" | "max";
  /** Keys with thresholds of their own; each is one of `per.names`. */
  readonly thresholds: readonly SignalThreshold[];
}

/** Thresholds of a reading for one key. */
export interface SignalThreshold {
  readonly name: string;
  /** As in `SignalSettings`. */
  readonly target: number;
  readonly critical: number;
}

/** Place of a reading. Series are summed, separately for each value of the label `by`. */
export type SignalPlace =
  /** An instant query. Without `server`, the process has a setting for it. */
  | {
      readonly kind: "prometheus";
      readonly query: string;
      readonly server: string | undefined;
      readonly by: string | undefined;
    }
  /** A page in the text format of Prometheus, as an exporter publishes it. */
  | {
      readonly kind: "metrics";
      readonly url: string;
      readonly select: SeriesSelector;
      readonly by: string | undefined;
    }
  /** A key of the store: a number in a text, the length of a list, or a hash of numbers by key. */
  | { readonly kind: "redis"; readonly key: string }
  /** A JSON document; `pointer` leads to a number, or to an object of numbers by key. */
  | { readonly kind: "http"; readonly url: string; readonly pointer: readonly string[] }
  | KafkaPlace
  /** The host of each replica, or its cgroup: every replica has its own reading. */
  | { readonly kind: "host"; readonly name: HostReadingName }
  | { readonly kind: "fixed"; readonly reading: number };

/** Maximum reading in a policy: a double represents all whole numbers up to it. */
export const readingMax = Number.MAX_SAFE_INTEGER;

/** Bounds of the polling interval, and of the validity of readings, in milliseconds. */
export const everyMsMin = 100;
/** See `everyMsMin`. */
export const everyMsMax = 3_600_000;
/** See `everyMsMin`. */
export const staleAfterMsMax = 86_400_000;

/** Default maximum time of a query, in milliseconds. */
const defaultTimeoutMs = 2_000;

/** The host is read once a second, in milliseconds. */
const hostEveryMs = 1_000;

/** The bounds of a reading. */
export const readingBounds = { min: 0, max: readingMax } as const;

/** Minimum timeout of a query, in milliseconds. */
const timeoutMsMin = 10;

/** Kinds of places of readings; exactly one is used. */
export const placeKinds = [
  "prometheus",
  "metrics",
  "redis",
  "http",
  "kafka",
  "host",
  "fixed",
] as const;

const selectorRule: TextRule = {
  charsMax: 1_024,
  forbidden: /\p{Cc}/u,
  expected: 'series by name and labels, with = and != only: lag{group="a"}',
};

const selector = readBy(text(selectorRule), (reader, place) => {
  const written = reader.readText(place, selectorRule);
  if (written === undefined) return undefined;
  const { expected } = selectorRule;
  const finding = { id: "HG228", message: "this is not a series selector", expected } as const;
  return parseSeriesSelector(written) ?? reader.reportContent(place.value ?? place.key, finding);
});

const pointerRule: TextRule = {
  charsMax: 1_024,
  forbidden: /\p{Cc}/u,
  expected: "a JSON pointer, such as /consumers/0/lag",
};

const pointer = readBy(text(pointerRule), (reader, place) => {
  const written = reader.readText(place, pointerRule);
  if (written === undefined) return undefined;
  const steps = parseJsonPointer(written);
  if (steps !== undefined) return steps;
  const isNamed = parseJsonPointer(`/${written}`) !== undefined && !written.startsWith("/");
  return reader.reportContent(place.value ?? place.key, {
    id: "HG229",
    message: "this is not a JSON pointer",
    expected: pointerRule.expected,
    suggestion: isNamed ? `/${written}` : undefined,
  });
});

const query = ruledText({
  charsMax: 4_096,
  forbidden: /(?![\n\t])\p{Cc}/u,
  expected: "a query of PromQL, at most 4096 characters",
});

const storeKey = ruledText({
  charsMax: 512,
  forbidden: /\p{Cc}/u,
  expected: "a key that holds a number, a list, or a hash of numbers",
});

const labelRule: TextRule = {
  charsMax: 128,
  forbidden: /[^a-zA-Z0-9_]/,
  expected: "a label's name, of letters, digits and `_`",
};

const hostDocs = hostReadingNames
  .map((name) => {
    const { docs, target, critical } = hostReadings[name];
    return `\`${name}\`: ${docs} (${target} to ${critical})`;
  })
  .join(". ");

/** Fields of `signal` for the place of its reading, and for polling. */
export const signalSourceFields = {
  place: {
    prometheus: field(query, "An instant query. The values of its series are summed."),
    server: field(url, "The URL of Prometheus. Default: HEADGATE_PROMETHEUS_URL."),
    metrics: field(url, "The URL of a metrics page in Prometheus text format."),
    select: field(selector, 'Series on that page: lag{group="a"}.'),
    redis: field(
      storeKey,
      "A key in the Redis of REDIS_URL: a number, a list (its length is the " +
        "reading), or a hash.",
    ),
    http: field(url, "The URL of a JSON document."),
    pointer: field(
      pointer,
      "A JSON pointer (RFC 6901) to the reading. Default: the whole document.",
    ),
    kafka: field(
      inner(kafka, "{brokers: [...], group: ..., topics: [...]}"),
      "A consumer group, whose lag is read from Kafka.",
    ),
    host: field(
      words(...hostReadingNames),
      "A reading of the host that Headgate runs on, as a sidecar, or of its cgroup, by " +
        "default every second; with the default `target` and `critical` of each: " +
        `${hostDocs}.`,
    ),
    fixed: field(number(readingBounds), "A constant reading, for tests.", {
      larger: "stricter",
    }),
    by: field(
      ruledText(labelRule, /^[a-zA-Z0-9_]+$/),
      "The label whose values are the keys of `per`; of Kafka `topic` (what `*` stands for, " +
        "or else the name) or `partition`. JSON objects and Redis hashes of numbers contain " +
        "the keys themselves. Default: one reading for all.",
    ),
  },
  times: {
    every: field(
      duration({ minMs: everyMsMin, maxMs: everyMsMax }),
      "The interval between readings.",
      { larger: "different", as: "everyMs", dependentDefault: 5_000 },
    ),
    timeout: field(
      duration({ minMs: timeoutMsMin, maxMs: everyMsMax }),
      "The timeout of a reading, at most `every`.",
      { larger: "different", as: "timeoutMs", dependentDefault: defaultTimeoutMs },
    ),
    staleAfter: field(
      duration({ minMs: everyMsMin, maxMs: staleAfterMsMax }),
      "How long a reading is valid without a newer one, at least `every` plus " +
        "`timeout`. Default: six times `every`.",
      { larger: "different", as: "staleAfterMs" },
    ),
    whenMissing: field(
      words("min", "max"),
      "The limit without a valid reading: `max`, as if all were well, or `min`.",
      {
        default: "max",
      },
    ),
  },
};

const source = { rows: { ...signalSourceFields.place, ...signalSourceFields.times } };

/** Fields that apply only to some kinds of places. */
const fieldKinds: Readonly<Record<string, readonly SignalPlace["kind"][]>> = {
  server: ["prometheus"],
  select: ["metrics"],
  pointer: ["http"],
  by: ["prometheus", "metrics", "kafka"],
};

interface SignalSourceContext {
  /** Default interval, if the policy sets none. */
  readonly everyMs: number;
  /** No reading is polled, so no place is needed. */
  readonly isOff: boolean;
  /** Whether the limit is split by keys, which readings may have. */
  readonly isSplit: boolean;
}

/** Reads the place and validity of readings; undefined, and reported, if there is no place. */
export function readSignalSource(
  block: Block,
  read: SignalSourceContext,
): Omit<SignalSource, "thresholds"> | undefined {
  const presetMs = block.field("host") === undefined ? read.everyMs : hostEveryMs;
  const everyMs = readField(source, block, "every") ?? presetMs;
  const timeoutMs = readTimeout(block, everyMs) ?? Math.min(defaultTimeoutMs, everyMs);
  const staleAfterMs = readField(source, block, "staleAfter") ?? 6 * everyMs;
  if (staleAfterMs < everyMs + timeoutMs) {
    block.report("staleAfter", {
      id: "HG232",
      message: `a reading becomes stale after ${formatDuration(staleAfterMs)}`,
      expected: `at least every plus timeout: ${formatDuration(everyMs + timeoutMs)}`,
    });
  }
  const whenMissing = readField(source, block, "whenMissing");
  const place = readPlace(block, read);
  return place && { place, everyMs, timeoutMs, staleAfterMs, whenMissing };
}

/** Reads the timeout. A query takes at most the time until the next one. */
function readTimeout(block: Block, everyMs: number): number | undefined {
  const written = block.field("timeout");
  return written && duration({ minMs: timeoutMsMin, maxMs: everyMs }).read(block.reader, written);
}

/** Reads the place: exactly one of the kinds. */
function readPlace(block: Block, { isOff, isSplit }: SignalSourceContext): SignalPlace | undefined {
  const [kind, ...others] = placeKinds.filter((name) => block.field(name) !== undefined);
  if (kind === undefined) {
    const isMissing = !isOff && placeKinds.every((name) => block.isLeftOut(name));
    const expected =
      "prometheus: a query, metrics: a page's URL, redis: a key, http: a URL, kafka: a group, " +
      "host: a reading, or fixed: a number";
    const message = '"signal" has no source';
    if (isMissing) block.reader.report(block.fields.node, { id: "HG125", message, expected });
    return undefined;
  }
  for (const other of others) block.refusePair(other, kind);
  for (const [name, kinds] of Object.entries(fieldKinds)) {
    if (block.field(name) === undefined || kinds.includes(kind)) continue;
    const message = `"${name}" has no effect with "${kind}"`;
    block.report(name, { id: "HG126", message, expected: kinds.join(" or ") });
  }
  const isBy = fieldKinds["by"]?.includes(kind) === true && block.field("by") !== undefined;
  if (isBy && !isSplit) {
    block.report("by", {
      id: "HG207",
      message: '"by" splits readings by key, and the limit is not split by a header',
      expected: "concurrency.per: the header that splits the limit",
    });
  }
  return readOf(block, kind);
}

function readOf(block: Block, kind: SignalPlace["kind"]): SignalPlace | undefined {
  const read = <Name extends keyof typeof source.rows>(name: Name) =>
    readField(source, block, name);
  switch (kind) {
    case "prometheus": {
      const found = { query: read(kind), server: read("server"), by: read("by") };
      return found.query === undefined ? undefined : { kind, ...found, query: found.query };
    }
    case "metrics": {
      block.declared("select", selectorRule.expected);
      const [page, select, by] = [read(kind), read("select"), read("by")];
      if (page === undefined || select === undefined) return undefined;
      return { kind, url: page, select, by };
    }
    case "redis": {
      const key = read(kind);
      return key === undefined ? undefined : { kind, key };
    }
    case "http": {
      const [document, steps = []] = [read(kind), read("pointer")];
      return document === undefined ? undefined : { kind, url: document, pointer: steps };
    }
    case "kafka": {
      const group = read(kind);
      const by = readKafkaBy(block);
      return group && { kind, ...group, by };
    }
    case "host": {
      const name = read(kind);
      return name === undefined ? undefined : { kind, name };
    }
    case "fixed": {
      const reading = read(kind);
      return reading === undefined ? undefined : { kind, reading };
    }
  }
}

const kafkaBy = words("topic", "partition");

/** A lag has two labels. */
function readKafkaBy(block: Block): KafkaPlace["by"] {
  const written = block.field("by");
  return written && kafkaBy.read(block.reader, written);
}
