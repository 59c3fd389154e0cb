import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type App, startApp } from "../../src/app/app.js";
import { type LogEvent, silentLogger } from "../../src/app/base/logger.js";
import { configOf, type Env, quietEnv } from "./configured-store.js";
import { sumOfSeries } from "./headgate-process.js";
import { parseHere } from "./parse-here.js";
import type { Stage } from "./stage.js";

/** A running service of this process, until the stage's end. */
export interface TestApp {
  readonly app: App;
  readonly grpcPort: number;
  /** Where its policy stands. */
  readonly policyPath: string;
  /** What it has logged, but for details. */
  readonly events: readonly LogEvent[];
  /** The sum of a metric's series that have these labels. */
  metric(name: string, labels?: Readonly<Record<string, string>>): Promise<number>;
  /** Its page of metrics. */
  metrics(): Promise<string>;
}

/** Starts a service with a policy and these settings; its policies are parsed in this thread. */
export async function startTestApp(stage: Stage, policy: string, env: Env = {}): Promise<TestApp> {
  const policyPath = join(await mkdtemp(join(stage.folder, "app-")), "policy.yaml");
  await writeFile(policyPath, policy);
  const events: LogEvent[] = [];
  const note = (event: LogEvent): void => void events.push(event);
  const logger = { ...silentLogger, info: note, warn: note, error: note };
  const config = configOf({ ...quietEnv, HEADGATE_POLICY: policyPath, ...env });
  const app = await startApp(config, { logger, parser: parseHere });
  stage.atEnd(() => app.close(0));
  if (app.grpcAddress.kind !== "tcp") throw new Error("the test asked for a port");
  const metrics = async (): Promise<string> =>
    (await fetch(`http://127.0.0.1:${app.httpAddress?.port}/metrics`)).text();
  return {
    app,
    grpcPort: app.grpcAddress.port,
    policyPath,
    events,
    metrics,
    metric: async (name, labels = {}) => sumOfSeries(await metrics(), name, labels),
  };
}
