import { describe, expect, it } from "vitest";
import { createRetryBudget } from "../../../src/client/parts.js";
import { retry } from "../../../src/client/retry.js";
import { FakeClock } from "../../support/fake-clock.js";
import { FakeRandom } from "../../support/fake-random.js";

function failing(count: number) {
  const error = new Error("not yet");
  const numbers: number[] = [];
  const work = async ({ number }: { readonly number: number }): Promise<number> => {
    numbers.push(number);
    if (number <= count) throw error;
    return number;
  };
  return { work, numbers, error };
}

describe("retry()", () => {
  const random = new FakeRandom();

  it("repeats what rejects, with waits, until it resolves", async () => {
    const clock = new FakeClock();
    const { work, numbers } = failing(2);
    const done = retry(work, { clock, random });
    await clock.advanceAsync(300, 1);
    expect(await done).toBe(3);
    expect(numbers).toEqual([1, 2, 3]);
    expect(clock.timerCount).toBe(0);
  });

  it("ends with the last error, and with a budget that is used up", async () => {
    const clock = new FakeClock();
    const { work, error } = failing(9);
    const ended = expect(retry(work, { clock, random, attemptsMax: 2 })).rejects.toBe(error);
    await clock.advanceAsync(100, 1);
    await ended;
    const budget = createRetryBudget({ clock, budgetPerSecondMin: 0 });
    const other = failing(9);
    await expect(retry(other.work, { clock, random, budget })).rejects.toBe(other.error);
    expect(other.numbers).toEqual([1]);
  });

  it("ends at its time and by its signal", async () => {
    const clock = new FakeClock();
    const stuck = (): Promise<never> => new Promise(() => {});
    const late = expect(retry(stuck, { clock, timeoutMs: 50 })).rejects.toMatchObject({
      name: "TimeoutError",
    });
    await clock.advanceAsync(50);
    await late;
    const controller = new AbortController();
    const given = retry(stuck, { clock, signal: controller.signal });
    controller.abort("enough");
    await expect(given).rejects.toBe("enough");
  });
});
