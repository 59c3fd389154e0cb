import { describe, expect, it } from "vitest";
import { placeAt, type SchemaPart, schemasAt } from "../../../../src/console/data/policy-schema.js";
import { policyForm } from "../../../../src/policy/policy-form.js";
import { makeJsonSchema } from "../../../../src/policy/text/json-schema.js";

/** The place of `|` in a text. */
function place(text: string) {
  const lines = text.split("\n");
  const line = lines.findIndex((one) => one.includes("|"));
  const column = lines[line]?.indexOf("|") ?? 0;
  return placeAt(
    lines.map((one) => one.replace("|", "")),
    line,
    column,
  );
}

describe("a place in a policy", () => {
  it("is known by indentation", () => {
    expect(place("kind: Policy\n|")).toEqual({ path: [], key: undefined });
    expect(place("spec:\n  rateLimits:\n    - domain: shop\n      |")).toEqual({
      path: ["spec", "rateLimits", "[]"],
      key: undefined,
    });
    expect(place("spec:\n  rateLimits:\n    - |")).toEqual({
      path: ["spec", "rateLimits", "[]"],
      key: undefined,
    });
    expect(place("spec:\n  services:\n    - name: a\n      admission:\n        |")).toEqual({
      path: ["spec", "services", "[]", "admission"],
      key: undefined,
    });
  });

  it("is known within braces, and behind a key", () => {
    const text =
      "spec:\n  rateLimits:\n    - domain: shop\n      descriptors:\n        - key: user\n";
    const path = ["spec", "rateLimits", "[]", "descriptors", "[]", "rate_limit"];
    expect(place(`${text}          rate_limit: {unit: |`)).toEqual({ path, key: "unit" });
    expect(place(`${text}          rate_limit: {unit: day, |`)).toEqual({ path, key: undefined });
    expect(place("kind: |")).toEqual({ path: [], key: "kind" });
  });
});

describe("a schema", () => {
  it("is followed through references, lists and choices, and not in circles", () => {
    const root = {
      $ref: "#/$defs/a",
      $defs: {
        a: { properties: { many: { items: { anyOf: [{ $ref: "#/$defs/b" }] } } } },
        b: { properties: { name: { description: "Its name." } } },
        c: { $ref: "#/$defs/c" },
      },
    };
    const [found] = schemasAt(root, ["many", "[]", "name"]);
    expect(found?.description).toBe("Its name.");
    expect(schemasAt({ $ref: "#/$defs/c", $defs: root.$defs }, [])).toEqual([]);
  });

  it("is followed through names that are the user's own", () => {
    const schema = makeJsonSchema(policyForm, { title: "a policy" });
    const root: SchemaPart = JSON.parse(JSON.stringify(schema));
    const path = ["spec", "waitingRooms", "[]", "page", "texts", "sv"];
    const [found] = schemasAt(root, [...path, "leave"]);
    expect(found?.description).toBe("The button that gives the place up.");
    expect(schemasAt(root, [...path, "leave", "more"])).toEqual([]);
  });
});
