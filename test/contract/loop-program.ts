import { type LoopEvent, SharedLoop } from "../../src/fleet/loop/shared-loop.js";
import { TestMaker, testReport } from "../support/fleet-reports.js";
import { realClock, realRandom } from "../support/real-clock.js";
import { openTestStore } from "../support/redis-store.js";

/** What a replica that runs by itself is told, as JSON on its command line. */
export interface LoopOrder {
  readonly port: number;
  readonly keyPrefix: string;
  readonly leaseMs: number;
}

/** What it prints, a line each: what happens, and each snapshot that it hands out. */
export type LoopLine =
  | { readonly kind: "started"; readonly id: string }
  | { readonly kind: "snapshot"; readonly term: number; readonly version: number }
  | LoopEvent;

/** Takes part in the loop until it is killed. */
async function takePart({ port, keyPrefix, leaseMs }: LoopOrder): Promise<void> {
  const { connections } = await openTestStore({ port });
  const id = realRandom.id();
  const print = (line: LoopLine): void => {
    process.stdout.write(`${JSON.stringify(line)}\n`);
  };
  const loop = new SharedLoop({
    clock: realClock,
    id,
    keyPrefix,
    leaseMs,
    connection: connections.fleet,
    bulkConnection: connections.background,
    createMaker: (start) => new TestMaker(start),
    pressures: () => [],
    gateSettings: () => new Map(),
    onEvent: print,
    onBug: (thrown) => {
      throw thrown;
    },
  });
  print({ kind: "started", id });
  loop.onSnapshot(() => {
    const snapshot = loop.current();
    if (snapshot !== undefined)
      print({ kind: "snapshot", term: snapshot.term, version: snapshot.version });
  });
  const report = (): void => {
    const atMs = realClock.monotonicMs();
    loop.report([testReport({ nodeId: `node of ${id}`, atMs })]);
    // Looks, so that a snapshot that has grown old is told of.
    loop.current();
    realClock.schedule(500, report);
  };
  report();
  await new Promise(() => {});
}

await takePart(JSON.parse(process.argv[2] ?? "{}") as LoopOrder);
