import type { ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import { domainForms } from "../../../../src/policy/limits/domain.js";
import { parsePolicy } from "../../../../src/policy/parse.js";
import { policyForm } from "../../../../src/policy/policy-form.js";
import { formatDuration } from "../../../../src/policy/text/duration.js";
import type { Form, MapForm } from "../../../../src/policy/text/form.js";
import { makeJsonSchema } from "../../../../src/policy/text/json-schema.js";

const schema = makeJsonSchema(policyForm, { title: "Policy" });
const validate: ValidateFunction = new Ajv2020({ allowUnionTypes: true }).compile(schema);

/** Mistakes that a single value shows; the rest depends on what stands beside it. */
const ownMistakes = new Set([
  ...["HG120", "HG124", "HG125", "HG130", "HG131", "HG133", "HG140", "HG141", "HG142", "HG143"],
  ...["HG111", "HG160", "HG201", "HG202", "HG208", "HG241", "HG244"],
]);

/** What the reader finds wrong with a policy by itself. */
function mistakesOf(policy: unknown): readonly string[] {
  const parsed = parsePolicy([{ file: "a.yaml", text: JSON.stringify(policy) }]);
  if (parsed.kind === "policy") return [];
  return parsed.problems.filter(({ id }) => ownMistakes.has(id)).map(({ message }) => message);
}

const texts = ["a", "/a", "2x", "mean", "http://a", "1d", "%A%"];

/** A right value. */
function sampleOf(form: Form): unknown {
  switch (form.kind) {
    case "text":
      return texts.find((text) => form.pattern?.test(text) ?? true);
    case "whole":
      return form.min;
    case "number":
      return form.bounds.max;
    case "duration":
      return formatDuration(Math.min(form.bounds.maxMs, Math.max(form.bounds.minMs, 1_000)));
    case "bytes":
      return `${Math.min(form.bounds.max / 2 ** 20, 16)}Mi`;
    case "flag":
    case "ratelimitBoolean":
      return true;
    case "words":
      return form.words[0];
    case "map":
      return fillers(form.map(), "");
    case "texts":
      return { app: sampleOf(form.value) };
    case "list":
      return [sampleOf(form.item)];
    case "any":
      return form.of.map(sampleOf)[0];
    case "json":
      return { a: "b" };
  }
}

/** Values that must or may not be right by themselves. */
function valuesOf(form: Form): readonly unknown[] {
  const wrong = ["?", "", 1.5, [], [{ "": [] }], { "?": 1 }];
  switch (form.kind) {
    case "text":
      return [sampleOf(form), "x".repeat(form.charsMax + 1), "", 1.5, [], { "?": 1 }];
    case "whole":
      return [form.min, form.max, form.min - 1, form.max + 1, "5", ...wrong];
    case "number": {
      const { min, max, isMinExcluded } = form.bounds;
      return [max, isMinExcluded ? min + 0.001 : min, min - 1, min, max + 1, "0.5", "?", [], {}];
    }
    case "list":
      return [[], "?", 5, { "?": 1 }, [[[]]], ...overfull(form)];
    case "words":
      return [...form.words, ...wrong];
    case "json":
      return [{ a: 1 }, "?", []];
    case "texts":
      return [{ app: "a" }, "?", {}];
    default:
      return [sampleOf(form), ...wrong];
  }
}

/** Not of what may be hundreds: then other mistakes would fill the report before. */
function overfull({ item, max = 0 }: Extract<Form, { kind: "list" }>): readonly unknown[] {
  if (max === 0 || max > 100) return [];
  return [Array.from({ length: max + 1 }, () => sampleOf(item))];
}

/** What has to stand beside a name, so that nothing is missing. */
function fillers({ rows, required, needed, exclusive }: MapForm, name: string): object {
  const clashes = exclusive.filter((group) => group.includes(name)).flat();
  const wanted = needed
    .filter((group) => !group.includes(name))
    .flatMap((group) => group.find((each) => !clashes.includes(each)) ?? []);
  const names = [...required, ...wanted].filter((each) => each !== name);
  const sampled = names.map((each) => [each, sampleOf(formOf(rows, each))]);
  return { ...Object.fromEntries(sampled), ...readBeside[name] };
}

/** What some names are only read with. */
const readBeside: Readonly<Record<string, object>> = {
  aimd: { law: "aimd" },
  vegas: { law: "vegas" },
  gradient: { law: "gradient" },
  latencyShed: { law: "latencyShed" },
  signal: { law: "signal", per: { header: "a", names: ["a"] } },
  law: { latencyShed: { threshold: "1s" }, signal: { fixed: 1 } },
  preset: { fixed: 1 },
  metrics: { select: "a" },
  headerMatch: { value: "a" },
  queryMatch: { value: "a" },
  server: { prometheus: "a" },
  select: { metrics: "http://a", prometheus: undefined },
  pointer: { http: "http://a", prometheus: undefined },
};

function formOf(rows: MapForm["rows"], name: string): Form {
  const row = rows[name];
  if (row === undefined) throw new Error(`no row of ${name}`);
  return row.form;
}

interface Case {
  readonly path: string;
  readonly policy: unknown;
}

type Wrap = (value: unknown) => unknown;

/** Where a value is tried, and which maps were on the way. */
interface Walk {
  readonly path: string;
  readonly place: Wrap;
  readonly seen: Set<MapForm>;
}

/** Every name of every map, with values of its form, each in a policy of its own. */
function* casesOf(map: MapForm, { path, place, seen }: Walk): Generator<Case> {
  if (seen.has(map)) return;
  seen.add(map);
  yield { path: `${path}.?`, policy: place({ ...fillers(map, ""), "no-such-name": 1 }) };
  for (const name of map.required) {
    const rest = Object.entries(fillers(map, "")).filter(([each]) => each !== name);
    yield { path: `${path} without ${name}`, policy: place(Object.fromEntries(rest)) };
  }
  for (const name of map.shape.names) {
    const inner: Wrap = (value) => place({ ...fillers(map, name), [name]: value });
    yield* casesOfForm(formOf(map.rows, name), { path: `${path}.${name}`, place: inner, seen });
  }
}

function* casesOfForm(form: Form, walk: Walk): Generator<Case> {
  const { path, place } = walk;
  for (const value of valuesOf(form)) {
    yield { path: `${path} = ${JSON.stringify(value)?.slice(0, 60)}`, policy: place(value) };
  }
  if (form.kind === "map") yield* casesOf(form.map(), walk);
  if (form.kind === "list") {
    const inner: Wrap = (value) => place([value]);
    yield* casesOfForm(form.item, { ...walk, path: `${path}[]`, place: inner });
  }
  if (form.kind === "any") for (const each of form.of) yield* casesOfForm(each, walk);
}

describe("makeJsonSchema()", () => {
  it("refuses of single values what the reader refuses, and takes what it takes", () => {
    const walk = { path: "", place: (value: unknown) => value, seen: new Set<MapForm>() };
    const cases = [...casesOf(policyForm, walk)];
    const differing = cases.flatMap(({ path, policy }) => {
      const mistakes = mistakesOf(policy);
      const isRight = validate(policy);
      if (isRight === (mistakes.length === 0)) return [];
      const errors = validate.errors?.map((e) => `${e.instancePath} ${e.message}`).join("; ");
      return [
        `${path}: reader ${mistakes.join("; ") || "takes it"}, schema ${errors ?? "takes it"}`,
      ];
    });
    expect(differing).toEqual([]);
    expect(cases.length).toBeGreaterThan(1_000);
  });

  it("has a description for every name", () => {
    const rows = Object.values(schema["$defs"] ?? {}).flatMap((map: object) => {
      return Object.entries<object>(Reflect.get(map, "properties"));
    });
    expect(rows.length).toBeGreaterThan(200);
    for (const [name, row] of rows)
      expect([name, row]).toEqual([
        name,
        expect.objectContaining({
          description: expect.stringMatching(/^\S.+[.:)]$/),
        }),
      ]);
  });

  it("has usual values that are right themselves", () => {
    const ajv = new Ajv2020({ allowUnionTypes: true, useDefaults: true, strict: false });
    const check = ajv.compile(schema);
    const policy = {
      apiVersion: "headgate.dev/v1alpha1",
      kind: "Policy",
      metadata: { name: "a" },
      spec: { proxies: { headgate: {}, listener: {}, overload: { cpu: {} } } },
    };
    expect(check(policy)).toBe(true);
    expect(policy.spec.proxies).toMatchObject({ expected: 1, headgate: { port: 8081 } });
  });

  it("describes files of envoyproxy/ratelimit too", () => {
    const ratelimit = makeJsonSchema(domainForms.ratelimit, { title: "ratelimit" });
    const check = new Ajv2020({ allowUnionTypes: true }).compile(ratelimit);
    const file = (limit: object) => ({
      domain: "a",
      descriptors: [{ key: "b", rate_limit: limit }],
    });
    expect(check(file({ unit: "Minute", requests_per_unit: 5 }))).toBe(true);
    expect(check(file({ unit: "minutes", requests_per_unit: 5 }))).toBe(false);
    expect(check(file({ unit: "minute", burst: 5 }))).toBe(false);
  });
});
