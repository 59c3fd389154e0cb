import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { BudgetEdge } from "../support/budget-edge.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const clock = resolve("test/support/stepped-clock-program.mjs");

describe("a month's budget in a time zone with summer time", () => {
  it.each([
    {
      // Two hours ahead of UTC since the 28th; without summer time it would end an hour later.
      month: "March",
      at: "2027-03-31T20:00:00Z",
      before: "2027-03-31T21:30:00Z",
      after: "2027-03-31T22:00:05Z",
    },
    {
      // One hour ahead since the 25th; with summer time it would have ended half an hour before.
      month: "October",
      at: "2026-10-31T21:00:00Z",
      before: "2026-10-31T22:30:00Z",
      after: "2026-10-31T23:00:05Z",
    },
  ])("begins anew at the end of $month, there", async ({ at, before, after }) => {
    const edge = await BudgetEdge.startProcesses(stage, {
      budgets: "- {name: calls, amount: 2 calls, period: month, timeZone: Europe/Berlin}",
      // Redis has a clock of its own.
      env: {
        BACKEND_TYPE: "memory",
        NODE_OPTIONS: `--import=${clock}`,
        TEST_CLOCK_AT: at,
        TEST_CLOCK_STEPS: `${before},${after}`,
      },
    });
    const step = (): void => edge.headgates[0]?.process.signal("SIGUSR2");
    const call = async (): Promise<readonly [status: number, retryAfterSeconds: number]> => {
      const { status, headers } = await edge.call();
      return [status, Number(headers["retry-after"] ?? 0)];
    };
    expect([await call(), await call()]).toEqual([
      [200, 0],
      [200, 0],
    ]);
    // Waits are spread by half, so that callers do not come back at once.
    const [refused, waitSeconds] = await call();
    expect(refused).toBe(429);
    expect(waitSeconds).toBeGreaterThan(7_100);
    expect(waitSeconds).toBeLessThanOrEqual(1.5 * 7_200);
    step();
    await waitFor("half an hour is left", async () => (await call())[1] <= 1.5 * 1_800);
    const [stillRefused, restSeconds] = await call();
    expect(stillRefused).toBe(429);
    expect(restSeconds).toBeGreaterThan(1_700);
    step();
    await waitFor("a call passes", async () => (await call())[0] === 200);
    expect((await call())[0]).toBe(200);
    expect((await call())[0]).toBe(429);
  });
});
