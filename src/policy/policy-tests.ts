import type { ParsedNode } from "yaml";
import { parseTimestampUs } from "../core/base/timestamp.js";
import type { PolicyText } from "./parse.js";
import { type Problem, quoteText } from "./problems/problem.js";
import { ProblemLog } from "./problems/problem-log.js";
import { SourceText } from "./problems/source-text.js";
import { findAliasTargets } from "./text/aliases.js";
import { Block } from "./text/block.js";
import { type Field, NodeReader } from "./text/node-reader.js";
import { plainShape } from "./text/shapes.js";
import { domainRule, nameCharsMax, type TextRule, valueCharsMax } from "./text/text-rules.js";
import { readYaml } from "./text/yaml-text.js";

/** Tests of one file, and steps of one test. */
const policyTestsMax = 10_000;
const testStepsMax = 1_000;

/** How often one step may ask. */
const testTimesMax = 1_000_000;

/** What is expected of a policy: a file of tests, as it was written. */
export interface PolicyTests {
  /** Files of the policy, as they are named: relative to the file of the tests. */
  readonly policies: readonly string[];
  readonly tests: readonly PolicyTest[];
}

/** Requests over time, on limits that nobody has used yet. */
export interface PolicyTest {
  readonly name: string;
  readonly line: number;
  /** When it begins, in microseconds since 1970. */
  readonly startUs: number;
  readonly steps: readonly TestStep[];
}

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

/** What is asked. */
export type TestedRequest =
  /** As Envoy would ask. */
  | {
      readonly kind: "descriptors";
      readonly domain: string;
      readonly descriptors: readonly TestedDescriptor[];
    }
  /** As a caller would: through the actions of the service that has the host, or that is named. */
  | {
      readonly kind: "http";
      readonly service: string | undefined;
      /** By lower-case name, pseudo-headers among them. */
      readonly headers: ReadonlyMap<string, string>;
      readonly remoteAddress: string | undefined;
    };

/** A descriptor, and what it costs. */
interface TestedDescriptor {
  readonly entries: readonly { readonly key: string; readonly value: string }[];
  readonly hits: number;
  readonly isRefund: boolean;
}

/** What must come of it; what is left out is not looked at. */
interface Expectation {
  /** Of all that were asked. */
  readonly allowedCount: number | undefined;
  readonly deniedCount: number | undefined;
  /** Label of a rule that the last one met: over where it was denied. */
  readonly rule: string | undefined;
  /** Hits left after the last one, of the limit that binds most. */
  readonly remaining: number | undefined;
  /** When one that was denied would pass. */
  readonly retryAfterMs: number | undefined;
}

/** A file of tests, understood or not. */
type ParsedTests =
  | { readonly kind: "tests"; readonly tests: PolicyTests }
  | {
      readonly kind: "problems";
      readonly problems: readonly Problem[];
      readonly unreportedCount: number;
    };

const fileShape = plainShape("a file of tests", ["policy", "tests"]);
const testShape = plainShape("a test", ["name", "start", "steps"]);
const stepShape = plainShape("a step", ["ask", "http", "times", "expect", "wait"]);
const askShape = plainShape("a question", ["domain", "entries", "hits", "refund", "descriptors"]);
const descriptorShape = plainShape("a descriptor", ["entries", "hits", "refund"]);
const httpShape = plainShape("a request", [
  "service",
  "method",
  "host",
  "path",
  "headers",
  "remoteAddress",
]);
const expectShape = plainShape("an expectation", [
  "verdict",
  "allowed",
  "denied",
  "rule",
  "remaining",
  "retryAfter",
]);

const textRule: TextRule = {
  charsMax: valueCharsMax,
  forbidden: /[\p{Cc}\p{Cs}]/u,
  expected: `a text of 1 to ${valueCharsMax} characters`,
};
const titleRule: TextRule = { ...textRule, charsMax: nameCharsMax };

/** A day without daylight saving, at its beginning: 2026-01-01. */
const defaultStartUs = 1_767_225_600_000_000;

const waitBounds = { minMs: 1, maxMs: 3_660 * 24 * 3_600_000 };
const hitsBounds = { min: 0, max: 2 ** 32 - 1 };

/** Reads a file of tests: all mistakes at once, or the tests. */
export function parsePolicyTests(given: PolicyText): ParsedTests {
  const log = new ProblemLog();
  const source = new SourceText(given, 0);
  const tests = readFile(source, log);
  if (log.count > 0 || tests === undefined) return { kind: "problems", ...log.found() };
  return { kind: "tests", tests };
}

function readFile(source: SourceText, log: ProblemLog): PolicyTests | undefined {
  const yaml = readYaml(source, log);
  if (yaml.kind === "unreadable") return undefined;
  if (yaml.kind === "empty") {
    const message = "the file holds no tests";
    const expected = "policy: and tests:";
    log.report(source, { start: 0, end: 1 }, { id: "HG110", message, expected });
    return undefined;
  }
  const targets = yaml.hasAliases ? findAliasTargets(yaml.node, source, log) : new Map();
  if (targets === undefined) return undefined;
  const reader = new NodeReader(source, log, targets);
  const block = Block.at(reader, yaml.node, fileShape);
  if (block === undefined) return undefined;
  reader.requiredField(block.fields, "policy", "the policy's files");
  reader.requiredField(block.fields, "tests", "a list of tests");
  const policies = readPolicies(block);
  const tests = block.items("tests", "a list of tests", policyTestsMax).flatMap((item) => {
    const test = readTest(reader, item.value ?? item.key);
    return test === undefined ? [] : [test];
  });
  return { policies, tests };
}

/** One name, or a list of them. */
function readPolicies(block: Block): readonly string[] {
  const field = block.field("policy");
  if (field === undefined) return [];
  if (!isListed(block.reader, field)) {
    const one = block.text("policy", textRule);
    return one === undefined ? [] : [one];
  }
  const items = block.items("policy", "a file, or a list of files", 100);
  return items.flatMap((item) => block.reader.readText(item, textRule) ?? []);
}

function isListed(reader: NodeReader, field: Field): boolean {
  const content = reader.contentOf(field);
  return content !== undefined && "items" in content;
}

function readTest(reader: NodeReader, node: ParsedNode): PolicyTest | undefined {
  const block = Block.at(reader, node, testShape);
  if (block === undefined) return undefined;
  const nameField = reader.requiredField(block.fields, "name", "what the test is about");
  const name = nameField && reader.readText(nameField, titleRule);
  reader.requiredField(block.fields, "steps", "a list of steps");
  const items = block.items("steps", "a list of steps", testStepsMax);
  const steps = items.flatMap((item) => readStep(reader, item.value ?? item.key) ?? []);
  const { line } = reader.source.position(node.range[0]);
  return name === undefined ? undefined : { name, line, startUs: readStart(block), steps };
}

function readStart(block: Block): number {
  const text = block.text("start", textRule);
  if (text === undefined) return defaultStartUs;
  const startUs = parseTimestampUs(text);
  if (startUs !== undefined) return startUs;
  const message = `${quoteText(text)} is not a time`;
  block.report("start", { id: "HG124", message, expected: "a time such as 2026-01-05T08:00:00Z" });
  return defaultStartUs;
}

function readStep(reader: NodeReader, node: ParsedNode): TestStep | undefined {
  const block = Block.at(reader, node, stepShape);
  if (block === undefined) return undefined;
  const kinds = (["ask", "http", "wait"] as const).filter((name) => block.field(name));
  const [kind, other] = kinds;
  if (kind === undefined) {
    const message = "a step without ask, http or wait";
    return reader.report(node, { id: "HG125", message, expected: "one of the three" });
  }
  if (other !== undefined) return block.refusePair(kind, other);
  if (kind === "wait") {
    for (const name of ["times", "expect"]) if (block.field(name)) block.refusePair(name, "wait");
    const ms = block.durationMs("wait", undefined, waitBounds);
    return ms === undefined ? undefined : { kind: "wait", ms };
  }
  const request = kind === "ask" ? readAsk(block) : readHttp(block);
  const times = block.whole("times", 1, { min: 1, max: testTimesMax });
  const expected = readExpectation(block, times);
  const { line } = reader.source.position(node.range[0]);
  if (request === undefined || expected === undefined) return undefined;
  return { kind: "ask", line, request, times, expected };
}

function readAsk(step: Block): TestedRequest | undefined {
  const block = step.block("ask", askShape);
  if (block === undefined) return undefined;
  const { reader } = block;
  const domainField = reader.requiredField(block.fields, "domain", domainRule.expected);
  const domain = domainField && reader.readText(domainField, domainRule);
  if (block.field("descriptors") === undefined) {
    const descriptor = readDescriptor(block);
    if (domain === undefined || descriptor === undefined) return undefined;
    return { kind: "descriptors", domain, descriptors: [descriptor] };
  }
  for (const name of ["entries", "hits", "refund"]) {
    if (block.field(name)) block.refusePair(name, "descriptors");
  }
  const descriptors = block.items("descriptors", "a list of descriptors", 128).flatMap((item) => {
    const one = Block.at(reader, item.value ?? item.key, descriptorShape);
    return (one && readDescriptor(one)) ?? [];
  });
  return domain === undefined ? undefined : { kind: "descriptors", domain, descriptors };
}

function readDescriptor(block: Block): TestedDescriptor | undefined {
  const expected = "entries in order, such as {plan: free, user: ann}";
  const field = block.reader.requiredField(block.fields, "entries", expected);
  const pairs = field && block.reader.readTextMap(field, { title: "entries", expected });
  const hits = block.whole("hits", 1, hitsBounds);
  const isRefund = block.flag("refund");
  const entries = pairs?.flatMap((pair) => {
    const value = block.reader.readText(pair, textRule);
    return value === undefined ? [] : [{ key: pair.name, value }];
  });
  return entries === undefined ? undefined : { entries, hits, isRefund };
}

function readHttp(step: Block): TestedRequest | undefined {
  const block = step.block("http", httpShape);
  if (block === undefined) return undefined;
  const { reader } = block;
  const headers = new Map<string, string>();
  const field = block.field("headers");
  const expected = "headers, such as {x-user: ann}";
  const pairs = field && reader.readTextMap(field, { title: "headers", expected });
  for (const pair of pairs ?? []) {
    const value = reader.readText(pair, textRule);
    if (value !== undefined) headers.set(pair.name.toLowerCase(), value);
  }
  headers.set(":method", block.text("method", textRule) ?? "GET");
  headers.set(":path", block.text("path", textRule) ?? "/");
  const host = block.text("host", textRule);
  if (host !== undefined) headers.set(":authority", host);
  const service = block.text("service", textRule);
  if (host === undefined && service === undefined) {
    const message = "a request without a host";
    return block.report("", { id: "HG125", message, expected: "host, or the name of a service" });
  }
  const remoteAddress = block.text("remoteAddress", textRule);
  return { kind: "http", service, headers, remoteAddress };
}

/** `expect: allowed` is short for `expect: {verdict: allowed}`: all of them are. */
function readExpectation(step: Block, times: number): Expectation | undefined {
  const { reader, fields } = step;
  const expected = "allowed, denied, or a map of what is expected";
  const field = reader.requiredField(fields, "expect", expected);
  if (field === undefined) return undefined;
  const words = ["allowed", "denied"] as const;
  if (!isListed(reader, field)) {
    const verdict = reader.readChoice(field, words, { id: "HG133", what: "a verdict", expected });
    return verdict && { ...nothingExpected, ...countsOf(verdict, times) };
  }
  const block = step.block("expect", expectShape);
  if (block === undefined) return undefined;
  const verdictField = block.field("verdict");
  const verdict =
    verdictField && reader.readChoice(verdictField, words, { id: "HG133", what: "a verdict" });
  const counts = { min: 0, max: times };
  for (const name of ["allowed", "denied"]) {
    if (verdictField !== undefined && block.field(name)) block.refusePair(name, "verdict");
  }
  return {
    allowedCount: block.whole("allowed", undefined, counts),
    deniedCount: block.whole("denied", undefined, counts),
    ...(verdict === undefined ? {} : countsOf(verdict, times)),
    rule: block.text("rule", textRule),
    remaining: block.whole("remaining", undefined, hitsBounds),
    retryAfterMs: block.durationMs("retryAfter", undefined, waitBounds),
  };
}

const nothingExpected: Expectation = {
  allowedCount: undefined,
  deniedCount: undefined,
  rule: undefined,
  remaining: undefined,
  retryAfterMs: undefined,
};

function countsOf(
  verdict: "allowed" | "denied",
  times: number,
): Pick<Expectation, "allowedCount" | "deniedCount"> {
  return verdict === "allowed"
    ? { allowedCount: times, deniedCount: 0 }
    : { allowedCount: 0, deniedCount: times };
}
