import { describe, expect, it } from "vitest";
import { parsePolicy } from "../../../src/policy/parse.js";
import type { AskablePart } from "../../../src/policy/services/descriptor-parts.js";
import { addRule } from "../../../src/recommend/new-rule.js";

const head = "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: shop}\nspec:\n";
const user: AskablePart = { kind: "header", header: "x-user", key: "user" };

function add(text: string, parts: readonly AskablePart[], service?: string): string {
  const sources = [{ file: "policy.yaml", text: head + text }];
  const parsed = parsePolicy(sources);
  if (parsed.kind === "problems") throw new Error(parsed.problems[0]?.message);
  const added = addRule(sources, parsed, { service, parts, period: "1m" });
  if (added.kind === "problem") return `! ${added.message}`;
  const after = parsePolicy(added.sources);
  if (after.kind === "problems") return `! ${after.problems[0]?.message}`;
  return added.sources[0]?.text.slice(head.length) ?? "";
}

const limit = "rate_limit: {period: 1m, requests_per_unit: 4294967295}";

describe("addRule()", () => {
  it("adds limits and a domain to a service that has none", () => {
    expect(add("  services:\n    - name: orders # ours\n", [user])).toBe(`  services:
    - name: orders # ours
      rateLimit:
        domain: orders
        descriptors:
          - [{header: x-user, as: user}]
  rateLimits:
    - domain: orders
      descriptors:
        - key: user
          ${limit}
`);
  });

  it("adds a descriptor to a domain and to a service that have others", () => {
    const text = `  rateLimits:
    - domain: shop
      descriptors:
        - {key: remote_address, rate_limit: {unit: day, requests_per_unit: 9}}
  services:
    - name: orders
      rateLimit: {domain: shop, descriptors: [[remote_address]]}
`;
    const asked = '[{value: "free trial", as: plan}, {header: x-user, as: user}]';
    const plan: AskablePart = { kind: "fixed", key: "plan", value: "free trial" };
    expect(add(text, [plan, user])).toBe(`  rateLimits:
    - domain: shop
      descriptors:
        - {key: remote_address, rate_limit: {unit: day, requests_per_unit: 9}}
        - key: plan
          value: "free trial"
          descriptors:
            - key: user
              ${limit}
  services:
    - name: orders
      rateLimit: {domain: shop, descriptors: [[remote_address], ${asked}]}
`);
  });

  it("adds a domain beside others", () => {
    const text = `  rateLimits:
    - domain: shop
      descriptors: []
  services:
    - name: orders
`;
    expect(add(text, [{ kind: "remoteAddress", key: "remote_address" }])).toContain(`
    - domain: orders
      descriptors:
        - key: remote_address
          ${limit}
  services:
    - name: orders
      rateLimit:
        domain: orders
        descriptors:
          - [remote_address]
`);
  });

  it("goes below descriptors that are there", () => {
    const text = `  rateLimits:
    - domain: shop
      descriptors:
        - key: user
          rate_limit: {unit: day, requests_per_unit: 9}
  services:
    - name: orders
      rateLimit: {domain: shop, descriptors: [[{header: x-user, as: user}]]}
`;
    const plan: AskablePart = { kind: "fixed", key: "plan", value: "free" };
    expect(add(text, [user, plan])).toContain(`        - key: user
          rate_limit: {unit: day, requests_per_unit: 9}
          descriptors:
            - key: plan
              value: free
              ${limit}
`);
    const nested = `  rateLimits:
    - domain: shop
      descriptors:
        - key: user
          descriptors:
            - {key: plan, value: x, rate_limit: {unit: day, requests_per_unit: 9}}
  services:
    - name: orders
      rateLimit: {domain: shop, descriptors: [[{header: x-user, as: user}, {value: x, as: plan}]]}
`;
    expect(add(nested, [user])).toContain(
      `            - {key: plan, value: x, rate_limit: {unit: day, requests_per_unit: 9}}
          ${limit}
`,
    );
    expect(add(text, [user])).toBe("! shop/user has a limit already, which is fitted without this");
  });

  it("says which service it would need", () => {
    const two =
      "  services:\n    - {name: a, hosts: [a.example]}\n    - {name: b, hosts: [b.example]}\n";
    expect(add(two, [user])).toBe('! the policy has more than one service; services: "a", "b"');
    expect(add(two, [user], "c")).toBe('! the policy has no service c; services: "a", "b"');
    expect(add("  rateLimits: []\n", [user])).toBe("! the policy has no service; services: none");
    expect(add(two, [user], "b")).toMatch(/^! policy\.yaml: .* is in braces/);
  });
});
