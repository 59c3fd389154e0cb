import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isServiceError } from "../../../../src/core/base/errors.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import type { Decider } from "../../../../src/decide/rate-limit/decider.js";
import { descriptorCountMax, entryCountMax } from "../../../../src/decide/rate-limit/query.js";
import {
  RateLimitRequestSchema,
  type RateLimitResponse,
  RateLimitResponse_Code,
  RateLimitResponse_RateLimit_Unit,
  RateLimitResponseSchema,
} from "../../../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import { RateLimitUnit } from "../../../../src/gen/envoy/type/v3/ratelimit_unit_pb.js";
import { createRateLimitService } from "../../../../src/rpc/rls/rls.js";
import type { CallContext } from "../../../../src/wire/grpc/service.js";
import { createTestDecider } from "../../../support/decider.js";
import { plainExtras } from "../../../support/extras.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { testLimit, testPolicy } from "../../../support/policies.js";
import { rawRequest } from "../../../support/raw-field.js";
import { propertyRuns } from "../../../support/seeds.js";
import { answerOf } from "../../../support/unary.js";

type RequestShape = MessageInitShape<typeof RateLimitRequestSchema>;

const policy = testPolicy([
  { path: ["user"], effect: [testLimit(3)] },
  {
    path: ["team"],
    effect: [
      testLimit(10, { name: "pace", unit: "second", unitMultiplier: 10, periodUs: 10_000_000 }),
    ],
  },
  { path: ["guest"], effect: { kind: "unlimited" } },
]);

function createService({ isShadow = false }: { readonly isShadow?: boolean } = {}) {
  const clock = new FakeClock();
  const counters = new DecisionCounters();
  const policies = { current: policy };
  const decider = createTestDecider({
    policies: { current: () => policies.current },
    clock,
    counters,
  });
  const deadlines: number[] = [];
  const preparedCount = { value: 0 };
  const watched = {
    prepare: (...[query, isKept]: Parameters<Decider["prepare"]>) => {
      preparedCount.value += 1;
      return decider.prepare(query, isKept);
    },
    isCurrent: (...[prepared]: Parameters<Decider["isCurrent"]>) => decider.isCurrent(prepared),
    rehydrate: decider.rehydrate,
    ask: (...[prepared, call]: Parameters<Decider["ask"]>) => {
      deadlines.push(call.deadlineMs);
      decider.ask(prepared, call);
    },
  };
  const service = createRateLimitService({
    decider: watched,
    clock,
    random: new FakeRandom(),
    counters,
    extras: plainExtras,
    isShadow,
  });
  const [method] = service.methods;
  if (method?.kind !== "unary") throw new Error("ShouldRateLimit is unary");
  const { handle } = method;
  const send = async (bytes: Uint8Array, call = callWithout): Promise<RateLimitResponse> => {
    const answer = answerOf(handle, bytes, call);
    // A refused request never reaches the store, and its rejection is the caller's to see.
    answer.catch(() => {});
    clock.runTurns();
    return fromBinary(RateLimitResponseSchema, await answer);
  };
  const ask = (shape: RequestShape, call?: CallContext): Promise<RateLimitResponse> =>
    send(toBinary(RateLimitRequestSchema, create(RateLimitRequestSchema, shape)), call);
  return { clock, counters, service, deadlines, preparedCount, policies, send, ask };
}

const callWithout: CallContext = {
  deadlineMs: Number.POSITIVE_INFINITY,
  metadata: () => undefined,
};

function user(name: string, fields: Record<string, unknown> = {}) {
  return { entries: [{ key: "user", value: name }], ...fields };
}

function withTimeout(text: string, deadlineMs = Number.POSITIVE_INFINITY): CallContext {
  return {
    deadlineMs,
    metadata: (name) => (name === "x-envoy-expected-rq-timeout-ms" ? text : undefined),
  };
}

describe("createRateLimitService()", () => {
  it("is Envoy's service with its one method", () => {
    const { service } = createService();
    expect(service.name).toBe("envoy.service.ratelimit.v3.RateLimitService");
    expect(service.methods.map(({ kind, name }) => [kind, name])).toEqual([
      ["unary", "ShouldRateLimit"],
    ]);
  });

  it("answers with one status a descriptor, in the request's order", async () => {
    const { ask } = createService();
    const response = await ask({
      domain: "shop",
      descriptors: [
        user("a"),
        { entries: [{ key: "nobody", value: "" }] },
        { entries: [{ key: "team", value: "x" }] },
        { entries: [{ key: "guest", value: "" }] },
      ],
    });
    expect(response.overallCode).toBe(RateLimitResponse_Code.OK);
    expect(response.statuses).toMatchObject([
      {
        code: RateLimitResponse_Code.OK,
        currentLimit: {
          name: "",
          requestsPerUnit: 3,
          unit: RateLimitResponse_RateLimit_Unit.MINUTE,
        },
        limitRemaining: 2,
        durationUntilReset: { seconds: 20n, nanos: 0 },
      },
      { code: RateLimitResponse_Code.OK, limitRemaining: 0 },
      {
        currentLimit: {
          name: "pace",
          unit: RateLimitResponse_RateLimit_Unit.SECOND,
          unitMultiplier: 10,
        },
        limitRemaining: 9,
      },
      { code: RateLimitResponse_Code.OK, limitRemaining: 4_294_967_295 },
    ]);
    expect(response.statuses[0]?.currentLimit?.unitMultiplier).toBeUndefined();
    expect(response.statuses[1]?.currentLimit).toBeUndefined();
    expect(response.statuses[1]?.durationUntilReset).toBeUndefined();
  });

  it("sends waits in whole seconds, rounded up, since Envoy cuts them", async () => {
    const { ask, clock } = createService();
    await ask({ domain: "shop", descriptors: [user("a", { hitsAddend: 3n })] });
    clock.advance(100);
    const response = await ask({ domain: "shop", descriptors: [user("a")] });
    expect(response.overallCode).toBe(RateLimitResponse_Code.OVER_LIMIT);
    // 19.9 s remain.
    expect(response.statuses[0]?.durationUntilReset).toMatchObject({ seconds: 20n, nanos: 0 });
  });

  it.each([
    { what: "the request's hits", hitsAddend: 2, own: undefined, isRefund: false, left: 1 },
    { what: "one hit where the request says 0", hitsAddend: 0, own: undefined, left: 2 },
    { what: "the descriptor's own hits", hitsAddend: 2, own: 3n, isRefund: false, left: 0 },
    { what: "nothing for 0 hits of its own", hitsAddend: 2, own: 0n, isRefund: false, left: 3 },
    { what: "nothing for a refund", hitsAddend: 2, own: 1n, isRefund: true, left: 3 },
  ])("charges $what", async ({ hitsAddend, own, isRefund, left }) => {
    const { ask } = createService();
    const descriptor = user("a", {
      isNegativeHits: isRefund ?? false,
      ...(own === undefined ? {} : { hitsAddend: own }),
    });
    const response = await ask({ domain: "shop", hitsAddend, descriptors: [descriptor] });
    expect(response.statuses[0]?.limitRemaining).toBe(left);
  });

  it("decides by the limit that a request carries", async () => {
    const { ask } = createService();
    const limit = { requestsPerUnit: 7, unit: RateLimitUnit.HOUR, unitMultiplier: 2 };
    const response = await ask({ domain: "shop", descriptors: [user("a", { limit })] });
    expect(response.statuses[0]).toMatchObject({
      currentLimit: {
        requestsPerUnit: 7,
        unit: RateLimitResponse_RateLimit_Unit.HOUR,
        unitMultiplier: 2,
      },
      limitRemaining: 6,
    });
  });

  it.each([undefined, 0])("takes a unit multiplier of %s for 1", async (unitMultiplier) => {
    const { ask } = createService();
    const limit = {
      requestsPerUnit: 7,
      unit: RateLimitUnit.HOUR,
      ...(unitMultiplier === undefined ? {} : { unitMultiplier }),
    };
    const response = await ask({ domain: "shop", descriptors: [user("a", { limit })] });
    expect(response.statuses[0]?.currentLimit?.unitMultiplier).toBeUndefined();
  });
});

describe("the caller's deadline", () => {
  const question = { domain: "shop", descriptors: [user("a")] };

  it.each([
    { what: "the metadata's time from arrival", call: withTimeout("20"), expected: 1_020 },
    { what: "the transport's when it is earlier", call: withTimeout("20", 1_005), expected: 1_005 },
    { what: "the metadata's when it is earlier", call: withTimeout("20", 1_500), expected: 1_020 },
    ...["", "0", "-5", "20ms", "1e3", "12.5", "9999999999", " 20"].map((text) => ({
      what: `none for "${text}"`,
      call: withTimeout(text),
      expected: Number.POSITIVE_INFINITY,
    })),
  ])("is $what", async ({ call, expected }) => {
    const { ask, deadlines } = createService();
    await ask(question, call);
    expect(deadlines).toEqual([expected]);
  });
});

const secret = "caller-value-73";

function override(fields: Record<string, unknown>) {
  return {
    domain: "shop",
    descriptors: [user(secret, { limit: { requestsPerUnit: 1, ...fields } })],
  };
}

const refusals: readonly { readonly field: string; readonly request: RequestShape }[] = [
  { field: "domain is empty", request: { domain: "", descriptors: [user(secret)] } },
  { field: "descriptors is empty", request: { domain: "shop" } },
  {
    field: "descriptors[0].entries[1].key is empty",
    request: {
      domain: "shop",
      descriptors: [{ entries: [{ key: "user", value: secret }, { value: secret }] }],
    },
  },
  { field: "descriptors[0].limit.unit is not one of", request: override({}) },
  { field: "descriptors[0].limit.unit is not one of", request: override({ unit: 7 }) },
];

describe("a request that breaks the contract", () => {
  it.each(refusals)("is refused by name: $field", async ({ field, request }) => {
    const { ask, counters } = createService();
    const thrown: unknown = await ask(request).catch((error: unknown) => error);
    expect(thrown).toMatchObject({ code: "REQUEST_INVALID" });
    expect(String(thrown)).toContain(field);
    expect(String(thrown)).not.toContain(secret);
    expect(counters.failedByCode.get("REQUEST_INVALID")).toBe(1);
  });
});

describe("what a caller of Envoy may choose", () => {
  const overLimit = RateLimitResponse_Code.OVER_LIMIT;
  const codesOf = ({ statuses }: RateLimitResponse) => statuses.map(({ code }) => code);

  it.each([
    ["is longer than a header may be", Buffer.alloc(70_000, "é")],
    ["is no UTF-8", Buffer.of(0x61, 0xff)],
    ["is long and no UTF-8", Buffer.alloc(70_000, 0xff)],
  ])("a value that %s has its limit, and those beside it theirs", async (_, value) => {
    const { send } = createService();
    const other = Buffer.from(value);
    other[other.length - 1] = 0xfe;
    const plain = bytesOf({ domain: "shop", descriptors: [user("a")] });
    for (const one of [value, other]) {
      for (const [expected, left] of [
        [RateLimitResponse_Code.OK, 2],
        [RateLimitResponse_Code.OK, 1],
        [RateLimitResponse_Code.OK, 0],
        [overLimit, 0],
      ]) {
        const response = await send(rawRequest("shop", "user", one));
        expect(response.statuses[0]).toMatchObject({ code: expected, limitRemaining: left });
      }
    }
    const beside = Buffer.concat([plain, rawRequest("shop", "user", value)]);
    const response = await send(beside);
    expect(response.overallCode).toBe(overLimit);
    expect(codesOf(response)).toEqual([RateLimitResponse_Code.OK, overLimit]);
  });

  it("hits of any number are as many as can be counted", async () => {
    const { ask } = createService();
    const hitsAddend = 2n ** 64n - 1n;
    for (let i = 0; i < 2; i += 1) {
      const response = await ask({ domain: "shop", descriptors: [user("a", { hitsAddend })] });
      expect(response.overallCode).toBe(overLimit);
    }
  });

  it("a descriptor without entries, or with more than any rule, meets no limit", async () => {
    const { ask } = createService();
    const entries = Array(entryCountMax + 1).fill({ key: "user", value: "a" });
    const response = await ask({ domain: "shop", descriptors: [{}, { entries }, user("a")] });
    expect(response.overallCode).toBe(RateLimitResponse_Code.OK);
    expect(response.statuses.map((status) => status.currentLimit?.requestsPerUnit)).toEqual([
      undefined,
      undefined,
      3,
    ]);
  });

  it("a carried limit's period ends at ten years", async () => {
    const { ask } = createService();
    const limit = { requestsPerUnit: 7, unit: RateLimitUnit.YEAR, unitMultiplier: 11 };
    const response = await ask({ domain: "shop", descriptors: [user("a", { limit })] });
    expect(response.statuses[0]?.currentLimit).toMatchObject({ unitMultiplier: 10 });
  });

  it("more descriptors than are counted are refused as if they were over", async () => {
    const { ask, counters } = createService();
    const most = Array(descriptorCountMax).fill(user("a", { hitsAddend: 0n }));
    expect(await ask({ domain: "shop", descriptors: most })).toMatchObject({
      overallCode: RateLimitResponse_Code.OK,
    });
    expect(await ask({ domain: "shop", descriptors: [...most, user("a")] })).toMatchObject({
      overallCode: overLimit,
      statuses: [],
    });
    expect(counters.failedByCode.get("REQUEST_TOO_LARGE")).toBe(1);
  });

  it("nothing is refused in shadow mode, also what is not counted", async () => {
    const { ask } = createService({ isShadow: true });
    const descriptors = Array(descriptorCountMax + 1).fill(user("a"));
    expect(await ask({ domain: "shop", descriptors })).toMatchObject({
      overallCode: RateLimitResponse_Code.OK,
    });
  });
});

function bytesOf(shape: RequestShape): Uint8Array {
  return toBinary(RateLimitRequestSchema, create(RateLimitRequestSchema, shape));
}

describe("bytes that are no request", () => {
  it.each([
    { what: "a cut message", bytes: [0x0a, 0x7f, 0x61] },
    { what: "a wrong wire type", bytes: [0x0f] },
    { what: "an endless varint", bytes: Array(11).fill(0xff) },
  ])("are refused: $what", async ({ bytes }) => {
    const { send } = createService();
    await expect(send(Uint8Array.from(bytes))).rejects.toMatchObject({ code: "REQUEST_INVALID" });
  });

  it("never make anything but an answer or REQUEST_INVALID", async () => {
    const { send } = createService();
    const valid = toBinary(
      RateLimitRequestSchema,
      create(RateLimitRequestSchema, {
        domain: "shop",
        descriptors: [user("a", { limit: { requestsPerUnit: 1, unit: RateLimitUnit.HOUR } })],
      }),
    );
    const mutated = fc
      .array(fc.tuple(fc.nat(valid.length - 1), fc.nat(255)), { minLength: 1, maxLength: 8 })
      .map((edits) => {
        const bytes = Uint8Array.from(valid);
        for (const [at, byte] of edits) bytes[at] = byte;
        return bytes;
      });
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.uint8Array({ maxLength: 200 }), mutated), async (bytes) => {
        try {
          await send(bytes);
        } catch (thrown) {
          expect(isServiceError(thrown) && thrown.code).toBe("REQUEST_INVALID");
        }
      }),
      propertyRuns(300),
    );
  });

  it("may hold unknown fields, which are left out of account", async () => {
    const { send } = createService();
    const known = toBinary(
      RateLimitRequestSchema,
      create(RateLimitRequestSchema, { domain: "shop", descriptors: [user("a")] }),
    );
    // Field 1000, a varint.
    const response = await send(Uint8Array.from([...known, 0xc0, 0x3e, 0x05]));
    expect(response.overallCode).toBe(RateLimitResponse_Code.OK);
  });
});

describe("createRateLimitService(), asked the same again", () => {
  const askOf = (name: string, hitsAddend = 0): RequestShape => ({
    domain: "shop",
    hitsAddend,
    descriptors: [{ entries: [{ key: "user", value: name }] }],
  });

  const tenEach = testPolicy([{ path: ["user"], effect: [testLimit(10)] }], "ten");

  it("matches a request once, whatever its hits are", async () => {
    const { ask, policies, preparedCount } = createService();
    policies.current = tenEach;
    const remaining: (number | undefined)[] = [];
    for (const hits of [0, 1, 3, 2]) {
      remaining.push((await ask(askOf("ann", hits))).statuses[0]?.limitRemaining);
    }
    expect(remaining).toEqual([9, 8, 5, 3]);
    expect(preparedCount.value).toBe(1);
    await ask(askOf("bob"));
    expect(preparedCount.value).toBe(2);
  });

  it("takes a descriptor's own hits, looks and refunds as they come", async () => {
    const { ask, policies, preparedCount } = createService();
    policies.current = tenEach;
    const entries = [{ key: "user", value: "ann" }];
    const remaining: (number | undefined)[] = [];
    for (const hitsAddend of [4n, 0n, 3n]) {
      const answer = await ask({ domain: "shop", descriptors: [{ entries, hitsAddend }] });
      remaining.push(answer.statuses[0]?.limitRemaining);
    }
    const refund = { entries, hitsAddend: 5n, isNegativeHits: true };
    const answer = await ask({ domain: "shop", descriptors: [refund] });
    expect([...remaining, answer.statuses[0]?.limitRemaining]).toEqual([6, 6, 3, 8]);
    // No hits take fewer bytes than some, and a refund is another request.
    expect(preparedCount.value).toBe(3);
  });

  it("matches anew under a new policy", async () => {
    const { ask, policies, preparedCount } = createService();
    policies.current = tenEach;
    expect((await ask(askOf("ann"))).statuses[0]?.currentLimit?.requestsPerUnit).toBe(10);
    policies.current = testPolicy([{ path: ["user"], effect: [testLimit(3)] }], "v2");
    expect((await ask(askOf("ann"))).statuses[0]?.currentLimit?.requestsPerUnit).toBe(3);
    expect(preparedCount.value).toBe(2);
  });
});
