import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ChildProgram } from "../support/child-program.js";
import { type RedisEngine, RedisServer } from "../support/redis-server.js";
import { within } from "../support/wait.js";
import type { HammerOrder, HammerTally } from "./hammer.js";

const engines: readonly RedisEngine[] = ["redis", "valkey"];
const processCount = 4;

describe.each(engines)("several processes on one %s", (engine) => {
  let server: RedisServer;

  beforeAll(async () => {
    server = await RedisServer.start({ engine });
  });

  afterAll(async () => {
    await server?.stop();
  });

  it.each([
    { name: "one key", keys: ["one"], hits: 500, periodUs: 1_000_000, burst: 100 },
    { name: "several keys", keys: ["a", "b", "c"], hits: 7, periodUs: 60_000_000, burst: 300 },
    { name: "a slow rate", keys: ["slow"], hits: 1, periodUs: 31_536_000_000_000, burst: 1_000 },
  ])("admit together what the law allows: $name", async ({ name: _name, ...limit }) => {
    const control = server.client();
    const startUs = await storeUs(control);
    const order: HammerOrder = { port: server.port, ...limit, askCount: 1_000 };
    const tallies = await Promise.all(Array.from({ length: processCount }, () => hammer(order)));
    const elapsedUs = (await storeUs(control)) - startUs;
    for (const key of limit.keys) {
      const admitted = tallies.reduce((sum, tally) => sum + (tally[key] ?? 0), 0);
      const allowed = limit.burst + Math.floor((elapsedUs * limit.hits) / limit.periodUs);
      expect(admitted).toBeLessThanOrEqual(allowed);
      // Every process asks for far more than the burst, so at least that much is granted, but for a
      // rest too small for the cost of three.
      expect(admitted).toBeGreaterThanOrEqual(limit.burst - 2);
    }
  });
});

async function hammer(order: HammerOrder): Promise<HammerTally> {
  const file = fileURLToPath(new URL("hammer.ts", import.meta.url));
  const program = new ChildProgram({
    name: "hammer",
    file: process.execPath,
    args: ["--import", "tsx", file, JSON.stringify(order)],
  });
  try {
    const exit = await within("the hammer is done", 50_000, program.exited);
    if (exit.code !== 0) throw new Error(`the hammer failed: ${program.output}`);
    return JSON.parse(program.output) as HammerTally;
  } finally {
    await program.kill();
  }
}

async function storeUs(control: ReturnType<RedisServer["client"]>): Promise<number> {
  const [seconds, micros] = await control.time();
  return Number(seconds) * 1_000_000 + Number(micros);
}
