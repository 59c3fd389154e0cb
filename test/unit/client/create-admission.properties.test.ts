import { getEventListeners } from "node:events";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AdmissionOptions, CallOptions } from "../../../src/client/admission.js";
import { priorities } from "../../../src/core/admission/priority.js";
import { CallRig, type WorkPlan } from "../../support/call-rig.js";
import { propertyRuns } from "../../support/seeds.js";

const never = Number.POSITIVE_INFINITY;
const remainingMsMin = 5;
const budget = { budgetRatio: 0.2, budgetPerSecondMin: 1 };

/** Works of up to 200 ms, some of which never end, throw, or hold their permits. */
const plan: fc.Arbitrary<WorkPlan> = fc.record(
  {
    ms: fc.oneof({ weight: 9, arbitrary: fc.nat(200) }, fc.constant(never)),
    kind: fc.constantFrom("served", "served", "failed", "overloaded", "cancelled"),
    retriable: fc.constantFrom("always", "ifIdempotent", "never"),
    retryAfterMs: fc.constantFrom(0, 50, -1, Number.NaN, 1e12),
    fails: fc.constantFrom("rejects", "throws"),
    ignoresSignal: fc.boolean(),
    holdMs: fc.nat(100),
  },
  { requiredKeys: ["ms"] },
);

/** One step of a history. */
type Step =
  | { readonly kind: "call"; readonly plans: readonly WorkPlan[]; readonly options: CallShape }
  | { readonly kind: "pass"; readonly ms: number }
  | { readonly kind: "abort" };

type CallShape = Pick<CallOptions<unknown>, "priority" | "timeoutMs" | "isIdempotent"> & {
  readonly isAborted?: boolean;
};

const call: fc.Arbitrary<Step> = fc.record({
  kind: fc.constant("call"),
  plans: fc.array(plan, { minLength: 1, maxLength: 3 }),
  options: fc.record(
    {
      priority: fc.constantFrom(...priorities),
      // Else a work that never settles by itself leaves its call open for good.
      timeoutMs: fc.nat(500),
      isIdempotent: fc.boolean(),
      isAborted: fc.boolean(),
    },
    { requiredKeys: ["timeoutMs"] },
  ),
});

const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: call },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant("pass"), ms: fc.nat(100) }) },
    fc.record({ kind: fc.constant("abort") }),
  ) satisfies fc.Arbitrary<Step>,
  { maxLength: 60 },
);

const admissions: fc.Arbitrary<Partial<AdmissionOptions>> = fc.record(
  {
    concurrency: fc.record({
      law: fc.constantFrom("fixed", "gradient", "vegas", "aimd", "window"),
      initial: fc.integer({ min: 1, max: 4 }),
      max: fc.constant(4),
      permits: fc.integer({ min: 1, max: 4 }),
    }),
    queue: fc.record({
      sizeMax: fc.nat(4),
      waitMsMax: fc.nat(100),
      order: fc.constantFrom("priority", "fifo", "newestFirstUnderOverload"),
    }),
    throttle: fc.constant({ k: 1.5, memoryMs: 1_000 }),
    breaker: fc.constant({ callsMin: 3, windowMs: 500, openMs: 50, probesCount: 2 }),
    retry: fc.record({
      attemptsMax: fc.integer({ min: 1, max: 4 }),
      jitter: fc.constantFrom("full", "decorrelated"),
      baseMs: fc.constant(10),
      maxMs: fc.constant(50),
      ...Object.fromEntries(
        Object.entries(budget).map(([name, value]) => [name, fc.constant(value)]),
      ),
    }),
    hedge: fc.constant({ quantile: 0.5, afterMsMin: 5 }),
  },
  { requiredKeys: [] },
);

/** Plays a history to its end, and everything that must hold of it on the way. */
async function play(options: Partial<AdmissionOptions>, history: readonly Step[], seed: number) {
  const rig = new CallRig({ ...options, deadline: { remainingMsMin } }, seed);
  const controllers: AbortController[] = [];
  const limitMax = options.concurrency === undefined ? never : 4;
  // A hedge needs a hundred latencies.
  const warmCount = options.hedge === undefined ? 0 : 100;
  for (let i = 0; i < warmCount; i += 1) {
    rig.call(`warm ${i}`, [{ ms: 1 }]);
    await rig.pass(1);
  }
  const holds = history.some(
    (step) => step.kind === "call" && step.plans.some(({ holdMs }) => holdMs !== undefined),
  );
  let callsCount = 0;
  for (const step of history) {
    switch (step.kind) {
      case "call": {
        const { isAborted = false, ...more } = step.options;
        const controller = new AbortController();
        if (isAborted) controllers.push(controller);
        rig.call(`${callsCount}`, step.plans, { ...more, signal: controller.signal });
        callsCount += 1;
        break;
      }
      case "pass":
        await rig.pass(step.ms, 10);
        break;
      case "abort":
        controllers.shift()?.abort("enough");
        await rig.pass(0);
        break;
    }
    const { inFlight } = rig.admission.snapshot();
    expect(inFlight).toBeLessThanOrEqual(limitMax);
    if (step.kind === "call") continue;
    // No work here outlives its call by 30 s: each that is open has its permit, and no other has,
    // but for an attempt that is repeated and whose rest nobody reads.
    expect(inFlight).toBeLessThanOrEqual(rig.openCount);
    if (!holds) expect(inFlight).toBe(rig.openCount);
  }
  const { retriesCount, hedgesCount, outcomes } = rig.admission.snapshot();
  const seconds = rig.clock.monotonicMs() / 1_000;
  const allowed =
    budget.budgetRatio * outcomes.served + budget.budgetPerSecondMin * (10 + seconds) + 1e-6;
  if (options.retry !== undefined) expect(retriesCount + hedgesCount).toBeLessThanOrEqual(allowed);
  await rig.pass(600, 10);
  expect(rig.results.size).toBe(warmCount + callsCount);
  // What ignores its signal and never settles loses its permit by the bound.
  await rig.pass(31_000, 1_000);
  return { rig, controllers };
}

describe("calls of an admission, whatever they do", () => {
  it("settle, keep to limit, margin and budget, and give each permit back once", async () => {
    await fc.assert(
      fc.asyncProperty(admissions, steps, fc.nat(), async (options, history, seed) => {
        const { rig, controllers } = await play(options, history, seed);
        const end = rig.admission.snapshot();
        expect(end).toMatchObject({ inFlight: 0, waiting: 0 });
        const attemptsCount = Object.values(end.outcomes).reduce((sum, one) => sum + one, 0);
        expect(end.attemptsCount).toBe(attemptsCount);
        expect(rig.begun).toHaveLength(attemptsCount);
        for (const { remainingMs = never } of rig.begun) {
          expect(remainingMs).toBeGreaterThanOrEqual(remainingMsMin);
        }
        for (const { signal } of controllers) {
          expect(getEventListeners(signal, "abort")).toEqual([]);
        }
        expect(rig.clock.timerCount).toBe(0);
      }),
      propertyRuns(200),
    );
  });
});
