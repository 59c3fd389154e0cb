import { describe, expect, it } from "vitest";
import { parsePolicy } from "../../../../src/policy/parse.js";
import {
  type ServiceIndex,
  ServiceIndexBuilder,
} from "../../../../src/policy/services/service-index.js";
import { policyOf } from "../../../support/service-texts.js";

function indexOf(...services: readonly string[]): ServiceIndex {
  const parsed = parsePolicy([{ file: "a.yaml", text: policyOf(...services) }]);
  if (parsed.kind === "problems") throw new Error(parsed.problems[0]?.message);
  const builder = new ServiceIndexBuilder();
  for (const service of structuredClone(parsed.services)) builder.add(service);
  return builder.finish();
}

describe("ServiceIndexBuilder", () => {
  const index = indexOf("{name: a, hosts: [a.example, 10.0.0.1]}", "{name: b}");

  it("finds a service by its name", () => {
    expect(index.named("b")?.service.name).toBe("b");
    expect(index.named("c")).toBeUndefined();
    expect(index.named("toString")).toBeUndefined();
  });

  it.each([
    "a.example",
    "A.Example",
    "a.example:8080",
    "a.example.",
    "A.example.:443",
    "10.0.0.1:1",
  ])("finds a service at %s", (authority) => {
    expect(index.at(authority)?.service.name).toBe("a");
  });

  it.each(["", "b", "x.a.example", "a.example:http", "a.example/", "10.0.0.2"])(
    "finds none at %j",
    (authority) => {
      expect(index.at(authority)).toBeUndefined();
    },
  );

  it("has a classifier for each, with its rules", () => {
    const withRule = indexOf(
      `{name: a, priority: {rules: [{when: 'request.path == "/a"', is: low}]}}`,
    );
    const headers = new Map([[":path", "/a"]]);
    const facts = { headers, attributes: new Map() };
    expect(withRule.named("a")?.classifier.classify(facts)).toBe("low");
    expect(index.named("a")?.classifier.classify(facts)).toBe("normal");
  });
});
