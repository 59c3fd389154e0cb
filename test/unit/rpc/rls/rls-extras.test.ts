import { create, fromBinary, toBinary, toJson } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import type { RuleDisclosure } from "../../../../src/core/limits/limit.js";
import { defaultDisclosure } from "../../../../src/core/limits/reported-rule.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import {
  RateLimitRequestSchema,
  type RateLimitResponse,
  RateLimitResponse_Code,
  RateLimitResponseSchema,
} from "../../../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import { RateLimitUnit } from "../../../../src/gen/envoy/type/v3/ratelimit_unit_pb.js";
import { answerJson } from "../../../../src/rpc/rls/json.js";
import { createRateLimitService } from "../../../../src/rpc/rls/rls.js";
import { ResponseExtras, type ResponseExtrasOptions } from "../../../../src/rpc/rls/rls-extras.js";
import { createTestDecider } from "../../../support/decider.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { type TestRule, testLimit, testPolicy } from "../../../support/policies.js";
import { answerOf } from "../../../support/unary.js";

const headerNames = { limit: "l", remaining: "r", reset: "t" };
const call = { deadlineMs: Number.POSITIVE_INFINITY, metadata: () => undefined };

function serviceFor(rules: readonly TestRule[], options: Partial<ResponseExtrasOptions>) {
  const clock = new FakeClock();
  const random = new FakeRandom();
  const counters = new DecisionCounters();
  const policy = testPolicy(rules);
  const decider = createTestDecider({ policies: { current: () => policy }, clock, counters });
  const extras = new ResponseExtras({
    headerNames: undefined,
    tellsWait: false,
    hasDynamicMetadata: false,
    ...options,
  });
  const parts = { decider, clock, random, counters, extras, isShadow: false };
  const [method] = createRateLimitService(parts).methods;
  if (method?.kind !== "unary") throw new Error("ShouldRateLimit is unary");
  const ask = async (shape: Shape): Promise<RateLimitResponse> => {
    const bytes = toBinary(RateLimitRequestSchema, create(RateLimitRequestSchema, shape));
    const answer = answerOf(method.handle, bytes, call);
    // What a transport does with its buffer once the handler has returned.
    bytes.fill(0);
    clock.runTurns();
    await settlePromises();
    return fromBinary(RateLimitResponseSchema, await answer);
  };
  const askJson = async (body: string): Promise<unknown> => {
    const answer = answerJson(body, { decider, counters, extras });
    clock.runTurns();
    await settlePromises();
    return JSON.parse((await answer).body);
  };
  return { ask, askJson };
}

type Shape = Parameters<typeof create<typeof RateLimitRequestSchema>>[1];

function asking(...keys: readonly string[]): Shape {
  const descriptors = keys.map((key) => ({ entries: [{ key, value: "v" }] }));
  return { domain: "shop", descriptors };
}

function headersOf({ responseHeadersToAdd }: RateLimitResponse): readonly string[] {
  return responseHeadersToAdd.map(({ key, value }) => `${key}: ${value}`);
}

describe("ResponseExtras", () => {
  const user: TestRule = { path: ["user"], effect: [testLimit(10)] };

  it("adds nothing to plain answers", async () => {
    const answer = await serviceFor([user], {}).ask(asking("user"));
    expect(headersOf(answer)).toEqual([]);
    expect([answer.dynamicMetadata, answer.rawBody.length]).toEqual([undefined, 0]);
    expect(answer.statuses).toMatchObject([{ limitRemaining: 9 }]);
  });

  it("tells who is refused when to come back, where that is wanted, and nobody else", async () => {
    const { ask } = serviceFor([{ path: ["user"], effect: [testLimit(1)] }], { tellsWait: true });
    expect(headersOf(await ask(asking("user")))).toEqual([]);
    expect(headersOf(await ask(asking("user")))).toEqual(["retry-after: 60"]);
    const quiet: TestRule = { path: ["user"], effect: [testLimit(0)], fields: { headers: "none" } };
    const other = serviceFor([quiet], { tellsWait: true });
    expect(headersOf(await other.ask(asking("user")))).toEqual([]);
  });

  it("tells the upstream of what passes over a limit, or from a ratio on", async () => {
    const annotating = testLimit(4, {
      role: "shadow",
      over: { kind: "annotate", headers: [{ name: "x-over", value: "yes" }] },
      warn: { atRatio: 0.75, headers: [{ name: "x-near", value: "yes" }] },
    });
    const { ask, askJson } = serviceFor([{ path: ["user"], effect: [annotating] }], {});
    const added: string[] = [];
    for (let i = 0; i < 5; i += 1) {
      const { requestHeadersToAdd, overallCode } = await ask(asking("user"));
      expect(overallCode).toBe(RateLimitResponse_Code.OK);
      added.push(requestHeadersToAdd.map(({ key }) => key).join(" "));
    }
    expect(added).toEqual(["", "", "x-near", "x-near", "x-near x-over"]);
    const body = JSON.stringify({
      domain: "shop",
      descriptors: [{ entries: [{ key: "user", value: "v" }] }],
    });
    expect(await askJson(body)).toMatchObject({
      requestHeadersToAdd: [{ key: "x-near" }, { key: "x-over" }],
    });
  });

  it("names the cluster that a request over a limit falls back to", async () => {
    const to = { kind: "cluster", cluster: "cheap" } as const;
    const falling = testLimit(1, { role: "shadow", over: { kind: "fallback", to } });
    const { ask } = serviceFor([{ path: ["user"], effect: [falling] }], {});
    expect((await ask(asking("user"))).requestHeadersToAdd).toEqual([]);
    expect((await ask(asking("user"))).requestHeadersToAdd).toMatchObject([
      { key: "x-headgate-fallback", value: "cheap" },
    ]);
  });

  it("adds the process's headers behind the statuses", async () => {
    const answer = await serviceFor([user], { headerNames }).ask(asking("user"));
    expect(headersOf(answer)).toEqual(["l: 10", "r: 9", "t: 6"]);
    expect(answer.statuses).toMatchObject([{ limitRemaining: 9 }]);
  });

  it("adds a rule's headers and the body of its refusals, whatever the process says", async () => {
    const fields = { headers: "ietf", body: "problem+json" } as const;
    const { ask } = serviceFor([{ path: ["user"], effect: [testLimit(1)], fields }], {});
    const passed = await ask(asking("user"));
    expect(headersOf(passed)).toEqual([
      'ratelimit-policy: "user";q=1;w=60',
      'ratelimit: "user";r=0;t=60',
    ]);
    expect(passed.rawBody.length).toBe(0);
    const refused = await ask(asking("user"));
    expect(headersOf(refused)).toContain("content-type: application/problem+json");
    expect(JSON.parse(Buffer.from(refused.rawBody).toString())).toMatchObject({ status: 429 });
  });

  const tagged: readonly TestRule[] = [
    { ...user, fields: { metadata: { tier: "a", deep: { x: 1 } } } },
    { path: ["plan"], effect: [testLimit(5)], fields: { metadata: { tier: "b", deep: { y: 2 } } } },
    { path: ["full"], effect: [testLimit(0)], fields: { metadata: { full: true } } },
  ];

  it("repeats what was asked, with what the rules that let it pass want to say", async () => {
    const { ask } = serviceFor(tagged, { hasDynamicMetadata: true });
    const limit = { requestsPerUnit: 3, unit: RateLimitUnit.DAY };
    const answer = await ask({
      domain: "shop",
      hitsAddend: 2,
      descriptors: [
        { entries: [{ key: "user", value: "ann" }] },
        { entries: [{ key: "plan", value: "p" }], hitsAddend: 0n },
        { entries: [{ key: "full", value: "f" }] },
        { entries: [{ key: "own", value: "o" }], limit },
      ],
    });
    expect(answer.dynamicMetadata).toEqual({
      domain: "shop",
      descriptors: [
        { entries: ["user=ann"] },
        { entries: ["plan=p"], hitsAddend: 0 },
        { entries: ["full=f"] },
        { entries: ["own=o"], limit: "requests_per_unit:3 unit:DAY" },
      ],
      hitsAddend: 2,
      metadata: { tier: "a", deep: { x: 1, y: 2 } },
      // It was refused, so the rule is named beside what was asked.
      rule: "full",
    });
  });

  it("leaves out metadata that no rule gives", async () => {
    const { ask } = serviceFor([user], { hasDynamicMetadata: true });
    expect((await ask(asking("user"))).dynamicMetadata).toEqual({
      domain: "shop",
      descriptors: [{ entries: ["user=v"] }],
    });
  });

  const full: TestRule = { path: ["user"], effect: [testLimit(0, { name: "none" })] };
  const disclosure = (fields: Partial<RuleDisclosure>): Pick<TestRule, "fields"> => ({
    fields: { disclosure: { ...defaultDisclosure, ...fields } },
  });

  it("names the rule of a refusal to Envoy, and to no caller", async () => {
    const refused = await serviceFor([full], {}).ask(asking("user"));
    expect(refused.overallCode).toBe(RateLimitResponse_Code.OVER_LIMIT);
    expect(refused.dynamicMetadata).toEqual({ domain: "shop", rule: "user", limit: "none" });
    expect(headersOf(refused)).toEqual([]);
  });

  it.each([
    { name: "header alone", fields: { header: true, metadata: false } },
    { name: "metadata alone", fields: {} },
    { name: "both", fields: { header: true } },
    { name: "neither", fields: { metadata: false } },
  ])("names it where the policy says: $name", async ({ fields }) => {
    const { header, metadata } = { ...defaultDisclosure, ...fields };
    // The same with and without headers of the process's own, in bytes and in JSON.
    for (const names of [undefined, headerNames]) {
      const { ask, askJson } = serviceFor([{ ...full, ...disclosure(fields) }], {
        headerNames: names,
      });
      const refused = await ask(asking("user"));
      expect(headersOf(refused).filter((one) => one.startsWith("x-"))).toEqual(
        header ? ["x-headgate-rule: user/none"] : [],
      );
      expect(refused.dynamicMetadata?.["rule"]).toBe(metadata ? "user" : undefined);
      const body = { domain: "shop", descriptors: [{ entries: [{ key: "user", value: "v" }] }] };
      const json = await askJson(JSON.stringify(body));
      expect(json).toEqual(toJson(RateLimitResponseSchema, refused));
    }
  });

  it("names nothing when it lets pass, in shadow mode, or where no rule refuses", async () => {
    const passed = await serviceFor([user], {}).ask(asking("user"));
    const shadow: TestRule = { path: ["user"], effect: [testLimit(0, { role: "shadow" })] };
    const shadowed = await serviceFor([shadow], {}).ask(asking("user"));
    const limit = { requestsPerUnit: 0, unit: RateLimitUnit.DAY };
    const carried = await serviceFor([user], {}).ask({
      domain: "shop",
      descriptors: [{ entries: [{ key: "user", value: "v" }], limit }],
    });
    expect(carried.overallCode).toBe(RateLimitResponse_Code.OVER_LIMIT);
    for (const answer of [passed, shadowed, carried]) {
      expect([headersOf(answer), answer.dynamicMetadata]).toEqual([[], undefined]);
    }
  });

  it("answers JSON with the same fields", async () => {
    const { askJson } = serviceFor(tagged, { headerNames, hasDynamicMetadata: true });
    const body = JSON.stringify({
      domain: "shop",
      descriptors: [{ entries: [{ key: "user", value: "a" }] }],
    });
    expect(await askJson(body)).toMatchObject({
      overallCode: "OK",
      responseHeadersToAdd: [{ key: "l", value: "10" }, { key: "r" }, { key: "t" }],
      dynamicMetadata: { domain: "shop", metadata: { tier: "a" } },
    });
  });
});
