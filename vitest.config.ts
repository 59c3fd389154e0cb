import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { seedsTimeoutMs } from "./test/support/seeds.js";

interface Kind {
  readonly name: string;
  readonly include: string | readonly string[];
  readonly exclude?: readonly string[];
  readonly testTimeout: number;
}

/** Finds what hangs. What computes takes ten times as long on a machine with other work. */
const hangsAfterMs = 180_000;

/** What computes: a file for each core. What runs beside takes the time in which one waits. */
const computing: readonly Kind[] = [
  { name: "unit", include: "test/unit/**/*.test.ts", testTimeout: hangsAfterMs },
  { name: "tidy", include: "test/tidy.test.ts", testTimeout: hangsAfterMs },
  { name: "golden", include: "test/golden/**/*.test.ts", testTimeout: hangsAfterMs },
];

/** What computes for long: `npm test` runs it beside all that waits, at a lower priority. */
const simulating: Kind = {
  name: "simulation",
  include: "test/simulation/**/*.test.ts",
  // What only computes hangs in no wait, and may have a tenth of a core for as long as others run.
  testTimeout: 1_800_000,
};

/**
 * What judges how much of an upstream's capacity is served: the load that it makes needs a core,
 * and beside it runs nothing but what has a lower priority.
 */
const loadFiles = [
  "test/e2e/admission.test.ts",
  "test/e2e/admission-halving.test.ts",
  "test/e2e/simulated-envoy.test.ts",
];

/**
 * What judges shares and limits under a steady load of a quarter of a core, for half a minute or
 * more; and how soon calls are answered when a network or a process fails.
 */
const feedbackFiles = [
  "test/e2e/critical-share.test.ts",
  "test/e2e/feedback.test.ts",
  "test/e2e/feedback-joining.test.ts",
  "test/e2e/feedback-shares.test.ts",
  "test/e2e/three-layers.test.ts",
  "test/fault/network-faults.test.ts",
  "test/fault/overload.test.ts",
];

const lastFiles = [...loadFiles, ...feedbackFiles];

/** What starts servers and waits for them most of the time. */
const waiting: readonly Kind[] = [
  { name: "contract", include: "test/contract/**/*.test.ts", testTimeout: hangsAfterMs },
  {
    name: "fault",
    include: "test/fault/**/*.test.ts",
    exclude: lastFiles,
    testTimeout: hangsAfterMs,
  },
  { name: "e2e", include: "test/e2e/**/*.test.ts", exclude: lastFiles, testTimeout: hangsAfterMs },
];

const loading: Kind = { name: "load", include: loadFiles, testTimeout: hangsAfterMs };

const feedback: Kind = { name: "feedback", include: feedbackFiles, testTimeout: hangsAfterMs };

/**
 * The files that take longest; of each kind they begin first, so that none is left over alone:
 * those of 15 s and more, and of 10 s where a kind is soon done.
 */
const slowFiles = [
  // These wait for most of a second, or more: the checks of `npm run all` have the cores meanwhile.
  "test/unit/app/observability/debug-http.test.ts",
  "test/unit/app/base/v8-flags.test.ts",
  "test/unit/rpc/policy-xds/ads-client.test.ts",
  "test/unit/app/tls/tls.termination.test.ts",
  "test/unit/tools/join-chunks.test.ts",
  "test/unit/cli/terminal/live-screen.test.ts",
  "test/unit/proto/admin-api.test.ts",
  "test/unit/app/policy/policy-xds.test.ts",
  "test/golden/generate.test.ts",
  "test/golden/policy.test.ts",
  // These four begin together, and the other three of their kind when one has ended.
  "test/e2e/three-layers.test.ts",
  "test/e2e/feedback.test.ts",
  "test/e2e/feedback-joining.test.ts",
  "test/e2e/feedback-shares.test.ts",
  "test/simulation/goodput.test.ts",
  "test/simulation/room-estimates.test.ts",
  "test/simulation/simulation.test.ts",
  "test/simulation/rooms.test.ts",
  "test/simulation/fleet-loop.test.ts",
  "test/simulation/recommended-limit.test.ts",
  "test/contract/cluster-faults.test.ts",
  "test/contract/fleet-views.test.ts",
  "test/contract/console-session.test.ts",
  "test/contract/quota-port.test.ts",
  "test/contract/decoders.test.ts",
  "test/contract/kafka-signal.test.ts",
  "test/fault/hostile-envoys.test.ts",
  "test/fault/budgets-edge.test.ts",
  "test/fault/own-overload.test.ts",
  "test/fault/failover.test.ts",
  "test/fault/shortage.test.ts",
  "test/fault/distinct-requests.test.ts",
  "test/fault/redis-faults.test.ts",
  "test/fault/idle-exchanges.test.ts",
  "test/fault/full-memory.test.ts",
  "test/fault/process-faults.test.ts",
  "test/e2e/waiting-room.test.ts",
  "test/e2e/site.test.ts",
  "test/e2e/demo-room.test.ts",
  "test/e2e/demo-llm.test.ts",
  "test/e2e/regions.test.ts",
  "test/e2e/opentelemetry.test.ts",
  "test/e2e/console-views.test.ts",
  "test/e2e/quota.test.ts",
  "test/e2e/docs.test.ts",
  "test/e2e/console-actions.test.ts",
  "test/e2e/console-faults.test.ts",
  "test/e2e/kafka-signal.test.ts",
  "test/e2e/recommend-fleet.test.ts",
  "test/e2e/observe.test.ts",
  "test/e2e/control-port.test.ts",
  "test/e2e/generated-protection-headgate.test.ts",
  "test/e2e/console-policy.test.ts",
  "test/e2e/waiting-room-operations.test.ts",
  "test/e2e/waiting-page.test.ts",
  "test/e2e/restart.test.ts",
  "test/e2e/quota-newcomers.test.ts",
  "test/e2e/newer-node.test.ts",
  "test/e2e/first-hour.test.ts",
];

const goneFiles = slowFiles.filter((path) => !existsSync(new URL(path, import.meta.url)));
if (goneFiles.length > 0) throw new Error(`files that are gone: ${goneFiles.join(", ")}`);

/**
 * Kinds come in the order of this file. In a fresh clone vitest knows no times of a run before, and
 * goes by the sizes of files.
 */
class SlowFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isSlow = (one: TestSpecification) =>
      slowFiles.some((path) => one.moduleId.endsWith(path));
    return projects.flatMap(({ test: { name } }) => {
      const own = sorted.filter(({ project }) => project.name === name);
      return [...own.filter(isSlow), ...own.filter((one) => !isSlow(one))];
    });
  }
}

const coreCount = Math.max(2, availableParallelism());

/** Each core has a file already: collecting garbage beside it, and often, only takes from others. */
const computingArgv = [
  "--min-semi-space-size=64",
  "--max-semi-space-size=128",
  "--single-threaded-gc",
];

/** A project for each kind of test, so that each also runs alone: `npm run unit`, `npm run e2e`. */
const projects = [
  ...computing.map((kind) =>
    projectOf(kind, { groupOrder: 0, maxWorkers: coreCount, execArgv: computingArgv }),
  ),
  projectOf(simulating, {
    groupOrder: 1,
    maxWorkers: coreCount,
    execArgv: computingArgv,
    setupFiles: ["test/support/lower-priority.ts"],
  }),
  projectOf(feedback, { groupOrder: 2, maxWorkers: coreCount + 2 }),
  projectOf(loading, { groupOrder: 3, maxWorkers: 1 }),
  // On two cores, four files at a time left 16 % of the cores idle, and took a fifth longer.
  ...waiting.map((kind) => projectOf(kind, { groupOrder: 4, maxWorkers: coreCount + 3 })),
];

// A file that has not changed is translated once, for all kinds and for the next run.
export default defineConfig({
  test: {
    projects,
    experimental: { fsModuleCache: true },
    sequence: { sequencer: SlowFilesFirst },
  },
});

function projectOf(
  { name, include, exclude = [], testTimeout }: Kind,
  {
    groupOrder,
    maxWorkers,
    execArgv = [],
    setupFiles = [],
  }: {
    readonly groupOrder: number;
    readonly maxWorkers: number;
    readonly execArgv?: readonly string[];
    readonly setupFiles?: readonly string[];
  },
) {
  return {
    test: {
      name,
      include: [include].flat(),
      exclude: [...exclude],
      testTimeout: seedsTimeoutMs(testTimeout),
      hookTimeout: 120_000,
      pool: "forks" as const,
      // No module of ours has state, so files that share a process do not meet in it; to import
      // everything anew for each of them took most of the time.
      isolate: false,
      // As Node imports them: a proxy around a module of CommonJS costs more than what it exports.
      deps: { interopDefault: false },
      execArgv: [...execArgv],
      setupFiles: [...setupFiles],
      maxWorkers,
      sequence: { groupOrder },
    },
  };
}
