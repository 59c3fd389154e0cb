import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ParsedPolicy, parsePolicy } from "../../../../src/policy/parse.js";
import { aliasedNodesMax } from "../../../../src/policy/text/aliases.js";
import { aliasesMax, nestingMax } from "../../../../src/policy/text/yaml-text.js";
import { metCount, propertyRuns } from "../../../support/seeds.js";

function parse(text: string): ParsedPolicy {
  return parsePolicy([{ file: "a.yaml", text }]);
}

/** `line:column id` of each problem. */
function placesOf(text: string): readonly string[] {
  const parsed = parse(text);
  if (parsed.kind === "policy") return [];
  expect(parsed.unreportedCount).toBe(0);
  return parsed.problems.map(({ line, column, id }) => `${line}:${column} ${id}`);
}

/** What a text and the same text written out must agree in. */
function expectSame(aliased: string, written: string): void {
  expect(parse(aliased)).toMatchObject({ kind: "policy" });
  expect(parse(aliased)).toEqual(parse(written));
}

const limit = "{unit: day, requests_per_unit: 5}";

describe("parsePolicy() of aliases", () => {
  it("reads an alias as the part it names", () => {
    expectSame(
      `domain: &d d\ndescriptors: [{key: *d, rate_limit: &l ${limit}}, {key: b, rate_limit: *l}]`,
      `domain: d\ndescriptors: [{key: d, rate_limit: ${limit}}, {key: b, rate_limit: ${limit}}]`,
    );
  });

  it("takes the nearest anchor of a name above the alias, be it inside another", () => {
    expectSame(
      "domain: &a d\ndescriptors: [{key: &a k}, &a {key: &a m}, {key: *a, value: v}]",
      "domain: d\ndescriptors: [{key: k}, {key: m}, {key: m, value: v}]",
    );
  });

  it("reads an alias of an empty part as an empty part", () => {
    expectSame(
      'domain: d\ndescriptors: [{key: a, value: &e ""}, {key: b, value: *e, descriptors: &n }]',
      "domain: d\ndescriptors: [{key: a}, {key: b}]",
    );
    expectSame(
      "domain: d\ndescriptors: [{key: a, descriptors: &n }, {key: b, descriptors: *n}]",
      "domain: d\ndescriptors: [{key: a}, {key: b}]",
    );
    expect(placesOf("domain: d\ndescriptors: [{key: a, value: &n }, {key: *n}]")).toEqual([
      "2:38 HG124",
    ]);
  });

  it("lets nobody use an anchor", () => {
    expectSame("&a domain: &b d\n&c descriptors: &d []", "domain: d\ndescriptors: []");
  });

  it("keeps what looks like an alias or anchor in a text", () => {
    const texts = ['"*a"', "'&a'", ">-\n    *a\n", "x *a", "x&a"];
    const items = texts.map((text, i) => `- key: k${i}\n  value: ${text}\n`);
    const parsed = parse(`domain: d\ndescriptors:\n${items.join("")}`);
    const values = parsed.kind === "policy" ? parsed.rules.map((rule) => rule.path[0]?.value) : [];
    expect(values).toEqual(["*a", "&a", "*a", "x *a", "x&a"]);
  });

  it("gives each file names of its own", () => {
    const parsed = parsePolicy([
      { file: "a.yaml", text: "domain: &a d" },
      { file: "b.yaml", text: "domain: *a" },
    ]);
    expect(parsed).toMatchObject({ problems: [{ file: "b.yaml", line: 1, id: "HG112" }] });
  });

  it("refuses an alias inside the part it names, however deep", () => {
    expect(placesOf("domain: d\ndescriptors: &a\n- *a")).toEqual(["3:3 HG112"]);
    const text = "domain: d\ndescriptors: &a [{key: k, descriptors: &b [*a]}, {key: l, x: *b}]";
    expect(placesOf(text)).toEqual(["2:44 HG112", "2:59 HG120"]);
  });

  it("tells a mistake in a shared part once, and one for each use that is wrong", () => {
    const uses = "- {key: k, descriptors: *l}\n- {key: m, descriptors: *l}\n";
    const text = `domain: d\ndescriptors:\n- {key: a, descriptors: &l [{kee: b}]}\n${uses}`;
    expect(placesOf(text)).toEqual(["3:30 HG120"]);
    const limits = "rate_limit: *t}\n- {key: c, rate_limit: *t}\n";
    expect(placesOf(`domain: &t d\ndescriptors:\n- {key: b, ${limits}`)).toEqual([
      "3:24 HG124",
      "4:24 HG124",
    ]);
  });

  it("tells two mistakes of one place that differ only in what is expected", () => {
    const text = "domain: d\ndescriptors: [{key: a, rate_limit: &x 5, descriptors: *x}]";
    expect(placesOf(text)).toEqual(["2:39 HG124", "2:55 HG124"]);
  });
});

type Value = string | number | boolean | readonly Value[] | { readonly [name: string]: Value };

function writeOut(value: Value, write = writeOut): string {
  if (typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => write(item)).join(", ")}]`;
  const pairs = Object.entries(value).map(([name, part]) => `"${name}": ${write(part)}`);
  return `{${pairs.join(", ")}}`;
}

/** The same, with an alias for each part that stands above already. */
function writeAliased(value: Value): string {
  const anchors = new Map<string, string>();
  const write = (part: Value): string => {
    const key = JSON.stringify(part);
    const known = anchors.get(key);
    if (known !== undefined) return `*${known} `;
    const text = writeOut(part, write);
    const anchor = `a${anchors.size}`;
    anchors.set(key, anchor);
    return `&${anchor} ${text}`;
  };
  return write(value);
}

/** Few different values, right and wrong, so that most repeat. */
const { item: anyItem } = fc.letrec<{ item: Value; items: Value }>((tie) => ({
  items: fc.array(tie("item"), { maxLength: 4, depthIdentifier: "items" }),
  item: fc.record(
    {
      key: fc.constantFrom<Value[]>("a", "b", 5, "day"),
      value: fc.constantFrom<Value[]>("", "a", "day", true, 5),
      shadow_mode: fc.constantFrom<Value[]>(true, false, true, false, "a"),
      rate_limit: fc.constantFrom<Value[]>(
        { unit: "day", requests_per_unit: 5 },
        { unit: "hour", requests_per_unit: 5, name: "a" },
        { unit: "day", requests_per_unit: 5 },
        { unlimited: true },
        { unit: "a", requests_per_unit: 5 },
      ),
      descriptors: fc.oneof({ maxDepth: 3 }, fc.constant<Value>([]), tie("items")),
    },
    { requiredKeys: ["key"] },
  ),
}));

describe("parsePolicy() of any aliases", () => {
  it("answers as for the text written out", () => {
    let policyCount = 0;
    fc.assert(
      fc.property(fc.array(anyItem, { minLength: 1, maxLength: 4 }), (descriptors) => {
        const aliased = parse(writeAliased({ domain: "a", descriptors }));
        const written = parse(writeOut({ domain: "a", descriptors }));
        if (aliased.kind === "problems" && written.kind === "problems") {
          const idsOf = (found: typeof written): ReadonlySet<string> =>
            new Set(found.problems.map((problem) => problem.id));
          expect(idsOf(aliased)).toEqual(idsOf(written));
          return;
        }
        // What is written once is warned of once.
        expect({ ...aliased, warnings: [] }).toEqual({ ...written, warnings: [] });
        policyCount += 1;
      }),
      propertyRuns(200),
    );
    expect(policyCount).toBeGreaterThan(metCount(20));
  });
});

describe("parsePolicy() of aliases, its bounds", () => {
  it("reads as many aliases as a file may hold", () => {
    const text = (count: number): string => {
      const items = Array.from({ length: count }, (_, i) => {
        return `- {rate_limit: *l, key: k, value: "${i}"}\n`;
      });
      return `domain: d\ndescriptors:\n- {key: k, rate_limit: &l ${limit}}\n${items.join("")}`;
    };
    const parsed = parse(text(aliasesMax));
    expect(parsed.kind === "policy" && parsed.rules.length).toBe(aliasesMax + 1);
    expect(placesOf(text(aliasesMax + 1))).toEqual([`${aliasesMax + 4}:16 HG113`]);
  });

  it("counts no alias in quotes", () => {
    const texts = '"*a", '.repeat(aliasesMax + 1);
    expect(placesOf(`domain: &a d\ndescriptors: []\n? [${texts}*a]\n`)).toEqual(["3:3 HG123"]);
  });

  it("reads as many parts through aliases as a file may have it", () => {
    // A list of so many texts, itself included; a hundred such aliases reach the bound.
    const list = `[${"a, ".repeat(aliasedNodesMax / 100 - 1)}]`;
    const text = (uses: string): string => `domain: d\n? &l ${list}\n? [${uses}]\n`;
    const fullest = Array.from({ length: 100 }, () => "*l").join(", ");
    expect(placesOf(text(fullest))).toEqual(["2:6 HG123", "3:3 HG123"]);
    expect(placesOf(text(`${fullest}, *l`))).toEqual(["3:404 HG113"]);
  });

  it("counts what aliases name inside what aliases name", () => {
    const levels = Array.from({ length: 10 }, (_, i) => {
      return `? &a${i + 1} [${Array.from({ length: 10 }, () => `*a${i}`).join(", ")}]\n`;
    });
    // Up to the fourth level these are 10 + 110 + 1,110 + 11,110 parts; each alias of the fifth is
    // another 11,111, so the eighth is one too many.
    expect(placesOf(`? &a0 x\n${levels.join("")}`)).toEqual(["6:43 HG113"]);
  });

  it("reads parts inside each other up to the deepest, aliases included", () => {
    // The document counts as one, and each list stands in the map at the top.
    const text = (length: number): string => {
      const links = Array.from({ length }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}]\n`);
      return `a0: &a0 x\n${links.join("")}`;
    };
    expect(placesOf(text(nestingMax - 2))).toEqual(["1:1 HG111"]);
    expect(placesOf(text(nestingMax - 1))).toEqual([`${nestingMax}:12 HG108`]);
  });
});
