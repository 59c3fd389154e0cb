import { describe, expect, it } from "vitest";
import { drainTimeUsMax, hitsMax, type Limit } from "../../../src/core/limits/limit.js";
import { pathCharsMax, pathStepsMax } from "../../../src/policy/limits/descriptors.js";
import { limitsPerDescriptorMax } from "../../../src/policy/limits/rule-effect.js";
import { rulesMax } from "../../../src/policy/limits/rule-list.js";
import { patternsPerKeyMax } from "../../../src/policy/limits/siblings.js";
import { type ParsedPolicy, parsePolicy } from "../../../src/policy/parse.js";
import { fileCharsMax, policyCharsMax } from "../../../src/policy/policy-size.js";
import type { Problem } from "../../../src/policy/problems/problem.js";
import { problemsMax } from "../../../src/policy/problems/problem-log.js";
import {
  domainCharsMax,
  keyCharsMax,
  nameCharsMax,
  valueCharsMax,
} from "../../../src/policy/text/text-rules.js";
import { nestingMax, syntaxProblemsMax } from "../../../src/policy/text/yaml-text.js";

function parse(...texts: readonly string[]): ParsedPolicy {
  return parsePolicy(texts.map((text, i) => ({ file: `${i}.yaml`, text })));
}

function problemsOf(...texts: readonly string[]): readonly Problem[] {
  const parsed = parse(...texts);
  return parsed.kind === "problems" ? parsed.problems : [];
}

function idsOf(...texts: readonly string[]): readonly string[] {
  return problemsOf(...texts).map((problem) => problem.id);
}

/** A policy of one limit, in Headgate's own language. */
function limitText(limit: string): string {
  return [
    "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: a}",
    `spec: {rateLimits: [{domain: a, descriptors: [{key: a, rate_limit: ${limit}}]}]}`,
  ].join("\n");
}

function limitOf(limit: string): Limit | undefined {
  const parsed = parse(limitText(limit));
  const effect = parsed.kind === "policy" ? parsed.rules[0]?.effect : undefined;
  return effect?.kind === "limited" ? effect.limits[0] : undefined;
}

describe("parsePolicy()", () => {
  it("gives an empty policy for no files", () => {
    expect(parse()).toMatchObject({ kind: "policy", domains: [], rules: [], services: [] });
  });

  it("gives rules that another thread receives as they are", () => {
    const parsed = parse(limitText("{unit: day, requests_per_unit: 5, name: pace}"));
    expect(structuredClone(parsed)).toEqual(parsed);
  });

  it("orders problems by file and place, whenever they are found", () => {
    const text = "domain: a\ndescriptors: [{kee: !b c}, {key: ''}]\n";
    const places = problemsOf(text, text).map(({ file, line, column }) => [file, line, column]);
    expect(places).toEqual([
      ["0.yaml", 2, 16],
      ["0.yaml", 2, 21],
      ["0.yaml", 2, 34],
      ["1.yaml", 1, 9],
      ["1.yaml", 2, 16],
      ["1.yaml", 2, 21],
      ["1.yaml", 2, 34],
    ]);
  });

  it("keeps a key that JavaScript objects have by nature", () => {
    expect(idsOf("domain: a\n__proto__: 1\nconstructor: 2\n")).toEqual(["HG120", "HG120"]);
    expect(parse("domain: __proto__\ndescriptors: [{key: constructor}]").kind).toBe("policy");
  });

  it("says nothing twice of a misspelt name", () => {
    const ids = ["HG125", "HG120", "HG120"];
    expect(idsOf(limitText("{unt: day, hits: 1}"))).toEqual(ids);
    // The reference's dialect misses no number.
    const text = "domain: a\ndescriptors: [{key: a, rate_limit: {unt: day, hits: 1}}]";
    expect(idsOf(text)).toEqual(ids.slice(1));
  });

  it("never repeats a long or active text of the user in a message", () => {
    const value = `\\u001b[2J${"s3cret".repeat(50)}`;
    for (const { message, expected, suggestion } of problemsOf(
      `domain: a\n"${value}": 1\ndescriptors: [{key: a, rate_limit: {unit: "${value}"}}]`,
      `"${value}": 1`,
    )) {
      const said = `${message}${expected ?? ""}${suggestion ?? ""}`;
      expect(said).not.toContain("\u001b");
      expect(said).not.toContain("s3cret".repeat(10));
    }
  });
});

describe("parsePolicy(), a limit", () => {
  it.each([
    { limit: "{unit: second, requests_per_unit: 7}", hits: 7, burst: 7, periodUs: 1e6 },
    { limit: "{period: 1h30m, requests_per_unit: 7}", hits: 7, burst: 7, periodUs: 5_400e6 },
    { limit: "{unit: day, requests_per_unit: 7, burst: 9}", hits: 7, burst: 9, periodUs: 86_400e6 },
    { limit: "{unit: day, requests_per_unit: 0}", hits: 0, burst: 0, periodUs: 86_400e6 },
    { limit: "{unit: day, requests_per_unit: -0}", hits: 0, burst: 0, periodUs: 86_400e6 },
    { limit: "{unit: year, requests_per_unit: 1}", hits: 1, burst: 1, periodUs: 31_536_000e6 },
  ])("reads $limit", ({ limit, ...expected }) => {
    expect(limitOf(limit)).toMatchObject(expected);
  });

  it("reaches the largest rate and burst", () => {
    const text = `{unit: second, requests_per_unit: ${hitsMax}, burst: ${hitsMax}}`;
    expect(limitOf(text)).toMatchObject({ hits: hitsMax, burst: hitsMax });
  });

  it("may take ten years to drain, and no second longer", () => {
    const seconds = drainTimeUsMax / 1_000_000;
    expect(limitOf(`{period: ${seconds}s, requests_per_unit: 1}`)?.periodUs).toBe(drainTimeUsMax);
    const longer = `{period: ${seconds + 1}s, requests_per_unit: 1}`;
    expect(idsOf(limitText(longer))).toEqual(["HG144"]);
    const longAndFast = `{period: ${seconds + 1}s, requests_per_unit: 1000, burst: 1}`;
    expect(idsOf(limitText(longAndFast))).toEqual(["HG144"]);
    const fullest = `{period: 1s, requests_per_unit: 1, burst: ${seconds}}`;
    expect(limitOf(fullest)?.burst).toBe(seconds);
    const fuller = `{period: 1s, requests_per_unit: 1, burst: ${seconds + 1}}`;
    expect(idsOf(limitText(fuller))).toEqual(["HG144"]);
  });
});

describe("parsePolicy(), its bounds", () => {
  it("describes a hundred problems and counts the rest", () => {
    const parsed = parse(`domain: a\ndescriptors:\n${"- {kee: a}\n".repeat(problemsMax + 50)}`);
    expect(parsed).toMatchObject({ kind: "problems", unreportedCount: 50 });
    expect(parsed.kind === "problems" && parsed.problems.length).toBe(problemsMax);
  });

  it("describes a few syntax problems of a file", () => {
    expect(problemsOf(`[${",".repeat(100_000)}`)).toHaveLength(syntaxProblemsMax);
    expect(problemsOf("]".repeat(100_000))).toHaveLength(syntaxProblemsMax);
  });

  it("reads files up to their largest size, and all together", () => {
    const head = "domain: a\n#";
    const fullest = head + "x".repeat(fileCharsMax - head.length);
    expect(parse(fullest).kind).toBe("policy");
    expect(idsOf(`${fullest}x`)).toEqual(["HG107"]);
    const files = Array.from({ length: policyCharsMax / fileCharsMax }, (_, i) =>
      fullest.replace("domain: a", `domain: ${i}`),
    );
    expect(parse(...files).kind).toBe("policy");
    expect(idsOf(...files, "domain: z")).toEqual(["HG107"]);
  });

  it("reads as many rules as a policy may hold, over several files", () => {
    // A thousand a key: itself, and a list that all keys of the file share.
    const list = Array.from({ length: 999 }, (_, i) => `{key: k${i}}`).join();
    const files = Array.from({ length: 4 }, (_, file) => {
      const keys = Array.from({ length: rulesMax / 4_000 }, (_, i) => {
        return `- {key: k${i}, descriptors: ${i === 0 ? `&list [${list}]` : "*list"}}\n`;
      });
      return `domain: d${file}\ndescriptors:\n${keys.join("")}`;
    });
    // The first of the last file is one too many.
    const [problem, ...others] = problemsOf(
      ...files,
      "domain: e\ndescriptors:\n- {key: a, descriptors: [{key: b}]}\n- {key: c}",
    );
    expect(problem).toMatchObject({ id: "HG160", file: "4.yaml", line: 3, column: 3 });
    expect(others).toEqual([]);
  });

  it.each([
    { what: "domain", max: domainCharsMax, text: (s: string) => `domain: ${s}` },
    { what: "key", max: keyCharsMax, text: (s: string) => `domain: a\ndescriptors: [{key: ${s}}]` },
    {
      what: "value",
      max: valueCharsMax,
      text: (s: string) => `domain: a\ndescriptors: [{key: a, value: ${s}}]`,
    },
    {
      what: "name",
      max: nameCharsMax,
      text: (s: string) => limitText(`{unit: day, requests_per_unit: 1, name: ${s}}`),
    },
  ])("reads a $what of $max characters, and no longer one", ({ max, text }) => {
    expect(parse(text("x".repeat(max))).kind).toBe("policy");
    expect(idsOf(text("x".repeat(max + 1)))).toEqual(["HG131"]);
  });

  it("reads as many limits as a descriptor may have", () => {
    const text = (count: number): string => {
      const limits = Array.from(
        { length: count },
        (_, i) => `{period: ${i + 1}s, requests_per_unit: 1}`,
      );
      return limitText("X").replace("rate_limit: X", `rate_limits: [${limits.join(", ")}]`);
    };
    expect(parse(text(limitsPerDescriptorMax)).kind).toBe("policy");
    expect(idsOf(text(limitsPerDescriptorMax + 1))).toEqual(["HG160"]);
  });

  it("reads as many patterns of one key as may stand beside each other", () => {
    const text = (count: number): string => {
      const items = Array.from({ length: count }, (_, i) => `- {key: a, value: ${i}*}\n`);
      return `domain: a\ndescriptors:\n- {key: b, value: "*"}\n${items.join("")}`;
    };
    expect(parse(text(patternsPerKeyMax)).kind).toBe("policy");
    expect(idsOf(text(patternsPerKeyMax + 9))).toEqual(["HG160"]);
  });

  it("reads paths up to their longest", () => {
    const text = (keys: readonly string[]): string => {
      const tree = keys.reduceRight((below, key) => `, descriptors: [{key: ${key}${below}}]`, "");
      return `{domain: a${tree}}`;
    };
    const steps = Array.from({ length: pathStepsMax }, () => "k");
    expect(parse(text(steps)).kind).toBe("policy");
    expect(idsOf(text([...steps, "k"]))).toEqual(["HG161"]);
    // Eight keys and seven dots between them.
    const keys = Array.from({ length: 8 }, () => "k".repeat(keyCharsMax - 1));
    expect(keys.join(".").length).toBe(pathCharsMax - 1);
    expect(parse(text(keys)).kind).toBe("policy");
    expect(idsOf(text([...keys, "k"]))).toEqual(["HG161"]);
  });

  it("reads texts nested up to the deepest", () => {
    // The document counts as one.
    const text = (depth: number): string => `${"[".repeat(depth)}${"]".repeat(depth)}`;
    expect(idsOf(text(nestingMax - 1))).toEqual(["HG111"]);
    expect(idsOf(text(nestingMax))).toEqual(["HG108"]);
  });
});
