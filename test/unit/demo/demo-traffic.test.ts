import { describe, expect, it } from "vitest";
import {
  type Answer,
  type Caller,
  demoCallers,
  jsonQuestion,
  readDecisionAnswer,
  readEnvoyAnswer,
  readLimitField,
  Traffic,
  type WireAnswer,
} from "../../../src/demo/demo-traffic.js";
import { FakeClock } from "../../support/fake-clock.js";

function wire(status: number, headers: Record<string, string>, body = ""): WireAnswer {
  return { kind: "answer", status, headers, body };
}

describe("readLimitField()", () => {
  const cases: readonly [what: string, field: string | undefined, limit: unknown][] = [
    [
      "takes the limit with the first number, by name",
      '5, 1800;w=60;name="per-address", 5;w=10;name="free-pace"',
      { name: "free-pace", hits: 5, periodSeconds: 10 },
    ],
    ["takes one without a name", "7, 7;w=3600", { hits: 7, periodSeconds: 3_600 }],
    ["takes the first of two alike", "7, 7;w=1, 7;w=2", { hits: 7, periodSeconds: 1 }],
    ["finds nothing where no limit has the number", "5, 6;w=1", undefined],
    ["finds nothing in a number alone", "5", undefined],
    ["finds nothing in an absent field", undefined, undefined],
  ];
  it.each(cases)("%s", (_what, field, limit) => {
    expect(readLimitField(field)).toEqual(limit);
  });
});

describe("readEnvoyAnswer()", () => {
  const limitField = '5, 5;w=10;name="free-pace"';
  const cases: readonly [what: string, answer: WireAnswer, read: Answer][] = [
    [
      "tells a request that a limit let in",
      wire(200, { "x-ratelimit-limit": limitField }),
      { kind: "allowed", isDecided: true },
    ],
    ["tells one that no limit was asked for", wire(200, {}), { kind: "allowed", isDecided: false }],
    [
      "tells the limit and the wait of a refusal",
      wire(429, { "x-ratelimit-limit": limitField, "retry-after": "2", "x-ratelimit-reset": "3" }),
      {
        kind: "refused",
        limit: { name: "free-pace", hits: 5, periodSeconds: 10 },
        waitSeconds: 2,
      },
    ],
    [
      "takes the reset when there is no retry-after",
      wire(429, { "x-ratelimit-reset": "3" }),
      { kind: "refused", waitSeconds: 3 },
    ],
    ["tells a bare refusal", wire(429, { "retry-after": "soon" }), { kind: "refused" }],
    ["tells other statuses", wire(503, {}), { kind: "failed", words: "status 503" }],
    ["tells a broken connection", { kind: "broken", words: "x" }, { kind: "failed", words: "x" }],
  ];
  it.each(cases)("%s", (_what, answer, read) => {
    expect(readEnvoyAnswer(answer)).toEqual(read);
  });
});

describe("readJsonAnswer()", () => {
  const over = {
    code: "OVER_LIMIT",
    currentLimit: { name: "free-pace", requestsPerUnit: 5, unit: "SECOND", unitMultiplier: 10 },
    durationUntilReset: "1.2s",
  };
  const limit = { name: "free-pace", hits: 5, periodSeconds: 10 };
  const cases: readonly [what: string, answer: WireAnswer, read: Answer][] = [
    ["tells a request that was let in", wire(200, {}), { kind: "allowed", isDecided: true }],
    [
      "tells the limit that is over, and rounds its wait up",
      wire(429, {}, JSON.stringify({ statuses: [{ code: "OK" }, over] })),
      { kind: "refused", limit, waitSeconds: 2 },
    ],
    [
      "takes a limit without a multiple or a name",
      wire(
        429,
        {},
        JSON.stringify({
          statuses: [{ code: "OVER_LIMIT", currentLimit: { requestsPerUnit: 1, unit: "HOUR" } }],
        }),
      ),
      { kind: "refused", limit: { hits: 1, periodSeconds: 3_600 } },
    ],
    ["tells a bare refusal", wire(429, {}, "no JSON"), { kind: "refused" }],
    ["tells other statuses", wire(500, {}), { kind: "failed", words: "status 500" }],
    ["tells a broken connection", { kind: "broken", words: "x" }, { kind: "failed", words: "x" }],
  ];
  it.each(cases)("%s", (_what, answer, read) => {
    expect(readDecisionAnswer(answer)).toEqual(read);
  });
});

describe("jsonQuestion()", () => {
  it("asks for a caller as the demo's Envoy does", () => {
    expect(JSON.parse(jsonQuestion({ name: "a", plan: "free" }))).toEqual({
      domain: "demo",
      descriptors: [
        {
          entries: [
            { key: "plan", value: "free" },
            { key: "user", value: "a" },
          ],
        },
      ],
    });
  });
});

describe("demoCallers", () => {
  it("go over their plan within five seconds, and only one of them", () => {
    const pace = { free: { hits: 5, perSecond: 0.5 }, partner: { hits: 40, perSecond: 20 } };
    const refused = demoCallers.filter(({ plan, everyMs }) => {
      const { hits, perSecond } = plan === "partner" ? pace.partner : pace.free;
      return 1 + 5_000 / everyMs > hits + 5 * perSecond;
    });
    expect(refused.map(({ name }) => name)).toEqual(["alice"]);
  });
});

describe("Traffic", () => {
  const caller: Caller = { name: "a", plan: "free", everyMs: 100 };

  /** Traffic whose answers the test gives by hand. */
  function startTraffic() {
    const clock = new FakeClock();
    const waiting: ((answer: Answer) => void)[] = [];
    const answers: Answer[] = [];
    const traffic = new Traffic({
      clock,
      ask: () => new Promise((resolve) => waiting.push(resolve)),
      onAnswer: (_caller, answer) => answers.push(answer),
    });
    traffic.start([caller]);
    const answerNext = async (): Promise<void> => {
      waiting.shift()?.({ kind: "allowed", isDecided: true });
      await Promise.resolve();
    };
    return { clock, waiting, answers, traffic, answerNext };
  }

  it("keeps a caller's pace from one sending to the next", async () => {
    const { clock, waiting, answerNext } = startTraffic();
    clock.advance(30);
    await answerNext();
    clock.advance(69);
    expect(waiting).toHaveLength(0);
    clock.advance(1);
    expect(waiting).toHaveLength(1);
  });

  it("sends no second request before the first is answered", async () => {
    const { clock, waiting, answerNext } = startTraffic();
    clock.advance(1_000);
    expect(waiting).toHaveLength(1);
    await answerNext();
    clock.advance(0);
    expect(waiting).toHaveLength(1);
  });

  it("sends and reports nothing after stop", async () => {
    const { clock, waiting, answers, traffic, answerNext } = startTraffic();
    await answerNext();
    traffic.stop();
    clock.advance(1_000);
    expect(waiting).toHaveLength(0);
    expect(answers).toHaveLength(1);
    expect(clock.timerCount).toBe(0);
  });

  it("drops an answer that comes after stop", async () => {
    const { clock, answers, traffic, answerNext } = startTraffic();
    traffic.stop();
    await answerNext();
    expect(answers).toEqual([]);
    expect(clock.timerCount).toBe(0);
  });
});
