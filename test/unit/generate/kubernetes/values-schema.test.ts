import { Ajv } from "ajv";
import { describe, expect, it } from "vitest";
import { isPlainMap, plainTree } from "../../../../src/generate/base/plain-tree.js";
import { valueNames, valueRow } from "../../../../src/generate/kubernetes/value-rows.js";
import { valuesWith } from "../../../../src/generate/kubernetes/value-source.js";
import { valuesSchema, valuesTree } from "../../../../src/generate/kubernetes/values-schema.js";

const plain = plainTree(valuesSchema());
const schema = isPlainMap(plain) ? plain : expect.fail("the schema is no map");
const validate = new Ajv({ allErrors: true }).compile(schema);

/** Where a value of a row stands in a chart's values. */
function nested(name: string, value: unknown): unknown {
  const [group = "", member] = name.split(".");
  return { [group]: member === undefined ? value : { [member]: value } };
}

describe("valuesSchema()", () => {
  it("takes the default values", () => {
    validate(plainTree(valuesTree(valuesWith({}))));
    expect(validate.errors ?? []).toEqual([]);
  });

  it.each(valueNames)("takes the bounds of %s, and nothing beyond them", (name) => {
    const row = valueRow(name);
    const wrong: unknown[] = [null];
    if (row.kind === "number") {
      for (const value of [row.min, row.max]) expect(validate(nested(name, value))).toBe(true);
      wrong.push(row.min - 1, row.max + 1, row.min + 0.5, String(row.defaultValue));
    } else if (row.kind === "text") {
      expect(validate(nested(name, row.defaultValue))).toBe(true);
      wrong.push("\n", `${"x".repeat(300)} `, 7, true);
    } else {
      wrong.push(7, "x", row.kind === "list" ? {} : []);
    }
    for (const value of wrong) expect(validate(nested(name, value)), `${value}`).toBe(false);
  });

  it("refuses names that there are none of, but what Helm hands to every chart", () => {
    expect(validate({ replicaCount: 3 })).toBe(false);
    expect(validate({ replicas: { count: 3 } })).toBe(false);
    expect(validate({ global: { registry: "x" } })).toBe(true);
  });
});
