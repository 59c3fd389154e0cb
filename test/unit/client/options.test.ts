import { describe, expect, it } from "vitest";
import type { AdmissionOptions, CallOptions } from "../../../src/client/admission.js";
import { createAdmission } from "../../../src/client/create-admission.js";
import { createLimiter } from "../../../src/client/limiter.js";
import { createBreaker, createRetryBudget, createThrottle } from "../../../src/client/parts.js";
import { retry } from "../../../src/client/retry.js";
import { createWindowLimiter } from "../../../src/client/window-limiter.js";

/** Every option that is a number, and a value that is too small and one that is too large. */
const numbers: Readonly<Record<string, Readonly<Record<string, readonly [number, number]>>>> = {
  concurrency: { initial: [0, 1e7], min: [0.5, 1e7], max: [-1, 1e7] },
  queue: { sizeMax: [-1, 1e7], waitMsMax: [-1, 2 ** 31] },
  throttle: { k: [0.9, 1e4], memoryMs: [0, 2 ** 31] },
  breaker: {
    failureRatio: [0, 1.1],
    callsMin: [0, 1e7],
    windowMs: [0, 2 ** 31],
    openMs: [0, 2 ** 31],
    probesCount: [0, 1.5],
  },
  retry: {
    attemptsMax: [0, 1.5],
    baseMs: [0, 2 ** 31],
    maxMs: [0, 2 ** 31],
    budgetRatio: [-1, 1e4],
    budgetPerSecondMin: [-1, 1e7],
    retryAfterMsMax: [-1, 2 ** 31],
  },
  hedge: { quantile: [0, 1], afterMsMin: [-1, 2 ** 31] },
  deadline: { timeoutMs: [-1, 2 ** 31], remainingMsMin: [-1, 2 ** 31], marginMs: [-1, 2 ** 31] },
};

/** Options as a program without types may give them. */
function create(options: object): void {
  createAdmission({ name: "shop", ...options });
}

describe("options of an admission", () => {
  const rows = Object.entries(numbers).flatMap(([block, options]) =>
    Object.entries(options).map(([name, bounds]) => ({ block, name, bounds })),
  );

  it.each(rows)("refuse $block.$name out of bounds, and name it", ({ block, name, bounds }) => {
    const wrong = [...bounds, Number.NaN, Number.POSITIVE_INFINITY, -1e300, "5", undefined, {}];
    for (const value of wrong) {
      const given = (): void => create({ [block]: { [name]: value } });
      // An absent time is none.
      if (value === undefined && name === "timeoutMs") expect(given).not.toThrow();
      else expect(given, String(value)).toThrow(new RegExp(`^${block}\\.${name} must be a `));
    }
  });

  it.each([
    [{ concurrency: { law: "knee" } }, "concurrency.law must be one of gradient"],
    [{ concurrency: { min: 5, max: 4 } }, "concurrency.min must be at most concurrency.max"],
    [{ concurrency: { law: "window" }, queue: {} }, "concurrency.permits must be a whole number"],
    [{ queue: { order: "random" } }, "queue.order must be one of priority"],
    [{ queue: { codel: { targetMs: -1, intervalMs: 1 } } }, "queue.codel.targetMs must be"],
    [{ queue: { codel: { targetMs: 1, intervalMs: 0 } } }, "queue.codel.intervalMs must be"],
    [{ retry: { jitter: "none" } }, "retry.jitter must be one of law"],
    [{ deadline: { header: "X-Time" } }, "deadline.header must be the name of a header"],
    [{ priorityHeader: "a b" }, "priorityHeader must be the name of a header"],
  ])("refuse %j", (options, message) => {
    expect(() => create(options)).toThrow(message);
  });

  it("take every default, and each bound itself", () => {
    const all: AdmissionOptions = {
      name: "shop",
      concurrency: {},
      queue: {},
      throttle: {},
      breaker: {},
      retry: {},
      hedge: {},
      deadline: {},
    };
    expect(() => createAdmission(all)).not.toThrow();
    create({ concurrency: { min: 1, max: 1_000_000 }, deadline: { timeoutMs: 2 ** 31 - 1 } });
    create({ queue: { sizeMax: 0, waitMsMax: 0 }, breaker: { failureRatio: 1, callsMin: 1 } });
  });
});

describe("options of a call", () => {
  it.each([
    [{ timeoutMs: Number.NaN }, "timeoutMs must be a number from 0 to 2147483647, not NaN"],
    [{ timeoutMs: -1 }, "timeoutMs must be"],
    [{ timeoutMs: Number.POSITIVE_INFINITY }, "timeoutMs must be"],
    [{ priority: "urgent" }, "priority must be one of critical, high, normal, low"],
  ])("refuse %j, and make no attempt", async (options, message) => {
    const admission = createAdmission({ name: "shop", concurrency: {} });
    let count = 0;
    const work = async (): Promise<number> => (count += 1);
    const wrong = options as CallOptions<number>;
    await expect(admission.run(work, wrong)).rejects.toThrow(message);
    expect(count).toBe(0);
    expect(admission.snapshot().inFlight).toBe(0);
  });
});

describe("options of parts", () => {
  it("are refused by name, too", async () => {
    const nan = Number.NaN;
    expect(() => createLimiter({ initial: nan })).toThrow("concurrency.initial must be");
    expect(() => createWindowLimiter({ windowMin: nan })).toThrow("windowMin must be");
    expect(() => createWindowLimiter({ workersCount: 0 })).toThrow("workersCount must be");
    expect(() => createThrottle({ k: nan })).toThrow("throttle.k must be");
    expect(() => createBreaker({ openMs: nan })).toThrow("breaker.openMs must be");
    expect(() => createRetryBudget({ budgetRatio: nan })).toThrow("retry.budgetRatio must be");
    const work = async (): Promise<number> => 1;
    await expect(retry(work, { attemptsMax: nan })).rejects.toThrow("retry.attemptsMax must be");
    await expect(createLimiter().acquire({ timeoutMs: nan })).rejects.toThrow("timeoutMs must be");
  });
});
