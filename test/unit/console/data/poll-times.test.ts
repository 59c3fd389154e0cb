import { expect, it } from "vitest";
import { msToNextPoll } from "../../../../src/console/data/poll-times.js";

it("has all consoles poll at the same moments, after half a step at least", () => {
  expect(msToNextPoll(10_260, 1_000)).toBe(990);
  expect(msToNextPoll(10_500, 1_000)).toBe(750);
  expect(msToNextPoll(11_200, 1_000)).toBe(1_050);
  for (let ms = 0; ms < 3_000; ms += 7) {
    const waitMs = msToNextPoll(ms, 3_000);
    expect((ms + waitMs) % 3_000).toBe(250);
    expect(waitMs).toBeGreaterThanOrEqual(1_500);
    expect(waitMs).toBeLessThanOrEqual(4_500);
  }
});
