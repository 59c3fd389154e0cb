import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { reportHoldMs } from "../../../../src/client/server/load-report.js";
import type { RequestPermit } from "../../../../src/client/server/request-permit.js";
import {
  createServerAdmission,
  type ServerAnswer,
} from "../../../../src/client/server/server-admission.js";
import type { ServerAdmissionOptions } from "../../../../src/client/server/server-options.js";
import { parseOrcaReport } from "../../../../src/core/admission/orca.js";
import { priorities } from "../../../../src/core/admission/priority.js";
import { type RefusalCause, refusalOf } from "../../../../src/core/admission/refusal.js";
import { retryAfterSeconds } from "../../../../src/core/admission/retry-after.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { metCount, propertyRuns } from "../../../support/seeds.js";
import { askAs, causeOf, permitOf, serverRequest } from "../../../support/server-admission.js";

function start(options: Partial<ServerAdmissionOptions> = {}) {
  const clock = new FakeClock();
  const random = new FakeRandom();
  const priority = { header: "x-request-priority" };
  const given = { name: "orders", maxInFlight: 10, priority, clock, random, ...options };
  return { clock, admission: createServerAdmission(given) };
}

describe("createServerAdmission()", () => {
  it("refuses classes from the lowest up as permits run out, and critical ones last", () => {
    const { admission } = start({ maxInFlight: 100 });
    const admitted = new Map(priorities.map((priority) => [priority, 0]));
    for (let i = 0; i < 100; i += 1) {
      for (const priority of priorities.toReversed()) {
        if (askAs(admission, priority).kind !== "admitted") continue;
        admitted.set(priority, (admitted.get(priority) ?? 0) + 1);
      }
    }
    const { inFlight, refused } = admission.snapshot();
    expect(inFlight).toBe(100);
    expect(admitted.get("critical")).toBeGreaterThan(admitted.get("high") ?? 0);
    expect(admitted.get("low")).toBeLessThan(admitted.get("normal") ?? 0);
    expect(Object.keys(refused.low)).toEqual(["priority"]);
    expect(Object.keys(refused.critical)).toEqual(["concurrency"]);
  });

  it("serves all that is critical at ten times the load, of which it is a tenth", async () => {
    const { admission, clock } = start({ maxInFlight: 20, queue: { sizeMax: 20 } });
    const served = { critical: 0, low: 0 };
    const serve = (permit: RequestPermit, priority: "critical" | "low") => {
      clock.schedule(50, () => {
        served[priority] += 1;
        permit.end("completed", { status: 200 });
      });
    };
    // 20 permits of 50 ms are 400 a second; 4,000 a second come.
    for (let i = 0; i < 8_000; i += 1) {
      const priority = i % 10 === 0 ? "critical" : "low";
      const answer = askAs(admission, priority);
      if (answer.kind === "admitted") serve(answer.permit, priority);
      if (answer.kind === "waiting") {
        void answer.decided.then((verdict) => {
          if (verdict.kind === "admitted") serve(verdict.permit, priority);
        });
      }
      clock.advance(0.25);
      await Promise.resolve();
    }
    for (let i = 0; i < 100; i += 1) {
      clock.advance(50);
      await Promise.resolve();
    }
    const { inFlight, refused } = admission.snapshot();
    expect(inFlight).toBe(0);
    expect(served.critical).toBe(800);
    expect(refused.critical).toEqual({});
    expect(served.low).toBeLessThan(100);
  });

  it.each([
    ["-1", 0],
    ["NaN", 0],
    ["1e9", 0],
    ["99999999999999999999", 0],
    ["0x10", 0],
    ["9".repeat(1_000_000), 0],
    ["5, 7", 0],
    ["", 0],
    ["4", 1],
    ["0", 1],
  ])("takes the deadline %.20s for %i refusal", (stated, count) => {
    const { admission } = start({ deadline: { header: "X-Time-Left" } });
    const answer = admission.begin(serverRequest({ "x-time-left": stated }));
    expect(causeOf(answer)).toBe(count === 0 ? undefined : "deadline");
  });

  it.each([
    ["critical", "critical"],
    ["  LOW ", "low"],
    ["critical, critical", "normal"],
    ["root", "normal"],
    ["__proto__", "normal"],
    ["critical".padEnd(1_000_000, " "), "normal"],
    ["c".repeat(1_000_000), "normal"],
  ])("takes the stated class %.20s for %s", (stated, priority) => {
    const { admission } = start();
    expect(permitOf(askAs(admission, stated)).priority).toBe(priority);
  });

  it("believes no header that it was not told of, nor one of somebody who is not trusted", () => {
    const priority = { header: "x-class", trust: () => false };
    for (const options of [{ priority: {} }, { priority }]) {
      const { admission } = start(options);
      const headers = { "x-request-priority": "critical", "x-class": "critical" };
      expect(permitOf(admission.begin(serverRequest(headers))).priority).toBe("normal");
    }
  });

  it("counts no probe, and takes logins for critical unless something says otherwise", () => {
    const { admission } = start({ maxInFlight: 1 });
    for (let i = 0; i < 10; i += 1) permitOf(admission.begin(serverRequest({}, "/healthz?now")));
    expect(admission.snapshot()).toMatchObject({ inFlight: 0, bypassedCount: 10 });
    const permit = permitOf(admission.begin(serverRequest({}, "/login/form")));
    expect(permit.priority).toBe("critical");
    permit.end("completed");
    const low = serverRequest({ "x-request-priority": "low" }, "/login/form");
    expect(permitOf(admission.begin(low)).priority).toBe("low");
  });

  it("refuses what must expect to take longer than its caller waits", () => {
    const { admission, clock } = start({ maxInFlight: 1, queue: { sizeMax: 10 }, shedAt: false });
    for (let i = 0; i < 40; i += 1) {
      const permit = permitOf(admission.begin(serverRequest()));
      clock.advance(100);
      permit.end("completed", { status: 200 });
    }
    permitOf(admission.begin(serverRequest()));
    const hurried = admission.begin(serverRequest({ "grpc-timeout": "50m" }));
    expect(causeOf(hurried)).toBe("deadline");
    expect(admission.begin(serverRequest({ "grpc-timeout": "5S" })).kind).toBe("waiting");
  });

  it.each([
    { loads: [() => 0.5], cause: undefined },
    { loads: [() => Number.NaN, () => -4, () => Number.NEGATIVE_INFINITY], cause: undefined },
    { loads: [() => 0.2, { loadRatio: () => 0.99 }, () => 0.3], cause: "load" },
    { loads: [() => Number.POSITIVE_INFINITY], cause: "load" },
  ])("looks at loads from elsewhere: $cause", ({ loads, cause }) => {
    const { admission } = start({ load: loads });
    expect(causeOf(admission.begin(serverRequest()))).toBe(cause);
  });

  it("lets in who waits in the order of classes, and frees the place of who leaves", async () => {
    const { admission } = start({ maxInFlight: 1, queue: { sizeMax: 3 }, shedAt: false });
    const first = permitOf(askAs(admission, "normal"));
    const answers = ["low", "normal", "critical"].map((name) => askAs(admission, name));
    const [low, normal, critical] = answers.map((answer) => {
      if (answer.kind !== "waiting") throw new Error(answer.kind);
      return answer;
    });
    normal?.leave();
    expect((await normal?.decided)?.kind).toBe("left");
    first.end("completed", { status: 200 });
    const verdict = await critical?.decided;
    expect(admission.snapshot()).toMatchObject({ inFlight: 1, waiting: 1, leftCount: 1 });
    if (verdict?.kind !== "admitted") throw new Error("the critical one is next");
    // It leaves between its turn and the moment at which it hears of that.
    verdict.permit.end("completed");
    low?.leave();
    low?.leave();
    expect(admission.snapshot()).toMatchObject({ inFlight: 0, waiting: 0, leftCount: 1 });
  });

  it("refuses who waited for too long, as the proxy layer does", async () => {
    const { admission, clock } = start({
      maxInFlight: 1,
      queue: { sizeMax: 1, waitMsMax: 200 },
      shedAt: false,
    });
    permitOf(askAs(admission, "normal"));
    const waiting = askAs(admission, "normal");
    expect(causeOf(askAs(admission, "normal"))).toBe("queueFull");
    clock.advance(200);
    if (waiting.kind !== "waiting") throw new Error(waiting.kind);
    expect(await waiting.decided).toMatchObject({ kind: "refused", cause: "queueTimeout" });
    expect(clock.timerCount).toBe(0);
  });

  it.each([
    { what: "HTTP", headers: {} },
    { what: "gRPC", headers: { "content-type": "application/grpc+proto" } },
  ])("refuses over $what with the bytes of the proxy layer", ({ headers }) => {
    const { admission } = start({ maxInFlight: 1, shedAt: false, tellRule: true });
    permitOf(askAs(admission, "normal"));
    const answer = admission.begin(serverRequest(headers));
    if (answer.kind !== "refused") throw new Error(answer.kind);
    const settings = { retryAfterSecondsMin: 1, retryAfterJitterRatio: 0.5, statusByCause: {} };
    const contentType = new Map(Object.entries(headers)).get("content-type");
    const seconds = [0, 0.99].map((draw) => retryAfterSeconds(settings, { kind: "unknown" }, draw));
    const expected = seconds.map((retrySeconds) =>
      refusalOf(
        { statusByCause: {}, disclosure: { header: true, metadata: true, log: true } },
        {
          service: "orders",
          cause: "concurrency",
          request: { method: "GET", contentType },
          retrySeconds,
        },
      ),
    );
    expect(expected).toContainEqual(answer.refusal);
  });

  it("begins a brownout under load, and ends it below the band", () => {
    const { admission, clock } = start({ maxInFlight: 10, shedAt: false });
    const fill = (): RequestPermit[] => {
      const permits: RequestPermit[] = [];
      for (;;) {
        const answer = askAs(admission, "normal");
        if (answer.kind !== "admitted") return permits;
        permits.push(answer.permit);
      }
    };
    const end = (permits: readonly RequestPermit[]): void => {
      for (const permit of permits) permit.end("completed");
    };
    const [first, ...others] = fill();
    expect(first?.brownout).toBe(false);
    clock.advance(5_000);
    askAs(admission, "normal");
    expect(first?.brownout).toBe(true);
    expect(first?.brownoutRatio).toBeGreaterThan(0.9);
    end(others.splice(0, 2));
    clock.advance(60_000);
    end(others.splice(0, 1));
    expect(first?.brownout).toBe(true);
    clock.advance(60_000);
    end(others.splice(0, 2));
    clock.advance(60_000);
    end(others.splice(0, 1));
    expect(first?.brownout).toBe(false);
    expect(first?.brownoutRatio).toBe(0);
  });

  it("reports its load as the proxy layer reads it, unless it is hidden", () => {
    const host = { loadRatio: () => 0.1, cpuRatio: 0.4, memoryRatio: undefined };
    const { admission, clock } = start({ maxInFlight: 4, load: host });
    permitOf(askAs(admission, "normal"));
    permitOf(askAs(admission, "normal"));
    const report = admission.loadReport(serverRequest()) ?? "";
    expect(parseOrcaReport(report)).toEqual({
      applicationRatio: 0.5,
      cpuRatio: 0.4,
      memoryRatio: undefined,
    });
    expect(report).toContain("rps_fractional=0.4");
    expect(report).toContain("named_metrics.in_flight=2");
    permitOf(askAs(admission, "critical"));
    expect(admission.loadReport(serverRequest())).toBe(report);
    clock.advance(reportHoldMs);
    expect(admission.loadReport(serverRequest())).not.toBe(report);
    const inside = (path: string) => path.startsWith("/inside");
    const hidden = start({ loadReport: ({ path }) => inside(path) }).admission;
    expect(hidden.loadReport(serverRequest())).toBeUndefined();
    expect(hidden.loadReport(serverRequest({}, "/inside"))).toBeDefined();
    expect(start({ loadReport: false }).admission.loadReport(serverRequest())).toBeUndefined();
  });

  it("aborts the work of a client that has left, and tells what is left of its time", () => {
    const { admission, clock } = start();
    const request = serverRequest({ "x-envoy-expected-rq-timeout-ms": "500" });
    const permit = permitOf(admission.begin(request));
    clock.advance(200);
    expect(permit.remainingMs()).toBe(300);
    const { signal } = permit;
    permit.end("left");
    expect(signal.aborted).toBe(true);
    const done = permitOf(admission.begin(request));
    const { signal: kept } = done;
    done.end("completed");
    expect(kept.aborted).toBe(false);
  });

  it.each<readonly [Partial<ServerAdmissionOptions>, string]>([
    [{ maxInFlight: 0 }, "maxInFlight"],
    [{ maxInFlight: Number.NaN }, "maxInFlight"],
    [{ queue: { sizeMax: -1 } }, "queue.sizeMax"],
    [{ concurrency: { initial: 0.5 } }, "concurrency.initial"],
    [{ deadline: { minRemainingMs: -1 } }, "deadline.minRemainingMs"],
    [{ shedAt: { low: 0 } }, "shedAt.low"],
    [{ brownout: { fromRatios: { high: Number.NaN } } }, "brownout.fromRatios.high"],
    [{ brownout: { memoryMs: 0 } }, "brownout.memoryMs"],
    [{ retryAfter: { secondsMin: 0 } }, "retryAfter.secondsMin"],
    [{ statusByCause: { load: 200 } }, "statusByCause.load"],
  ])("refuses options out of bounds: %j", (options, name) => {
    expect(() => start(options)).toThrow(RangeError);
    expect(() => start(options)).toThrow(name);
  });

  it("never has more in flight than the limit, and gives each permit back once", async () => {
    const causes = new Set<RefusalCause>();
    const step = fc.oneof(
      fc.record({
        kind: fc.constant("ask"),
        priority: fc.constantFrom(...priorities),
        ms: fc.option(fc.nat(400), { nil: undefined }),
      }),
      fc.record({
        kind: fc.constant("end"),
        at: fc.nat(50),
        ending: fc.constantFrom("completed", "left", "broken"),
        status: fc.constantFrom(200, 500, 503),
      }),
      fc.record({ kind: fc.constant("advance"), ms: fc.nat(300) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 150, size: "max" }), async (steps) => {
        const { admission, clock } = start({
          maxInFlight: 5,
          queue: { sizeMax: 4, waitMsMax: 250 },
        });
        const answers: ServerAnswer[] = [];
        const permits: RequestPermit[] = [];
        for (const one of steps) {
          if (one.kind === "ask") {
            const time = one.ms === undefined ? {} : { "grpc-timeout": `${one.ms}m` };
            const answer = admission.begin(
              serverRequest({ "x-request-priority": one.priority, ...time }),
            );
            answers.push(answer);
            if (answer.kind === "admitted") permits.push(answer.permit);
            if (answer.kind === "refused") causes.add(answer.cause);
            if (answer.kind === "waiting") {
              void answer.decided.then((verdict) => {
                if (verdict.kind === "admitted") permits.push(verdict.permit);
                if (verdict.kind === "refused") causes.add(verdict.cause);
              });
            }
          } else if (one.kind === "end") {
            const answer = answers[one.at];
            if (answer?.kind === "waiting" && one.ending === "left") answer.leave();
            else permits[one.at]?.end(one.ending, { status: one.status });
          } else clock.advance(one.ms);
          // Whoever was let in hears of it.
          await Promise.resolve();
          expect(admission.snapshot().inFlight).toBeLessThanOrEqual(5);
        }
        clock.advance(300);
        await Promise.resolve();
        for (const answer of answers) if (answer.kind === "waiting") answer.leave();
        for (const permit of permits) permit.end("completed");
        const { inFlight, waiting, admitted, outcomes } = admission.snapshot();
        expect({ inFlight, waiting }).toEqual({ inFlight: 0, waiting: 0 });
        const sum = (counts: Readonly<Record<string, number>>) =>
          Object.values(counts).reduce((one, other) => one + other, 0);
        expect(sum(outcomes)).toBe(sum(admitted));
        expect(clock.timerCount).toBe(0);
      }),
      propertyRuns(200),
    );
    // Kinds of causes do not become more with the seeds.
    expect(causes.size).toBeGreaterThanOrEqual(Math.min(4, metCount(4)));
  });
});
