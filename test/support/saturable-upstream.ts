import { bundledProgram } from "./bundled-program.js";
import { HttpClient } from "./http-client.js";
import type { Stage } from "./stage.js";
import { waitFor } from "./wait.js";

/** How an upstream is made. */
export interface SaturableSettings {
  /** Requests that it works on at once. */
  readonly workerCount: number;
  readonly meanServiceMs: number;
  readonly seed: number;
  /** Whether it says by ORCA how busy it is. */
  readonly reportsLoad: boolean;
}

/** What it has seen. */
export interface SaturableStats {
  readonly arrivedCount: number;
  readonly servedCount: number;
  /** Worked on to the end for clients that had left. */
  readonly wastedCount: number;
  readonly inFlightCount: number;
  /** The most in flight at once since `freshPeak`. */
  readonly inFlightMost: number;
  readonly queuedCount: number;
  /** Requests by the name that the load gave them, and how often they came in all. */
  readonly requestCount: number;
  readonly attemptCount: number;
}

/** An upstream of known capacity, in a process of its own. */
export interface SaturableUpstream {
  readonly port: number;
  /** Requests a second that it can serve. */
  readonly capacityPerSecond: number;
  stats(): Promise<SaturableStats>;
  /** Changes its capacity while it runs. */
  setWorkers(count: number): Promise<void>;
  freshPeak(): Promise<void>;
}

/** Starts one; it ends with the stage. */
export async function startSaturableUpstream(
  stage: Stage,
  settings: SaturableSettings,
): Promise<SaturableUpstream> {
  const script = bundledProgram(new URL("./saturable-upstream-program.ts", import.meta.url));
  const child = stage.spawn({
    name: "saturable upstream",
    file: process.execPath,
    args: [script, JSON.stringify(settings)],
  });
  const port = Number(
    await waitFor("the upstream listens", () => /^\d+$/m.exec(child.output)?.[0]),
  );
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  const get = async (path: string): Promise<string> => (await http.send({ port, path })).body;
  return {
    port,
    capacityPerSecond: (settings.workerCount / settings.meanServiceMs) * 1_000,
    stats: async () => JSON.parse(await get("/-/stats")) as SaturableStats,
    setWorkers: async (count) => void (await get(`/-/workers?count=${count}`)),
    freshPeak: async () => void (await get("/-/fresh-peak")),
  };
}
