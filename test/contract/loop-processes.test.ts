import { expect, it } from "vitest";
import { defaultLeaderLeaseMs } from "../../src/fleet/loop/leader.js";
import { bundledProgram } from "../support/bundled-program.js";
import type { ChildProgram } from "../support/child-program.js";
import { startRedis } from "../support/redis.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";
import type { LoopLine, LoopOrder } from "./loop-program.js";

const stage = useStage("file");

function start(order: LoopOrder): ChildProgram {
  const file = bundledProgram(new URL("loop-program.ts", import.meta.url));
  return stage.spawn({
    name: "replica",
    file: process.execPath,
    args: [file, JSON.stringify(order)],
  });
}

function linesOf({ output }: ChildProgram): readonly LoopLine[] {
  const whole = output.slice(0, output.lastIndexOf("\n") + 1);
  return whole
    .split("\n")
    .filter(Boolean)
    .map((line): LoopLine => JSON.parse(line));
}

const snapshotsOf = (program: ChildProgram) =>
  linesOf(program).filter((line) => line.kind === "snapshot");

/** Of the last snapshot that it has handed out. */
const termOf = (program: ChildProgram): number => snapshotsOf(program).at(-1)?.term ?? 0;

/** The one of whom the last word is that it leads. */
function leaderOf(programs: readonly ChildProgram[]): ChildProgram | undefined {
  return programs.find((program) => {
    const words = linesOf(program).map(({ kind }) => kind);
    return words.lastIndexOf("leadingBegan") > words.lastIndexOf("leadingEnded");
  });
}

it.concurrent("a killed leader is replaced within two leases, as long as they are", async () => {
  const server = await startRedis(stage);
  const order = { port: server.port, keyPrefix: "headgate:", leaseMs: defaultLeaderLeaseMs };
  const programs = [start(order), start(order), start(order)];
  const leader = await firstLeader(programs);
  const others = programs.filter((program) => program !== leader);
  await leader.kill();
  const killedMs = performance.now();
  await waitFor("the others hand out the snapshots of the next leaderTerm", () =>
    others.every((program) => snapshotsOf(program).some(({ term }) => term === 2)),
  );
  expect(performance.now() - killedMs).toBeLessThan(2 * defaultLeaderLeaseMs);
  for (const program of others) {
    // None is missing between: the old snapshot holds until the new one is there.
    expect(linesOf(program).map(({ kind }) => kind)).not.toContain("snapshotLost");
    expectRising(program);
  }
});

it.concurrent("who is stopped in its tracks, or has no store, leads no more", async () => {
  const server = await startRedis(stage);
  const order = { port: server.port, keyPrefix: "headgate:", leaseMs: 1_000 };
  const programs = [start(order), start(order)];
  const leader = await firstLeader(programs);
  const [other] = programs.filter((program) => program !== leader);
  if (other === undefined) throw new Error("there are two");
  leader.signal("SIGSTOP");
  await waitFor("the other one leads", () => leaderOf([other]));
  const next = await waitFor(
    "it hands out its snapshots",
    () => termOf(other) > termOf(leader) && termOf(other),
  );
  leader.signal("SIGCONT");
  await waitFor("it follows", () => termOf(leader) >= next);
  const kinds = linesOf(leader).map(({ kind }) => kind);
  expect(kinds.lastIndexOf("leadingEnded")).toBeGreaterThan(kinds.indexOf("leadingBegan"));
  // Nobody leads without the store, not even who led a moment ago.
  await waitFor("one leads", () => leaderOf(programs));
  await server.kill();
  await waitFor("nobody leads", () => leaderOf(programs) === undefined);
  const before = Math.max(...programs.map(termOf));
  await server.restart();
  const again = await waitFor(
    "one leads again, in a leaderTerm above all before",
    () => {
      const found = leaderOf(programs);
      return found && termOf(found) > before ? found : undefined;
    },
    { withinMs: 20_000 },
  );
  expect(linesOf(again)).toContainEqual({ kind: "leaseFound" });
  for (const program of programs) expectRising(program);
});

/** The leader of all, when each hands out snapshots. */
function firstLeader(programs: readonly ChildProgram[]): Promise<ChildProgram> {
  return waitFor(
    "all hand out the snapshots of one leader",
    () => programs.every((program) => snapshotsOf(program).length > 1) && leaderOf(programs),
    { withinMs: 30_000 },
  );
}

function expectRising(program: ChildProgram): void {
  const ranks = snapshotsOf(program).map(({ term, version }) => term * 1_000 + version);
  expect(ranks).toEqual(ranks.toSorted((a, b) => a - b));
}
