import { type Timings, testTimingsName } from "../../src/app/options/test-timings.js";

/** With 1, scenarios run at the times that users have; `npm run soak` sets it. */
export const trueTimesName = "HEADGATE_TRUE_TIMES";

/**
 * Whether scenarios run at the times that users have, and not at shorter ones: the same tests, and
 * minutes of waiting. `HEADGATE_TRUE_TIMES=1 npx vitest run --project e2e`.
 */
export const trueTimes = process.env[trueTimesName] === "1";

/** Settings of a Headgate that runs at shorter times; at true times there are none. */
export function timingsEnv(short: Partial<Timings>): Readonly<Record<string, string>> {
  if (trueTimes) return {};
  const pairs = Object.entries(short).map(([name, valueMs]) => `${name}=${valueMs}`);
  return { [testTimingsName]: pairs.join(",") };
}
