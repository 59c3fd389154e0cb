import { describe, expect, it } from "vitest";
import { parsePolicy } from "../../../src/policy/parse.js";
import type { PolicyPlaces } from "../../../src/policy/policy-places.js";

const services = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: a}
spec:
  services:
    - name: orders
      circuitBreakers: &breakers
        retryBudget: {percent: 20}
      hosts: [a.example, b.example]
    - {name: carts, circuitBreakers: *breakers}
    - <<: {timeouts: {request: 1s}}
      name: search
`;

const proxies = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: b}
spec:
  proxies:
    overload: {maxHeap: 1Gi}
`;

function placesOf(...texts: readonly string[]): PolicyPlaces {
  const parsed = parsePolicy(texts.map((text, i) => ({ file: `${i}.yaml`, text })));
  if (parsed.kind === "problems") throw new Error(parsed.problems[0]?.message);
  return parsed.places;
}

const places = placesOf(services, proxies);

function find(service: string | undefined, ...path: readonly string[]): string | undefined {
  const place = places.find({ service, path });
  return place && `${place.file}:${place.line}:${place.column}`;
}

describe("PolicyPlaces.find()", () => {
  it.each<readonly [string | undefined, readonly string[], string]>([
    ["orders", [], "0.yaml:6:7"],
    ["orders", ["circuitBreakers"], "0.yaml:7:7"],
    ["orders", ["circuitBreakers", "retryBudget"], "0.yaml:8:9"],
    ["orders", ["circuitBreakers", "retryBudget", "percent"], "0.yaml:8:23"],
    ["orders", ["hosts", "1"], "0.yaml:9:26"],
    ["carts", [], "0.yaml:10:7"],
    ["search", ["timeouts", "request"], "0.yaml:11:23"],
    [undefined, ["proxies", "overload"], "1.yaml:6:5"],
    [undefined, ["overload", "maxHeap"], "1.yaml:6:16"],
    [undefined, ["proxies"], "1.yaml:5:3"],
  ])("finds of %s the path %o", (service, path, place) => {
    expect(find(service, ...path)).toBe(place);
  });

  it("finds a quota by its name, in the file that has it", () => {
    const head = "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: a}\nspec:\n";
    const limits = "  rateLimits: [{domain: shop}]\n";
    const quota = (name: string): string =>
      `  quotas:\n    - name: ${name}\n      domain: shop\n` +
      `      bucket: [{header: x, as: ${name}}]\n      rate: {hits: 1, period: 1s}\n`;
    const many = placesOf(proxies, head + limits + quota("a"), head + quota("b"));
    const at = (...path: readonly string[]): string => {
      const place = many.find({ service: undefined, path });
      return `${place?.file}:${place?.line}`;
    };
    expect(at("quotas", "a", "rate")).toBe("1.yaml:10");
    expect(at("quotas", "b")).toBe("2.yaml:6");
    expect(at("quotas", "b", "deny", "status")).toBe("2.yaml:6");
    expect(at("quotas", "c")).toBe("1.yaml:6");
    expect(at("proxies", "overload")).toBe("0.yaml:6");
  });

  it("finds what an alias leads to", () => {
    expect(find("carts", "circuitBreakers", "retryBudget")).toBe("0.yaml:8:9");
  });

  it("gives the nearest that is written, at last the first file's spec", () => {
    expect(find("orders", "circuitBreakers", "maxRequests")).toBe("0.yaml:7:7");
    expect(find("orders", "retries", "numRetries")).toBe("0.yaml:6:7");
    expect(find("nobody", "retries")).toBe("0.yaml:5:3");
    const alone = placesOf(services).find({ service: undefined, path: ["proxies", "overload"] });
    expect(alone).toMatchObject({ file: "0.yaml", line: 5 });
  });

  it("shows the line and marks the place in it", () => {
    expect(places.find({ service: "orders", path: ["hosts"] })).toEqual({
      file: "0.yaml",
      line: 9,
      column: 7,
      excerpt: "      hosts: [a.example, b.example]",
      caret: { start: 6, length: 5 },
    });
  });

  it("has none in files of envoyproxy/ratelimit", () => {
    const none = placesOf("domain: a\n").find({ service: "orders", path: [] });
    expect(none).toBeUndefined();
  });
});
