import { parseJsonPointer } from "../../core/base/json-pointer.js";
import { parseSeriesSelector, type SeriesSelector } from "../../core/base/series-selector.js";
import type { Block } from "../text/block.js";
import { formatDuration } from "../text/duration.js";
import type { Field } from "../text/node-reader.js";
import { type DurationBounds, readNumber } from "../text/quantities.js";
import { readUrl } from "../text/service-texts.js";
import type { TextRule } from "../text/text-rules.js";
import type { SignalPlace, SignalSource } from "./service-policy.js";

/** The largest reading that may be named: a double holds whole numbers up to here. */
export const readingMax = Number.MAX_SAFE_INTEGER;

/** Bounds of how often a source is asked, and of how long its readings hold, in milliseconds. */
export const everyMsMin = 100;
/** See `everyMsMin`. */
export const everyMsMax = 3_600_000;
/** See `everyMsMin`. */
export const staleAfterMsMax = 86_400_000;

/** The longest that a question takes where the policy does not say, in milliseconds. */
const defaultTimeoutMs = 2_000;

/** The bounds of a reading. */
export const readingBounds = { min: 0, max: readingMax } as const;

/** The bounds of `every`. */
export const everyBounds: DurationBounds = { minMs: everyMsMin, maxMs: everyMsMax };

/** The bounds of `staleAfter`. */
export const staleBounds: DurationBounds = { minMs: everyMsMin, maxMs: staleAfterMsMax };

/** The shortest question, in milliseconds. */
export const timeoutMsMin = 10;

/** Where readings may come from: one of them. */
export const placeKinds = ["prometheus", "metrics", "redis", "http", "fixed"] as const;

/** What only one kind of place may be told. */
const fieldKinds: Readonly<Record<string, readonly SignalPlace["kind"][]>> = {
  server: ["prometheus"],
  select: ["metrics"],
  pointer: ["http"],
  by: ["prometheus", "metrics"],
};

/** What a source is read with. */
export interface SourceRead {
  /** Where the policy does not say. */
  readonly everyMs: number;
  /** Nothing is asked, so nothing has to be named. */
  readonly isOff: boolean;
  /** Whether the limit is split, by keys that readings may have. */
  readonly isSplit: boolean;
}

/** Reads where readings come from and how they hold; undefined, and reported, where nowhere. */
export function readSignalSource(
  block: Block,
  read: SourceRead,
): Omit<SignalSource, "thresholds"> | undefined {
  const everyMs = block.durationMs("every", read.everyMs, everyBounds);
  const timeoutMs = block.durationMs("timeout", Math.min(defaultTimeoutMs, everyMs), {
    minMs: timeoutMsMin,
    maxMs: everyMs,
  });
  const staleAfterMs = block.durationMs("staleAfter", 6 * everyMs, staleBounds);
  if (staleAfterMs < everyMs + timeoutMs) {
    block.report("staleAfter", {
      id: "HG232",
      message: `a reading is stale after ${formatDuration(staleAfterMs)}`,
      expected: `at least every and timeout together: ${formatDuration(everyMs + timeoutMs)}`,
    });
  }
  const whenMissing = block.choice("whenMissing", { usual: "max", words: ["min", "max"] });
  const place = readPlace(block, read);
  return place && { place, everyMs, timeoutMs, staleAfterMs, whenMissing };
}

/** Exactly one of the kinds. */
function readPlace(block: Block, { isOff, isSplit }: SourceRead): SignalPlace | undefined {
  const [kind, ...others] = placeKinds.filter((name) => block.field(name) !== undefined);
  if (kind === undefined) {
    const isMissing = !isOff && placeKinds.every((name) => block.isLeftOut(name));
    const expected =
      "prometheus: a query, metrics: a page's URL, redis: a key, http: a URL, or fixed: a number";
    const message = '"signal" says nothing of where its reading comes from';
    if (isMissing) block.reader.report(block.fields.node, { id: "HG125", message, expected });
    return undefined;
  }
  for (const other of others) block.refusePair(other, kind);
  for (const [name, kinds] of Object.entries(fieldKinds)) {
    if (block.field(name) === undefined || kinds.includes(kind)) continue;
    const message = `"${name}" means nothing with "${kind}"`;
    block.report(name, { id: "HG126", message, expected: kinds.join(" or ") });
  }
  const isBy = fieldKinds["by"]?.includes(kind) === true && block.field("by") !== undefined;
  if (isBy && !isSplit) {
    block.report("by", {
      id: "HG207",
      message: '"by" tells keys apart, and the limit is not split by any',
      expected: "concurrency.per: the header that splits the limit",
    });
  }
  const field = block.field(kind);
  return field && readOf(block, kind, field);
}

function readOf(block: Block, kind: SignalPlace["kind"], field: Field): SignalPlace | undefined {
  const { reader } = block;
  switch (kind) {
    case "prometheus": {
      const query = reader.readText(field, queryRule);
      const serverField = block.field("server");
      const server = serverField && readUrl(reader, serverField);
      return query === undefined ? undefined : { kind, query, server, by: readLabel(block) };
    }
    case "metrics": {
      const url = readUrl(reader, field);
      const select = readSelector(block);
      const by = readLabel(block);
      return url === undefined || select === undefined ? undefined : { kind, url, select, by };
    }
    case "redis": {
      const key = reader.readText(field, keyRule);
      return key === undefined ? undefined : { kind, key };
    }
    case "http": {
      const url = readUrl(reader, field);
      return url === undefined ? undefined : { kind, url, pointer: readPointer(block) };
    }
    case "fixed": {
      const reading = readNumber(reader, field, readingBounds);
      return reading === undefined ? undefined : { kind, reading };
    }
  }
}

function readSelector(block: Block): SeriesSelector | undefined {
  const { reader, fields } = block;
  const field = reader.requiredField(fields, "select", selectorRule.expected);
  const text = field && reader.readText(field, selectorRule);
  if (field === undefined || text === undefined) return undefined;
  const { expected } = selectorRule;
  const message = "this selects no series";
  return (
    parseSeriesSelector(text) ??
    reader.reportContent(field.value ?? field.key, { id: "HG228", message, expected })
  );
}

function readPointer(block: Block): readonly string[] {
  const field = block.field("pointer");
  const text = field && block.reader.readText(field, pointerRule);
  if (field === undefined || text === undefined) return [];
  const steps = parseJsonPointer(text);
  if (steps !== undefined) return steps;
  const isNamed = parseJsonPointer(`/${text}`) !== undefined && !text.startsWith("/");
  block.reader.reportContent(field.value ?? field.key, {
    id: "HG229",
    message: "this is no JSON pointer",
    expected: pointerRule.expected,
    suggestion: isNamed ? `/${text}` : undefined,
  });
  return [];
}

function readLabel(block: Block): string | undefined {
  return block.text("by", labelRule);
}

const queryRule: TextRule = {
  charsMax: 4_096,
  forbidden: /(?![\n\t])\p{Cc}/u,
  expected: "a query of PromQL, at most 4096 characters",
};

const keyRule: TextRule = {
  charsMax: 512,
  forbidden: /\p{Cc}/u,
  expected: "a key that holds a number, a list, or a hash of numbers",
};

const selectorRule: TextRule = {
  charsMax: 1_024,
  forbidden: /\p{Cc}/u,
  expected: 'series by name and labels, with = and != only: lag{group="a"}',
};

const pointerRule: TextRule = {
  charsMax: 1_024,
  forbidden: /\p{Cc}/u,
  expected: "a JSON pointer, such as /consumers/0/lag",
};

const labelRule: TextRule = {
  charsMax: 128,
  forbidden: /[^a-zA-Z0-9_]/,
  expected: "a label's name, of letters, digits and `_`",
};
