import { describe, expect, test } from "vitest";
import { parsePolicy } from "../../../../src/policy/parse.js";
import { buildPolicy, type Policy } from "../../../../src/policy/policy.js";
import { ServiceLog } from "../../../../src/recommend/services/service-log.js";
import type { LoggedRequest } from "../../../../src/simulate/logged-request.js";

function policyOf(services: string): Policy {
  const head = "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: shop}\nspec:\n";
  const parsed = parsePolicy([{ file: "policy.yaml", text: `${head}  services:\n${services}` }]);
  if (parsed.kind !== "policy") throw new Error(JSON.stringify(parsed));
  return buildPolicy("1", parsed);
}

const two = policyOf(
  "    - {name: orders, hosts: [orders.example]}\n    - {name: carts, hosts: [carts.example]}\n",
);

const served = { durationUs: 5_000, isError: false, isServed: true };

function request(fields: Partial<LoggedRequest>): LoggedRequest {
  return {
    timeUs: 1_700_000_000_000_500,
    wasLimited: false,
    authority: "orders.example",
    address: "",
    headers: [],
    timing: served,
    ...fields,
  };
}

describe("ServiceLog", () => {
  test("tells services apart by their hosts, and passes over hosts of none", () => {
    const log = new ServiceLog(two);
    log.take(request({}));
    log.take(request({ authority: "Carts.example:443", timing: { ...served, isError: true } }));
    log.take(request({ authority: "other.example" }));
    expect(log.finish()).toMatchObject([
      { service: "orders", requestCount: 1, errorRatio: 0 },
      { service: "carts", requestCount: 1, errorRatio: 1 },
    ]);
    expect(log.warnings(true)).toEqual([]);
  });

  test("takes all requests for those of the only service that has no hosts", () => {
    const log = new ServiceLog(policyOf("    - {name: orders}\n"));
    log.take(request({ authority: "" }));
    expect(log.finish()).toMatchObject([{ service: "orders", requestCount: 1 }]);
  });

  test("leaves out requests that did not reach the service", () => {
    const log = new ServiceLog(two);
    log.take(request({ wasLimited: true }));
    log.take(request({ timing: { ...served, isServed: false } }));
    expect(log.finish()).toEqual([]);
    expect(log.warnings(true)).toEqual([]);
  });

  test("says how many requests have no duration, where that matters", () => {
    const log = new ServiceLog(two);
    log.take(request({ timing: { ...served, durationUs: Number.NaN } }));
    expect(log.warnings(false)).toEqual([]);
    expect(log.warnings(true)).toEqual([expect.stringContaining("1 request of services have no")]);
    log.take(request({}));
    expect(log.warnings(false)).toHaveLength(1);
  });
});
