import { describe, expect, it } from "vitest";
import type { Document } from "../../../src/generate/base/document.js";
import { documentPathCharsMax, isSafePath } from "../../../src/generate/base/document-path.js";
import { defaultGenerateOptions } from "../../../src/generate/base/generate-options.js";
import type { GenerateProblem } from "../../../src/generate/base/generator.js";
import { plainTree } from "../../../src/generate/base/plain-tree.js";
import { hasObjects } from "../../../src/generate/check/check-objects.js";
import { generate } from "../../../src/generate/generate.js";
import { policyOf } from "../../support/generated.js";
import { manyServices } from "../../support/many-services.js";

const text = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  services:
    - {name: orders, upstream: {address: 10.0.0.1, port: 80}, outlierDetection: off}
`;
const policy = policyOf([{ file: "policy.yaml", text }]);
const wish = { target: "envoy", policy, options: defaultGenerateOptions } as const;

function problem(severity: "error" | "warning"): GenerateProblem {
  const spot = { service: undefined, path: [] };
  return { id: "HG399", spot, message: "m", hint: "h", severity };
}

describe("the hash of a policy", () => {
  it("is of what it says: comments, quotes and the order of names are left out", () => {
    const limits = (rate: string) => {
      return `  rateLimits: [{domain: shop, descriptors: [${rate}]}]\n`;
    };
    const minute = "{key: user, rate_limit: {unit: minute, requests_per_unit: 5}}";
    const hashOf = (one: string) => policyOf([{ file: "policy.yaml", text: one }]).hash;
    const usual = hashOf(text + limits(minute));
    const same = "{rate_limit: {requests_per_unit: 5, unit: 'minute'}, key: user}";
    expect(hashOf(`# A word.\n\n${text}  # And one more.\n${limits(same)}`)).toBe(usual);
    for (const other of [minute.replace("5", "6"), minute.replace("user", "caller")]) {
      expect(hashOf(text + limits(other)), other).not.toBe(usual);
    }
    expect(hashOf((text + limits(minute)).replace("port: 80", "port: 81"))).not.toBe(usual);
    // Not of what becomes of it in here: another version of Headgate makes no file stale.
    expect(usual).toBe("5b74f80c1212");
  });
});

describe("generated objects of 100 services", () => {
  /** What `kubectl apply` keeps of an object in an annotation, in bytes at most. */
  const appliedBytesMax = 262_144;
  const many = policyOf([{ file: "policy.yaml", text: manyServices(100) }]);

  it.each(["istio", "gateway"] as const)("of %s go through kubectl apply", (target) => {
    const options = { ...defaultGenerateOptions, gatewayVersion: { major: 1, minor: 8 } };
    const { documents, problems } = generate({ target, policy: many, options }, []);
    expect(problems.filter(({ severity }) => severity === "error")).toEqual([]);
    const objects = documents.filter(hasObjects).flatMap(({ parts }) => parts.map(plainTree));
    const sizes = objects.map((object) => JSON.stringify(object).length);
    expect(objects.length).toBeGreaterThan(200);
    expect(Math.max(...sizes)).toBeLessThan(appliedBytesMax);
  });
});

describe("generate()", () => {
  it("gives documents with warnings, of the policy's lints and of checks", () => {
    const seen: (readonly Document[])[] = [];
    const check = (documents: readonly Document[]) => {
      seen.push(documents);
      return [problem("warning")];
    };
    const { documents, problems } = generate(wish, [check]);
    expect(documents.length).toBeGreaterThan(0);
    expect(seen).toEqual([documents]);
    expect(problems.map(({ id }) => id)).toEqual(["HG423", "HG399"]);
  });

  it("gives no document where there is an error", () => {
    const { documents, problems } = generate(wish, [() => [problem("error")]]);
    expect(documents).toEqual([]);
    expect(problems.map(({ id }) => id)).toEqual(["HG423", "HG399"]);
  });

  it("leaves the checks out where a target cannot say what the policy says", () => {
    const none = policyOf([{ file: "a.yaml", text: "domain: a\n" }]);
    const asked = { ...wish, policy: none };
    const { problems } = generate(asked, [() => [problem("error")]]);
    expect(problems.map(({ id }) => id)).toEqual(["HG304"]);
  });
});

describe("isSafePath()", () => {
  it.each([
    ["a", true],
    ["a/b-c/d_e.yaml", true],
    ["", false],
    ["/a", false],
    ["a//b", false],
    ["../a", false],
    ["a/../b", false],
    ["a/.b", false],
    ["a\\b", false],
    ["a b", false],
    ["a\u0000", false],
    ["-rf", false],
    ["é", false],
    [`${"a/".repeat(documentPathCharsMax / 2 - 1)}a`, true],
    [`${"a/".repeat(documentPathCharsMax / 2)}a`, false],
    ["a".repeat(201), false],
  ])("takes %o: %s", (path, isSafe) => {
    expect(isSafePath(path)).toBe(isSafe);
  });
});
