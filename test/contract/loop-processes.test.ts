import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { defaultLeaderLeaseMs } from "../../src/fleet/leader.js";
import type { ChildProgram } from "../support/child-program.js";
import { startRedis } from "../support/redis.js";
import type { RedisEngine } from "../support/redis-server.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";
import type { LoopLine, LoopOrder } from "./loop-program.js";

const stage = useStage("test");
const engines: readonly RedisEngine[] = ["redis", "valkey"];

function start(order: LoopOrder): ChildProgram {
  const file = fileURLToPath(new URL("loop-program.ts", import.meta.url));
  return stage.spawn({
    name: "replica",
    file: process.execPath,
    args: ["--import", "tsx", file, JSON.stringify(order)],
  });
}

function linesOf({ output }: ChildProgram): readonly LoopLine[] {
  const whole = output.slice(0, output.lastIndexOf("\n") + 1);
  return whole
    .split("\n")
    .filter(Boolean)
    .map((line): LoopLine => JSON.parse(line));
}

const sheetsOf = (program: ChildProgram) =>
  linesOf(program).filter((line) => line.kind === "sheet");

/** The one of whom the last word is that it leads. */
function leaderOf(programs: readonly ChildProgram[]): ChildProgram | undefined {
  return programs.find((program) => {
    const words = linesOf(program).map(({ kind }) => kind);
    return words.lastIndexOf("leadingBegan") > words.lastIndexOf("leadingEnded");
  });
}

it.each(engines)("a killed leader is replaced within two leases, on %s", async (engine) => {
  const server = await startRedis(stage, { engine });
  const order = { port: server.port, keyPrefix: "headgate:" };
  const programs = [start(order), start(order), start(order)];
  const leader = await waitFor(
    "all hand out the sheets of one leader",
    () => programs.every((program) => sheetsOf(program).length > 1) && leaderOf(programs),
    { withinMs: 30_000 },
  );
  const others = programs.filter((program) => program !== leader);
  await leader.kill();
  const killedMs = performance.now();
  await waitFor("the others hand out the sheets of the next reign", () =>
    others.every((program) => sheetsOf(program).some(({ epoch }) => epoch === 2)),
  );
  expect(performance.now() - killedMs).toBeLessThan(2 * defaultLeaderLeaseMs);
  const next = leaderOf(others);
  if (next === undefined) throw new Error("one of them leads");
  for (const program of others) {
    // None is missing between: the old sheet holds until the new one is there.
    expect(linesOf(program).map(({ kind }) => kind)).not.toContain("sheetLost");
    const ranks = sheetsOf(program).map(({ epoch, version }) => epoch * 1_000 + version);
    expect(ranks).toEqual(ranks.toSorted((a, b) => a - b));
  }
  // Nobody leads without the store, not even who led a moment ago.
  await server.kill();
  await waitFor("nobody leads", () =>
    linesOf(next).some((line) => line.kind === "leadingEnded" && line.cause === "lapsed"),
  );
  expect(leaderOf(others)).toBeUndefined();
  await server.restart();
  const again = await waitFor(
    "one leads again, in a reign above all before",
    () => {
      const found = leaderOf(others);
      return found && sheetsOf(found).some(({ epoch }) => epoch > 2) ? found : undefined;
    },
    { withinMs: 20_000 },
  );
  expect(linesOf(again)).toContainEqual({ kind: "leaseFound" });
});

it("a leader that is stopped in its tracks has led its last when it wakes", async () => {
  const server = await startRedis(stage, { engine: "redis" });
  const order = { port: server.port, keyPrefix: "headgate:" };
  const programs = [start(order), start(order)];
  const leader = await waitFor(
    "both hand out sheets",
    () => programs.every((program) => sheetsOf(program).length > 1) && leaderOf(programs),
    { withinMs: 30_000 },
  );
  const [other] = programs.filter((program) => program !== leader);
  if (other === undefined) throw new Error("there are two");
  leader.signal("SIGSTOP");
  await waitFor("the other one leads", () => sheetsOf(other).some(({ epoch }) => epoch === 2));
  leader.signal("SIGCONT");
  await waitFor("it follows", () => sheetsOf(leader).some(({ epoch }) => epoch === 2));
  const kinds = linesOf(leader).map(({ kind }) => kind);
  expect(kinds.lastIndexOf("leadingEnded")).toBeGreaterThan(kinds.lastIndexOf("leadingBegan"));
  for (const program of programs) {
    const epochs = sheetsOf(program).map(({ epoch }) => epoch);
    expect(epochs).toEqual(epochs.toSorted((a, b) => a - b));
  }
});
