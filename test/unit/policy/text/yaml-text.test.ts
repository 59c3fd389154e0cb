import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ParsedPolicy, parsePolicy } from "../../../../src/policy/parse.js";
import { fileCharsMax } from "../../../../src/policy/policy-size.js";
import { formatProblems, problemRows } from "../../../../src/policy/problems/problem.js";
import { problemsMax } from "../../../../src/policy/problems/problem-log.js";
import { excerptCharsMax } from "../../../../src/policy/problems/source-text.js";
import { anyCodePoint } from "../../../support/any-code-point.js";
import { propertyRuns, seedCount } from "../../../support/seeds.js";

/** What holds of every text: an answer, and every problem inside the text and its bounds. */
function check(text: string): ParsedPolicy {
  const parsed = parsePolicy([{ file: "a.yaml", text }]);
  if (parsed.kind === "policy") {
    expect(parsed.rules.map((rule) => rule.index)).toEqual(parsed.rules.map((_, i) => i));
    return parsed;
  }
  const lines = text.split("\n");
  expect(parsed.problems.length).toBeGreaterThan(0);
  expect(parsed.problems.length).toBeLessThanOrEqual(problemsMax);
  // One expect() for all: thousands of texts with dozens of problems each take seconds otherwise.
  const unsound = parsed.problems.filter(({ line, column, id, excerpt, caret, message }) => {
    const isInside =
      line >= 1 &&
      line <= lines.length &&
      column >= 1 &&
      column <= (lines[line - 1] ?? "").length + 1;
    const isMarked = caret.length >= 1 && caret.start + caret.length <= [...excerpt].length + 1;
    const isShort = excerpt.length <= excerptCharsMax + 6 && message.length <= 200;
    return !(problemRows[id] !== undefined && isInside && isMarked && isShort);
  });
  expect(unsound).toEqual([]);
  expect(formatProblems(parsed)).not.toMatch(/[^\P{Cc}\n]/u);
  return parsed;
}

const validTexts = [
  `domain: shop
descriptors:
  - key: plan
    value: free
    shadow_mode: true
    rate_limit: {unit: minute, requests_per_unit: 60, name: pace}
    descriptors:
      - key: user
        value: "a*b"
`,
  `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      on_store_failure: allow
      descriptors:
        - key: user
          rate_limits:
            - {name: pace, period: 1h30m, requests_per_unit: 50, burst: 9, peek: exhausted}
            - {unit: day, requests_per_unit: 1000}
        - key: tokens
          on_store_failure: deny
          rate_limit: {unit: hour, requests_per_unit: 100, charge: settle}
`,
];

/** Aliases of everything they may name, in right places. */
const aliasedText = `domain: &d shop
descriptors:
  - &a
    key: &k plan
    value: *d
    rate_limit: &l {unit: &u minute, requests_per_unit: &n 60, name: *k}
  - key: *k
    value: *n
    rate_limit: *l
    shadow_mode: &f true
  - key: user
    shadow_mode: *f
    descriptors: &s
      - *a
      - {key: *n, rate_limit: {unit: *u, requests_per_unit: *n}}
  - {key: *u, descriptors: *s}
`;

/** Pieces that mean something to YAML or to us. */
const piece = fc.constantFrom(
  ..."\n|\n  |: |- |? |, |[|]|{|}|!t |!!str |<<: |'|\"|#|\n---\n|\n...\n|%YAML 1.1\n".split("|"),
  ..."&a |*a |*d|*l|*s|&s |&l ".split("|"),
  ..."| >|\t|\r\n|\r|\ufeff|\u0000|\u2028|\ud800|~|true|0x1|-0|1e9|.nan|0777|__proto__: ".split(
    "|",
  ),
  ..."domain: |descriptors:|key: |value: |rate_limit: |rate_limits: |period: 1s|unit: day".split(
    "|",
  ),
);

describe("parsePolicy() of any text", () => {
  it("answers for random characters", () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCodePoint, maxLength: 200 }), (text) => {
        check(text);
      }),
      propertyRuns(200),
    );
  });

  it("answers for random bytes read as UTF-8", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        check(new TextDecoder().decode(bytes));
      }),
      propertyRuns(200),
    );
  });

  it("answers for random pieces of YAML", () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        check(pieces.join(""));
      }),
      propertyRuns(300),
    );
  });

  it("answers for a right policy with a few wrong places", () => {
    const change = fc.record({ at: fc.nat(), cut: fc.nat({ max: 12 }), put: piece });
    fc.assert(
      fc.property(
        fc.constantFrom(...validTexts, aliasedText),
        fc.array(change, { minLength: 1, maxLength: 4 }),
        (text, changes) => {
          let changed = text;
          for (const { at, cut, put } of changes) {
            const start = at % changed.length;
            changed = changed.slice(0, start) + put + changed.slice(start + cut);
          }
          check(changed);
        },
      ),
      propertyRuns(300),
    );
  });

  it("reads the right policies it makes wrong", () => {
    for (const text of [...validTexts, aliasedText]) expect(check(text).kind).toBe("policy");
  });
});

/** Characters of a hostile text: a part of the largest file, and more of it in a soak run. */
const filledChars = Math.min(fileCharsMax / 4, seedCount(fileCharsMax / 64));

/** Names that differ from each other, in a hostile text; more of them in a soak run. */
const differentCount = Math.min(30_000, seedCount(8_000));

/** `text`, as often as it fits. */
function fill(text: string): string {
  return text.repeat(Math.floor(filledChars / text.length));
}

function limitedBy(hits: string): string {
  return `domain: a\ndescriptors: [{key: a, rate_limit: {unit: day, requests_per_unit: ${hits}}}]`;
}

const mergingItem = `  - {${"<<: *a, ".repeat(32)}}\n`;

/** Descriptors that are all labelled alike: `a_a_a...`, parted elsewhere. */
const collidingItems = Array.from({ length: 120 }, (_, i) => {
  return `- {key: ${"a_".repeat(i)}a, value: ${"a_".repeat(119 - i)}a}\n`;
});

const hostileTexts: Readonly<Record<string, string>> = {
  "brackets inside each other": "[".repeat(100_000),
  "braces inside each other": "{a: ".repeat(100_000),
  "lists inside each other": "- ".repeat(100_000),
  "maps inside each other": "? ".repeat(100_000),
  "levels by indentation": Array.from({ length: 2_000 }, (_, i) => `${" ".repeat(i)}a:\n`).join(""),
  "aliases of aliases": [
    "a0: &a0 [x, x, x, x, x, x, x, x, x]",
    ...Array.from({ length: 30 }, (_, i) => `a${i + 1}: &a${i + 1} [${`*a${i}, `.repeat(9)}]`),
  ].join("\n"),
  "aliases of aliases, as a policy": [
    "domain: d\ndescriptors:\n- &a0 {key: a, rate_limit: {unit: day, requests_per_unit: 1}}",
    ...Array.from({ length: 30 }, (_, i) => {
      return `- &a${i + 1} {key: a${i}, descriptors: [${`*a${i}, `.repeat(9)}]}`;
    }),
  ].join("\n"),
  "a list of everything above, again and again": [
    "domain: d\ndescriptors: &a0 []",
    ...Array.from({ length: 9_000 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}, *a${i >> 1}]`),
  ].join("\n"),
  "aliases of one large part": `a: &a [${fill("a,")}]\nb: [${"*a, ".repeat(9_000)}]`,
  "wrong parts through many aliases": [
    `domain: d\ndescriptors:\n- {key: k, descriptors: &a [${"{kee: a}, ".repeat(30)}]}`,
    ...Array.from({ length: 1_000 }, (_, i) => `- {key: k${i}, descriptors: *a}`),
  ].join("\n"),
  "as many names that no anchor has": `domain: d\nb: [${"*a, ".repeat(10_000)}]`,
  "aliases as names": `{${fill("*a : 1, ")}}`,
  aliases: fill("*a "),
  stars: fill("*"),
  "stars apart": `[${fill("*,")}]`,
  "the same anchor": `domain: d\nb: [${fill("&a a, ")}*a]`,
  "different anchors": Array.from({ length: differentCount }, (_, i) => `k${i}: &k${i} 1\n`).join(
    "",
  ),
  "an anchor as long as the text": `domain: &${fill("a")} d\ndescriptors: *${fill("a")}`,
  "an alias of itself": "domain: &a [*a]\ndescriptors: &b\n  - *b\n",
  "merges of thousands of empty maps": `a: &a {}\nb:\n${mergingItem.repeat(3_200)}`,
  anchors: fill("&a "),
  tags: fill("!t "),
  commas: `[${fill(",")}`,
  "closing brackets": fill("]"),
  quotes: fill('"'),
  backslashes: `"${fill("\\")}`,
  colons: fill(":"),
  lines: `a:${fill("\n")}`,
  comments: `a:\n${fill("  # c\n")}`,
  documents: fill("---\na\n"),
  directives: fill("%TAG !a! b\n"),
  spaces: fill(" "),
  tabs: fill("\ta: 1\n"),
  "one key": fill("a: 1\n"),
  "different keys": Array.from({ length: differentCount }, (_, i) => `k${i}: 1\n`).join(""),
  "keys without values": `{${fill("a,")}}`,
  "a key as long as the text": `${fill("k")}: 1`,
  "a number as long as the text": limitedBy(fill("9")),
  "the same descriptor": `domain: a\ndescriptors:\n${fill("- {key: a}\n")}`,
  patterns: `domain: a\ndescriptors:\n${fill("- {key: a, value: '*'}\n")}`,
  "labels that collide": `domain: a\ndescriptors:\n${collidingItems.join("")}`,
};

describe("parsePolicy() of a hostile text", () => {
  it.each(Object.entries(hostileTexts))("answers for %s", (_, text) => {
    check(text);
  });
});
