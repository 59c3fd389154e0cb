import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { systemClock } from "../../app/base/clock.js";
import { many } from "../../core/base/many.js";
import type { ServiceHistory } from "../../gen/headgate/admin/v1/admin_pb.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { formatDuration, parseDurationMs } from "../../policy/text/duration.js";
import type { SourceObservations } from "../../recommend/join-services.js";
import type { NotEnoughData } from "../../recommend/recommendation.js";
import { FleetSteps, fleetWindowsMax } from "../../recommend/services/fleet-steps.js";
import { rounded } from "../../recommend/services/knee-words.js";
import { observeWindows } from "../../recommend/services/service-observations.js";
import { adminCallFailure } from "../admin/admin-call-failure.js";
import { type AdminClient, type AdminFlags, createAdminClient } from "../admin/admin-client.js";
import { usageFailure } from "../terminal/command-failure.js";
import type { CommandContext } from "../terminal/context.js";
import { countText } from "../terminal/quantity.js";

/** Seconds are asked for again so often: replicas keep 15 minutes of them. */
const pollMs = 30_000;

const secondMs = 1_000;

/** The longest time that is watched: what `FleetSteps` holds. */
const watchMsMax = 10_000 * fleetWindowsMax;

/** Rules whose hits are asked for at once. */
const rulesMax = 200;

/** What stands on the command line about a fleet. */
export interface FleetFlags extends AdminFlags {
  readonly watch?: string;
}

/** @throws CommandFailure */
export function readWatchMs({ watch = "0s" }: FleetFlags): number {
  const watchMs = parseDurationMs(watch);
  if (watchMs === undefined || watchMs > watchMsMax) {
    throw usageFailure(`--watch must be a duration of at most ${formatDuration(watchMsMax)}`);
  }
  return watchMs;
}

/**
 * Asks a running fleet for the last 15 minutes of some services, and goes on for `watchMs`, or
 * until somebody ends it.
 *
 * @throws CommandFailure where no Headgate answers
 */
export async function observeFleet(
  services: readonly ServicePolicy[],
  call: {
    readonly flags: FleetFlags;
    readonly watchMs: number;
    readonly rules: readonly { readonly domain: string; readonly label: string }[];
    readonly context: CommandContext;
  },
): Promise<SourceObservations> {
  const { flags, watchMs, rules, context } = call;
  const client = createAdminClient(flags, context);
  const reader = new FleetReader(client, services);
  let isEnded = false;
  const startMs = systemClock.monotonicMs();
  try {
    await reader.poll();
    await waitWhile(context, async (wait) => {
      for (;;) {
        const leftMs = startMs + watchMs - systemClock.monotonicMs();
        if (leftMs <= 0 || isEnded) return;
        const words = `${countText(reader.secondCount)} seconds of replicas so far`;
        context.output.err(
          `Watching: ${formatDuration(Math.ceil(leftMs / 1e3) * 1e3)} left, ${words}.`,
        );
        isEnded = await wait(Math.min(pollMs, leftMs));
        await reader.poll();
      }
    });
    return {
      services: reader.observations(),
      proxies: {},
      notEnough: await ruleRates(client, rules.slice(0, rulesMax)),
    };
  } catch (thrown) {
    throw adminCallFailure(thrown, client);
  }
}

/** Runs something that waits; Ctrl-C ends the wait, and what was collected counts. */
async function waitWhile(
  { terminal }: CommandContext,
  run: (wait: (delayMs: number) => Promise<boolean>) => Promise<void>,
): Promise<void> {
  let isEnded = false;
  let wake = (): void => {};
  const forget = terminal.onEnd(() => {
    isEnded = true;
    wake();
  });
  try {
    await run(async (delayMs) => {
      if (isEnded) return true;
      await new Promise<void>((resolve) => {
        const cancel = systemClock.schedule(delayMs, resolve);
        wake = () => {
          cancel();
          resolve();
        };
      });
      return isEnded;
    });
  } finally {
    forget();
  }
}

/** Collects seconds of replicas, each once. */
class FleetReader {
  readonly #client: AdminClient;
  readonly #steps: ReadonlyMap<string, FleetSteps>;
  /** The end of the last second that was taken, by service and replica. */
  readonly #taken = new Map<string, number>();
  #silentReplicas = 0;
  secondCount = 0;

  constructor(client: AdminClient, services: readonly ServicePolicy[]) {
    this.#client = client;
    this.#steps = new Map(services.map(({ name }) => [name, new FleetSteps()]));
  }

  async poll(): Promise<void> {
    for (const [service, steps] of this.#steps) {
      const taken = [...this.#taken].flatMap(([id, ms]) =>
        id.startsWith(`${service} `) ? [ms] : [],
      );
      const since = taken.length === 0 ? {} : { since: timestampFromMs(Math.min(...taken)) };
      const answer = await this.#client.fleet.getHistory({ service, ...since });
      this.#silentReplicas = Math.max(this.#silentReplicas, answer.silentReplicas);
      for (const { replica, services } of answer.replicas) {
        const found = services.find(({ name }) => name === service);
        if (found !== undefined) this.#take(steps, `${service} ${replica}`, found);
      }
    }
  }

  observations() {
    const notes = [
      "These are minutes of a running fleet: peaks of a day or a week are not in them. " +
        "Use --watch over a peak, --prometheus or an access log for more.",
    ];
    if (this.#silentReplicas > 0) {
      notes.push(`${many(this.#silentReplicas, "replica")} did not answer in time.`);
    }
    return [...this.#steps].map(([service, steps]) => {
      const named = { service, source: "the fleet" };
      const observed = observeWindows(named, { windows: steps.windows() });
      return { ...observed, notes: [...notes, ...observed.notes] };
    });
  }

  #take(steps: FleetSteps, id: string, history: ServiceHistory): void {
    if (history.start === undefined) return;
    const startMs = timestampMs(history.start);
    const from = this.#taken.get(id) ?? Number.NEGATIVE_INFINITY;
    for (const [i, inFlight] of history.inFlight.entries()) {
      const endMs = startMs + i * secondMs;
      if (endMs <= from) continue;
      const admitted = history.classes.reduce((sum, one) => sum + (one.admitted[i] ?? 0), 0);
      const [limit, rttMs] = [history.concurrencyLimit[i] ?? 0, history.rttMs[i] ?? 0];
      steps.add(id, { endMs, inFlight, admitted, limit, rttMs });
      this.#taken.set(id, endMs);
      this.secondCount += 1;
    }
  }
}

/** The highest rates of rules in ten seconds: of all callers together. */
async function ruleRates(
  client: AdminClient,
  rules: readonly { readonly domain: string; readonly label: string }[],
): Promise<readonly NotEnoughData[]> {
  if (rules.length === 0) return [];
  const { replicas } = await client.fleet.getHistory({
    rules: rules.map(({ domain, label }) => ({ domain, label })),
  });
  return rules.flatMap(({ domain, label }) => {
    const sums = new Map<number, number>();
    for (const { rules: known } of replicas) {
      const found = known.find((one) => one.domain === domain && one.label === label);
      if (found?.start === undefined) continue;
      const startMs = timestampMs(found.start);
      for (const [i, hits] of found.hits.entries()) {
        const endMs = startMs + 10 * i * secondMs;
        sums.set(endMs, (sums.get(endMs) ?? 0) + hits);
      }
    }
    const most = Math.max(0, ...sums.values());
    if (most === 0) return [];
    const missing =
      `The fleet knows the hits of all callers together: ${rounded(most / 10)} per second at ` +
      "most in the last 15 minutes. A limit for each caller needs an access log of some days.";
    return [{ subject: `${domain}/${label}`, missing: [missing] }];
  });
}
