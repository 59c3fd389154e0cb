import { expect, it } from "vitest";
import { bundledProgram } from "../support/bundled-program.js";
import { startRedis } from "../support/redis.js";
import { useStage } from "../support/stage.js";
import { within } from "../support/wait.js";
import type { HammerOrder, HammerRound, HammerTally } from "./hammer.js";

const stage = useStage("file");
const processCount = 4;

const rounds: readonly HammerRound[] = [
  { name: "one key", keys: ["one"], hits: 500, periodUs: 1_000_000, burst: 100 },
  { name: "several keys", keys: ["a", "b", "c"], hits: 7, periodUs: 60_000_000, burst: 300 },
  { name: "a slow rate", keys: ["slow"], hits: 1, periodUs: 31_536_000_000_000, burst: 1_000 },
];

it("several processes on one Redis admit together what the law allows", async () => {
  const server = await startRedis(stage);
  const order: HammerOrder = { port: server.port, processCount, rounds, askCount: 1_000 };
  const all = await Promise.all(Array.from({ length: processCount }, () => hammer(order)));
  for (const [i, { name, keys, burst, hits, periodUs }] of rounds.entries()) {
    const tallies = all.flatMap((own) => own[i] ?? []);
    const startUs = Math.min(...tallies.map((tally) => tally.startUs));
    const elapsedUs = Math.max(...tallies.map(({ endUs }) => endUs)) - startUs;
    for (const key of keys) {
      const admitted = tallies.reduce((sum, tally) => sum + (tally.admitted[key] ?? 0), 0);
      const allowed = burst + Math.floor((elapsedUs * hits) / periodUs);
      expect(admitted, name).toBeLessThanOrEqual(allowed);
      // Every process asks for far more than the burst, so at least that much is granted, but for a
      // rest too small for the cost of three.
      expect(admitted, name).toBeGreaterThanOrEqual(burst - 2);
    }
  }
});

async function hammer(order: HammerOrder): Promise<readonly HammerTally[]> {
  const file = bundledProgram(new URL("hammer.ts", import.meta.url));
  const program = stage.spawn({
    name: "hammer",
    file: process.execPath,
    args: [file, JSON.stringify(order)],
  });
  const exit = await within("the hammer is done", 50_000, program.exited);
  if (exit.code !== 0) throw new Error(`the hammer failed: ${program.output}`);
  return JSON.parse(program.output) as readonly HammerTally[];
}
