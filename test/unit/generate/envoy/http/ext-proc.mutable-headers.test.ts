import { describe, expect, it } from "vitest";
import {
  mutableHeaderPattern,
  setByRooms,
} from "../../../../../src/generate/envoy/http/ext-proc.js";

/** Envoy holds patterns against whole names. */
function takes(pattern: string | undefined, name: string): boolean {
  return new RegExp(`^(?:${pattern})$`).test(name);
}

describe("mutableHeaderPattern()", () => {
  it("takes what Headgate sets, and the policy's names, and no other header", () => {
    const pattern = mutableHeaderPattern(["x-request-priority", "x-deadline-ms"]);
    const own = ["x-request-priority", "x-deadline-ms", "grpc-timeout"];
    const set = [...own, "grpc-status-details-bin", "grpc-retry-pushback-ms"];
    for (const name of [...set, "retry-after", "content-type", "x-headgate-reason"]) {
      expect([name, takes(pattern, name)]).toEqual([name, true]);
    }
    for (const name of ["authorization", "host", "x-user", ":path", "x-envoy-max-retries"]) {
      expect([name, takes(pattern, name)]).toEqual([name, false]);
    }
  });

  it("takes what waiting rooms set beside, and nothing that a service trusts", () => {
    const names = ["x-request-priority", "x-deadline-ms"];
    const pattern = mutableHeaderPattern(names, setByRooms);
    const page = ["content-type", "content-security-policy", "referrer-policy", "refresh", "vary"];
    const others = ["set-cookie", "cache-control", "x-content-type-options", "allow"];
    const grpc = ["grpc-timeout", "grpc-status-details-bin", "grpc-retry-pushback-ms"];
    const usual = [...grpc, "retry-after", "x-headgate-reason"];
    for (const name of [...names, ...page, ...others, ...usual]) {
      expect([name, takes(pattern, name)]).toEqual([name, true]);
    }
    for (const name of ["authorization", "cookie", "host", "x-user", ":path", "x-forwarded-for"]) {
      expect([name, takes(pattern, name)]).toEqual([name, false]);
    }
    expect(pattern).toHaveLength(107);
    expect(mutableHeaderPattern([...names, "xyzz"], setByRooms)).toBeUndefined();
  });

  it("takes signs in names for what they are", () => {
    const pattern = mutableHeaderPattern(["x-a.b"]);
    expect(takes(pattern, "x-a.b")).toBe(true);
    expect(takes(pattern, "x-acb")).toBe(false);
  });

  it("is not there where Envoy would refuse it for its length", () => {
    const names = ["x-request-priority", "x-deadline-ms"];
    expect(mutableHeaderPattern([...names, "y".repeat(17)])).toHaveLength(104);
    expect(mutableHeaderPattern([...names, "y".repeat(18)])).toBeUndefined();
  });
});
