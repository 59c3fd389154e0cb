import { type EnvoyComparison, envoyCases, runBoth } from "../support/simulated-envoy.js";
import { Stage } from "../support/stage.js";
import { layOut } from "./report.js";

/** How far the simulator may be from the real programs: points of goodput, and a part of p99. */
const goodputPointsMax = 3;
const p99ErrorMax = 0.15;

/** Ten workers serve 100 requests a second. */
const meanServiceMs = 100;

/** What a comparison printed, and whether it is near enough. */
export interface EnvoyReport {
  readonly text: string;
  readonly isNear: boolean;
}

/** Scenarios in the simulator, and through a real Envoy with a real Headgate. */
export async function tellSimulateEnvoy(durationMs: number, only: string): Promise<EnvoyReport> {
  const rows: string[][] = [];
  let isNear = true;
  for (const one of envoyCases.filter(({ name }) => name.includes(only))) {
    process.stderr.write(`${one.name} ...\n`);
    const stage = new Stage();
    await stage.open();
    try {
      const found = await runBoth(stage, one, { durationMs, meanServiceMs });
      rows.push([one.name, ...cellsOf(found)]);
      isNear &&= isNearEnough(found);
    } finally {
      await stage.close();
    }
  }
  const titles = ["scenario", "goodput", "real", "off", "p99", "real", "off"];
  const others = ["refused", "real", "attempts", "real", "sent late"];
  return { text: layOut([[...titles, ...others], ...rows]), isNear };
}

function isNearEnough({ simulated, real }: EnvoyComparison): boolean {
  const points = 100 * Math.abs(simulated.goodputRatio - real.goodputRatio);
  return points <= goodputPointsMax && Math.abs(p99Error(simulated, real)) <= p99ErrorMax;
}

function p99Error(simulated: EnvoyComparison["simulated"], real: EnvoyComparison["real"]): number {
  // Where nobody is served there is no latency.
  if (Number.isNaN(simulated.p99Ms) && Number.isNaN(real.p99Ms)) return 0;
  return simulated.p99Ms / real.p99Ms - 1;
}

function cellsOf({ simulated, real, lateRatio }: EnvoyComparison): readonly string[] {
  const points = 100 * (simulated.goodputRatio - real.goodputRatio);
  return [
    percent(simulated.goodputRatio),
    percent(real.goodputRatio),
    `${points.toFixed(1)} points`,
    latency(simulated.p99Ms),
    latency(real.p99Ms),
    percent(p99Error(simulated, real)),
    percent(simulated.refusedRatio),
    percent(real.refusedRatio),
    simulated.attemptsPerRequest.toFixed(2),
    real.attemptsPerRequest.toFixed(2),
    percent(lateRatio),
  ];
}

function latency(ms: number): string {
  return Number.isNaN(ms) ? "-" : `${Math.round(ms)} ms`;
}

function percent(ratio: number): string {
  return `${(100 * ratio).toFixed(1)} %`;
}
