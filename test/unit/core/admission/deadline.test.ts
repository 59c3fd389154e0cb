import { describe, expect, it } from "vitest";
import {
  budgetHeaders,
  isTooLittle,
  requestDeadline,
} from "../../../../src/core/admission/deadline.js";

const own = "x-time-left";

function read(headers: Readonly<Record<string, string>>, header: string | undefined = own) {
  return requestDeadline(new Map(Object.entries(headers)), { header });
}

describe("readDeadline()", () => {
  it.each([
    { headers: { "grpc-timeout": "2S" }, remainingMs: 2_000 },
    { headers: { "grpc-timeout": "1500u" }, remainingMs: 1.5 },
    { headers: { "x-envoy-expected-rq-timeout-ms": "250" }, remainingMs: 250 },
    { headers: { [own]: "40" }, remainingMs: 40 },
    { headers: { [own]: "0" }, remainingMs: 0 },
  ])("reads $remainingMs ms of $headers", ({ headers, remainingMs }) => {
    expect(read(headers)).toEqual({ remainingMs, statedIn: Object.keys(headers) });
  });

  it.each([
    { expected: "300", grpc: "200m", ownMs: "100", remainingMs: 100 },
    { expected: "300", grpc: "50m", ownMs: "100", remainingMs: 50 },
    { expected: "30", grpc: "200m", ownMs: "100", remainingMs: 30 },
  ])("takes the least of $grpc, $expected and $ownMs", ({ expected, grpc, ownMs, remainingMs }) => {
    const names = ["grpc-timeout", "x-envoy-expected-rq-timeout-ms", own];
    const headers = Object.fromEntries(names.map((name, i) => [name, [grpc, expected, ownMs][i]]));
    const read = requestDeadline(new Map(Object.entries(headers).map(([k, v]) => [k, v ?? ""])), {
      header: own,
    });
    expect(read).toEqual({ remainingMs, statedIn: names });
  });

  it.each([
    {},
    { "grpc-timeout": "soon" },
    { "grpc-timeout": "" },
    { "x-envoy-expected-rq-timeout-ms": "-1" },
    { "x-envoy-expected-rq-timeout-ms": "1e3" },
    { "x-envoy-expected-rq-timeout-ms": "5,900" },
    { [own]: "1000000000" },
    { [own]: "1.5" },
  ])("knows no time by %j", (headers) => {
    expect(read(headers)).toBeUndefined();
  });

  it("takes Envoy's 0 for no timeout, as Envoy means it", () => {
    expect(read({ "x-envoy-expected-rq-timeout-ms": "0" })).toBeUndefined();
  });

  it("looks at no header of choice where there is none", () => {
    expect(requestDeadline(new Map([[own, "40"]]), { header: undefined })).toBeUndefined();
  });

  it("counts a header once that is chosen although it is known", () => {
    const headers = new Map([["x-envoy-expected-rq-timeout-ms", "40"]]);
    expect(requestDeadline(headers, { header: "x-envoy-expected-rq-timeout-ms" })).toEqual({
      remainingMs: 40,
      statedIn: ["x-envoy-expected-rq-timeout-ms"],
    });
  });
});

describe("isTooLittle()", () => {
  it.each([
    { remainingMs: 0, is: true },
    { remainingMs: 4.999, is: true },
    { remainingMs: 5, is: false },
  ])("is $is with $remainingMs ms left of at least 5", ({ remainingMs, is }) => {
    expect(isTooLittle({ minRemainingMs: 5 }, { remainingMs, statedIn: [] })).toBe(is);
  });
});

describe("budgetHeaders()", () => {
  const budget = (statedIn: readonly string[], question: object = {}) =>
    budgetHeaders(
      { marginMs: 10 },
      {
        deadline: { remainingMs: 1_000, statedIn },
        waitedMs: 200.4,
        isGrpc: false,
        ...question,
      },
    ).map(({ name, value }) => `${name}: ${value}`);

  it("passes on what is left less the margin, rounded down", () => {
    expect(budget([own])).toEqual([`${own}: 789`]);
    expect(budget(["x-envoy-expected-rq-timeout-ms"])).toEqual([
      "x-envoy-expected-rq-timeout-ms: 789",
    ]);
  });

  it("tells a gRPC upstream in its own way, whoever stated the time", () => {
    expect(budget(["grpc-timeout"], { isGrpc: true })).toEqual(["grpc-timeout: 789m"]);
    expect(budget([own], { isGrpc: true })).toEqual(["grpc-timeout: 789m", `${own}: 789`]);
  });

  it("leaves no header with an older time", () => {
    expect(budget(["grpc-timeout", "x-envoy-expected-rq-timeout-ms", own])).toEqual([
      "grpc-timeout: 789m",
      "x-envoy-expected-rq-timeout-ms: 789",
      `${own}: 789`,
    ]);
  });

  it("never says that nothing is left, which some take for no limit", () => {
    expect(budget(["grpc-timeout", own], { waitedMs: 995 })).toEqual([
      "grpc-timeout: 1m",
      `${own}: 1`,
    ]);
  });
});
