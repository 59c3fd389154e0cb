import { describe, expect, it } from "vitest";
import { ProblemLog } from "../../../../src/policy/problems/problem-log.js";
import { SourceText } from "../../../../src/policy/problems/source-text.js";
import { Block } from "../../../../src/policy/text/block.js";
import { duration, flag, whole, words } from "../../../../src/policy/text/form.js";
import { makeJsonSchema } from "../../../../src/policy/text/json-schema.js";
import { NodeReader } from "../../../../src/policy/text/node-reader.js";
import {
  field,
  inner,
  innerOrOff,
  items,
  type ObjectForm,
  object,
  wordList,
} from "../../../../src/policy/text/object.js";
import { readYaml } from "../../../../src/policy/text/yaml-text.js";

const few = { min: 1, max: 9 };
const times = { minMs: 1, maxMs: 60_000 };

const wheel = object(
  { title: "a wheel", docs: "One of them." },
  { maxSpokes: field(whole(few), "Spokes.", { as: "spokesMax", default: 8 }) },
);

const bicycle = object(
  { title: "a bicycle", docs: "What is ridden.", alternatives: ["bell", "horn"] },
  {
    gears: field(whole(few), "Gears.", { needs: "how many gears" }),
    rest: field(duration(times), "A rest.", { as: "restMs", default: 2_000 }),
    longest: field(duration(times), "The longest.", { as: "restMsMax", dependentDefault: 5_000 }),
    front: field(inner(wheel), "In front."),
    back: field(innerOrOff(wheel), "Behind."),
    bell: field(flag, "A bell."),
    horn: field(flag, "A horn."),
    sizes: field(items(whole(few), { expected: "a list of sizes", max: 2 }), "Sizes."),
    colors: field(wordList(["red", "blue"]), "Colors.", { default: ["red"] }),
    kind: field(words("road", "town"), "Which.", { default: "town" }),
  },
  {
    data: (read) => ({
      ...read,
      restMsMax: read.restMsMax ?? Math.max(5_000, read.restMs),
    }),
    check(block, { restMs, restMsMax }) {
      if (restMs > restMsMax) block.refuseOrder(["longest"], "too short", "at least rest");
    },
  },
);

function read<Data>(form: ObjectForm<Data>, text: string, base?: Data) {
  const log = new ProblemLog();
  const source = new SourceText({ file: "a.yaml", text }, 0);
  const yaml = readYaml(source, log);
  if (yaml.kind !== "root") throw new Error("unreadable");
  const reader = new NodeReader(source, log, new Map());
  const block = Block.at(reader, yaml.node, form.shape);
  const data = block && form.read(block, base);
  return { data, problems: log.found().problems.map(({ id, column }) => `${id} ${column}`) };
}

describe("object()", () => {
  it("reads what is written, by the names of the data, and defaults for what is left out", () => {
    const text = "{gears: 3, rest: 7s, front: {}, back: off, sizes: [1, 2], colors: [blue, blue]}";
    const { data, problems } = read(bicycle, text);
    expect(problems).toEqual([]);
    expect(data).toEqual({
      gears: 3,
      restMs: 7_000,
      restMsMax: 7_000,
      front: { spokesMax: 8 },
      back: "off",
      sizes: [1, 2],
      colors: ["blue"],
      kind: "town",
    });
  });

  it("says what an empty map means", () => {
    expect(wheel.defaults).toEqual({ spokesMax: 8 });
    expect(bicycle.defaults).toMatchObject({ restMs: 2_000, restMsMax: 5_000, kind: "town" });
  });

  it("takes what is left out from what holds around it", () => {
    const base = { ...bicycle.defaults, restMs: 9_000 };
    expect(read(bicycle, "{gears: 1}", base).data).toMatchObject({
      restMs: 9_000,
      restMsMax: 9_000,
    });
  });

  it("reports what is missing, wrong, or does not stand together", () => {
    expect(read(bicycle, "{front: {maxSpokes: 10}, bell: true, horn: true}").problems).toEqual([
      "HG125 1",
      "HG141 21",
      "HG126 38",
    ]);
    expect(read(bicycle, "{gears: 1, longest: 1s, sizes: [1, 2, 3]}").problems).toEqual([
      "HG240 12",
      "HG160 25",
    ]);
  });

  it("describes itself for the JSON Schema, with defaults as they are written", () => {
    const { $defs } = makeJsonSchema(bicycle, { title: "Bicycle" });
    expect($defs).toMatchObject({
      bicycle: {
        required: ["gears"],
        properties: { rest: { default: "2s" }, longest: { default: "5s" } },
        allOf: [{ not: { required: ["bell", "horn"] } }],
      },
      wheel: { properties: { maxSpokes: { minimum: 1, maximum: 9, default: 8 } } },
    });
  });
});
