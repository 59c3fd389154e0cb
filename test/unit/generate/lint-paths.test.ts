import { describe, expect, it } from "vitest";
import { lintPaths } from "../../../src/generate/lint-paths.js";
import { policyOf } from "../../support/generated.js";

function messagesOf(priority: string): readonly string[] {
  const text = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - {key: path, value: /static/export, rate_limit: {unit: hour, requests_per_unit: 5}}
        - {key: path, value: "/static/big/*", rate_limit: {unit: hour, requests_per_unit: 5}}
        - {key: path, value: /pay, rate_limit: {unit: hour, requests_per_unit: 5}}
        - {key: user, value: /static/ann, rate_limit: {unit: hour, requests_per_unit: 5}}
  services:
    - name: orders
      rateLimit:
        domain: shop
        descriptors: [[{header: ":path", as: path}], [{header: x, as: user}]]
      priority: ${priority}
`;
  return lintPaths(policyOf([{ file: "policy.yaml", text }])).map(({ id, spot, message }) => {
    return `${id} ${spot.path.slice(1).join(".")} ${message}`;
  });
}

const below = "and every path below it pass uncounted, and are never refused";

describe("lintPaths()", () => {
  it.each([
    ["{}", []],
    ["{bypassPaths: [/healthz, /static]}", []],
    ["{bypassPaths: [/fonts/*]}", [`HG440 bypassPaths "/fonts" ${below}`]],
    ["{authPaths: [/fonts/*]}", []],
    [
      "{bypassPaths: [/status/], authPaths: [/login/, /]}",
      [
        'HG441 bypassPaths "/status/" matches only that path, with its slash, and ' +
          "nothing below it",
        'HG441 authPaths "/login/" matches only that path, with its slash, and nothing below it',
      ],
    ],
  ])("says of %s: %o", (priority, messages) => {
    expect(messagesOf(priority)).toEqual(messages);
  });

  it("names what the policy says of paths below a bypassed prefix", () => {
    const rules = [
      `{when: 'request.path.startsWith("/pay")', is: high}`,
      `{when: 'request.url_path == "/static/pay"', is: high}`,
      `{when: 'request.path == "/static?a" || request.path == "/statics"', is: low}`,
    ];
    const priority = `{bypassPaths: [/static/*], authPaths: [/static/in], rules: [${rules}]}`;
    const named = [
      'rule 2 ("/static/pay")',
      'rule 3 ("/static?a")',
      'authPaths "/static/in"',
      'the limit "path_/static/export"',
      'the limit "path_/static/big/*"',
    ];
    expect(messagesOf(priority)).toEqual([
      `HG440 bypassPaths "/static" ${below}; without effect there: ${named.join(", ")}`,
    ]);
  });

  it("bounds what it names, and knows that /* is everything", () => {
    const [message, ...others] = messagesOf("{bypassPaths: [/*]}");
    expect(others).toEqual([]);
    expect(message).toMatch(/^HG440 bypassPaths every path pass.*: (?:[^,]+, ){5}2 more$/);
  });
});
