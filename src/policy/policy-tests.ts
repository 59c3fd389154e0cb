import { isCollection } from "yaml";
import { parseTimestampUs } from "../core/base/timestamp.js";
import type { PolicyText } from "./parse.js";
import { quoteText } from "./problems/problem.js";
import type { ParseProblems } from "./problems/problem-log.js";
import { Block } from "./text/block.js";
import { readBlockFile } from "./text/block-file.js";
import {
  any,
  asWritten,
  duration,
  type FieldType,
  flag,
  type MapForm,
  map,
  readBy,
  ruledText,
  text,
  whole,
  words,
} from "./text/form.js";
import {
  field,
  inner,
  innerBlock,
  items,
  object,
  type ReadBlock,
  readField,
} from "./text/object.js";
import { domainRule, nameCharsMax, type TextRule, valueCharsMax } from "./text/text-rules.js";

/** Maximum number of tests of one file, and of steps of one test. */
const policyTestsMax = 10_000;
const testStepsMax = 1_000;

/** Maximum number of policies of one file, and of descriptors of one request. */
const policiesMax = 100;
const descriptorsMax = 128;

/** Maximum number of requests of one step. */
const testTimesMax = 1_000_000;

const textRule: TextRule = {
  charsMax: valueCharsMax,
  forbidden: /[\p{Cc}\p{Cs}]/u,
  expected: `a text of 1 to ${valueCharsMax} characters`,
};
const anyText = ruledText(textRule);

/** The start of a day outside of daylight saving time. */
const defaultStart = "2026-01-01T00:00:00Z";
const defaultStartUs = 1_767_225_600_000_000;

const waits = duration({ minMs: 1, maxMs: 3_660 * 24 * 3_600_000 });
const hitsBounds = { min: 0, max: 2 ** 32 - 1 };

/** Texts by names that the user chooses, in order. */
function pairs(title: string, expected: string) {
  const form = { kind: "texts", key: /./, value: text(textRule), max: Infinity } as const;
  return readBy(form, (reader, place) =>
    reader.readTextMap(place, { title, expected })?.flatMap((pair) => {
      const value = reader.readText(pair, textRule);
      return value === undefined ? [] : [{ key: pair.name, value }];
    }),
  );
}

/** A map in a list. */
function listed<Data>(form: MapForm, read: (block: Block) => Data | undefined): FieldType<Data> {
  return readBy(map(form), (reader, place) => {
    const block = Block.at(reader, place.value ?? place.key, form.shape);
    return block && read(block);
  });
}

const entriesExpected = "entries in order, such as {plan: free, user: ann}";
const entries = pairs("entries", entriesExpected);

const costFields = {
  hits: field(whole(hitsBounds), "How many hits it costs.", { default: 1 }),
  refund: field(flag, "Refunds the hits instead of charging them.", {
    as: "isRefund",
    default: false,
  }),
};

const descriptor = object(
  { title: "a descriptor", docs: "A descriptor, and its cost." },
  {
    entries: field(entries, "Its entries, in order.", { needs: entriesExpected }),
    ...costFields,
  },
  { data: ({ entries: own, ...cost }) => own && { entries: own, ...cost } },
);

const ask = object(
  { title: "a question", docs: "As Envoy would ask." },
  {
    domain: field(ruledText(domainRule), "The domain.", { needs: domainRule.expected }),
    entries: field(entries, "The entries of the one descriptor, in order."),
    ...costFields,
    descriptors: field(
      items(listed(descriptor, descriptor.read), {
        expected: "a list of descriptors",
        max: descriptorsMax,
      }),
      "Several descriptors.",
    ),
  },
  {
    data({ domain, descriptors, entries: own, ...cost }) {
      const one = own && { entries: own, ...cost };
      const each = descriptors ?? (one && [one]);
      if (domain === undefined || each === undefined) return undefined;
      return { kind: "descriptors" as const, domain, descriptors: each };
    },
    check(block) {
      if (block.field("descriptors") === undefined) block.declared("entries", entriesExpected);
      for (const name of block.field("descriptors") ? ["entries", "hits", "refund"] : []) {
        if (block.field(name)) block.refusePair(name, "descriptors");
      }
    },
  },
);

const http = object(
  { title: "a request", docs: "As a caller would ask, through the actions of a service." },
  {
    service: field(anyText, "The service. Left out: the one that has the host."),
    method: field(anyText, "The method.", { default: "GET" }),
    host: field(anyText, "The host."),
    path: field(anyText, "The path, with its query.", { default: "/" }),
    headers: field(pairs("headers", "headers, such as {x-user: ann}"), "Further headers.", {
      default: [],
    }),
    remoteAddress: field(anyText, "Where the request comes from."),
  },
  {
    data({ service, method, host, path, headers, remoteAddress }) {
      if (host === undefined && service === undefined) return undefined;
      /** By lower-case name, including pseudo-headers. */
      const byName: ReadonlyMap<string, string> = new Map([
        ...headers.map(({ key, value }) => [key.toLowerCase(), value] as const),
        [":method", method],
        [":path", path],
        ...(host === undefined ? [] : [[":authority", host] as const]),
      ]);
      return { kind: "http" as const, service, headers: byName, remoteAddress };
    },
    check(block, _, { host, service }) {
      if (host !== undefined || service !== undefined) return;
      const message = "the request has no host";
      const expected = "a host, or the name of a service";
      block.report("", { id: "HG125", message, expected });
    },
  },
);

/** Read after the number of requests is known. */
const count = asWritten(whole({ min: 0, max: testTimesMax }));

const verdicts = ["allowed", "denied"] as const;

const verdict = readBy(words(...verdicts), (reader, place) =>
  reader.readChoice(place, verdicts, { id: "HG133", what: "a verdict" }),
);

const expectation = object(
  { title: "an expectation", docs: "What must come of it; what is left out is not looked at." },
  {
    verdict: field(verdict, "What comes of all of them."),
    allowed: field(count, "How many of all that were asked are allowed."),
    denied: field(count, "How many of all that were asked are denied."),
    rule: field(anyText, "Label of a rule that the last one met: over where it was denied."),
    remaining: field(
      whole(hitsBounds),
      "Hits left after the last one, of the limit that binds most.",
    ),
    retryAfter: field(waits, "When one that was denied would pass.", { as: "retryAfterMs" }),
  },
);

type ReadExpectation = Pick<typeof expectation.defaults, "rule" | "remaining" | "retryAfterMs">;

/** Expected results. Those left out are not checked. */
export interface Expectation extends ReadExpectation {
  /** Of all requests of the step. */
  readonly allowedCount: number | undefined;
  readonly deniedCount: number | undefined;
}

const expected = "allowed, denied, or a map of expectations";
const expectationMap = innerBlock(expectation);

/** `expect: allowed` is short for `expect: {verdict: allowed}`: all requests are allowed. */
const expectations = readBy<(times: number) => Expectation>(
  any(words(...verdicts), expectationMap),
  (reader, place) => {
    if (!isCollection(reader.contentOf(place))) {
      const all = reader.readChoice(place, verdicts, { id: "HG133", what: "a verdict", expected });
      return all && ((times) => ({ ...expectation.defaults, ...countsOf(all, times) }));
    }
    const read = expectationMap.read(reader, place);
    return read && ((times) => expectationOf(read, times));
  },
);

function expectationOf(
  { block, data }: ReadBlock<typeof expectation.defaults>,
  times: number,
): Expectation {
  const { verdict: all, rule, remaining, retryAfterMs } = data;
  for (const name of ["allowed", "denied"]) {
    if (block.field("verdict") !== undefined && block.field(name)) {
      block.refusePair(name, "verdict");
    }
  }
  const counts = { min: 0, max: times };
  return {
    allowedCount: data.allowed && block.reader.readWhole(data.allowed, counts),
    deniedCount: data.denied && block.reader.readWhole(data.denied, counts),
    ...(all === undefined ? {} : countsOf(all, times)),
    rule,
    remaining,
    retryAfterMs,
  };
}

function countsOf(
  all: (typeof verdicts)[number],
  times: number,
): Pick<Expectation, "allowedCount" | "deniedCount"> {
  return all === "allowed"
    ? { allowedCount: times, deniedCount: 0 }
    : { allowedCount: 0, deniedCount: times };
}

const kinds = ["ask", "http", "wait"] as const;

const step = object(
  { title: "a step", docs: "A question or a wait.", needed: [kinds], clashing: [kinds] },
  {
    ask: field(inner(ask), "What is asked, as Envoy would."),
    http: field(inner(http), "What is asked, as a caller would."),
    times: field(whole({ min: 1, max: testTimesMax }), "How often it is asked, at one time.", {
      default: 1,
    }),
    expect: field(expectations, "What must come of it."),
    wait: field(waits, "Time passes."),
  },
);

/** The tested request: one from Envoy, or one from a caller. */
export type TestedRequest = NonNullable<typeof ask.defaults> | NonNullable<typeof http.defaults>;

/** One step of a test. */
export type TestStep =
  | { readonly kind: "wait"; readonly ms: number }
  | {
      readonly kind: "ask";
      readonly line: number;
      readonly request: TestedRequest;
      /** How often it is asked, at one time. */
      readonly times: number;
      readonly expected: Expectation;
    };

function readStep(block: Block): TestStep | undefined {
  const { reader, fields } = block;
  const [kind, other] = kinds.filter((name) => block.field(name));
  if (kind === undefined) {
    const message = "the step has none of ask, http and wait";
    return reader.report(fields.node, { id: "HG125", message, expected: "one of the three" });
  }
  if (other !== undefined) return block.refusePair(kind, other);
  if (kind === "wait") {
    for (const name of ["times", "expect"]) if (block.field(name)) block.refusePair(name, "wait");
    const ms = readField(step, block, "wait");
    return ms === undefined ? undefined : { kind: "wait", ms };
  }
  const request = readField(step, block, kind);
  const times = readField(step, block, "times");
  block.declared("expect", expected);
  const come = readField(step, block, "expect")?.(times);
  if (request === undefined || come === undefined) return undefined;
  const { line } = reader.source.position(fields.node.range[0]);
  return { kind: "ask", line, request, times, expected: come };
}

const startTime = readBy(text(textRule), (reader, place) => {
  const written = reader.readText(place, textRule);
  const startUs = written === undefined ? undefined : parseTimestampUs(written);
  if (written === undefined || startUs !== undefined) return startUs;
  const message = `${quoteText(written)} is not a time`;
  const example = "a time such as 2026-01-05T08:00:00Z";
  return reader.report(place.key, { id: "HG124", message, expected: example });
});

const test = object(
  { title: "a test", docs: "Requests over time, on limits that nobody has used yet." },
  {
    name: field(ruledText({ ...textRule, charsMax: nameCharsMax }), "What it is about.", {
      needs: "what the test is about",
    }),
    start: field(startTime, "When it begins.", {
      as: "startUs",
      default: defaultStartUs,
      writtenDefault: defaultStart,
    }),
    steps: field(
      items(listed(step, readStep), { expected: "a list of steps", max: testStepsMax }),
      "What is asked, one after the other.",
      { needs: "a list of steps", default: [] },
    ),
  },
);

/** Requests over time, against unused limits. */
export interface PolicyTest extends Omit<typeof test.defaults, "name"> {
  readonly name: string;
  readonly line: number;
}

function readTest(block: Block): PolicyTest | undefined {
  const { name, ...read } = test.read(block);
  const { line } = block.reader.source.position(block.fields.node.range[0]);
  return name === undefined ? undefined : { name, line, ...read };
}

const fileList = items(anyText, { expected: "a file, or a list of files", max: policiesMax });

/** One name, or a list of them. */
const files = readBy(any(anyText, fileList), (reader, place) => {
  if (isCollection(reader.contentOf(place))) return fileList.read(reader, place);
  const one = anyText.read(reader, place);
  return one === undefined ? undefined : [one];
});

const file = object(
  { title: "a file of tests", docs: "What is expected of a policy." },
  {
    policy: field(files, "Files of the policy, relative to this one.", {
      as: "policies",
      needs: "the policy's files",
      default: [],
    }),
    tests: field(
      items(listed(test, readTest), { expected: "a list of tests", max: policyTestsMax }),
      "The tests.",
      { needs: "a list of tests", default: [] },
    ),
  },
);

/** Tests of a policy: the content of a file of tests, as written. */
export type PolicyTests = typeof file.defaults;

/** Result of reading a file of tests. */
export type ParsedTests = { readonly kind: "tests"; readonly tests: PolicyTests } | ParseProblems;

/** Reads a file of tests: returns the tests, or all problems at once. */
export function parsePolicyTests(given: PolicyText): ParsedTests {
  const parsed = readBlockFile(given, {
    shape: file.shape,
    read: (block) => file.read(block),
    content: "tests",
    expected: "policy: and tests:",
  });
  return parsed.kind === "problems" ? parsed : { kind: "tests", tests: parsed.value };
}
