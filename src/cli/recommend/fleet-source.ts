import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { many } from "../../core/base/many.js";
import type { ServiceHistory } from "../../gen/headgate/admin/v1/admin_pb.js";
import { systemClock } from "../../host/clock.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { formatDuration, parseDurationMs } from "../../policy/text/duration.js";
import type { StepObservations, StepSubjects } from "../../recommend/join-services.js";
import { FleetSteps, fleetWindowsMax } from "../../recommend/services/fleet-steps.js";
import { observeWindows } from "../../recommend/services/service-observations.js";
import { adminCallFailure } from "../admin/admin-call-failure.js";
import { type AdminClient, createAdminClient } from "../admin/admin-client.js";
import type { AdminFlags } from "../admin/admin-flags.js";
import { usageFailure } from "../terminal/command-failure.js";
import type { CommandContext } from "../terminal/context.js";
import { countText } from "../terminal/quantity.js";
import { RuleHistories } from "./fleet-rules.js";

/** Polling interval. Replicas keep 15 minutes of seconds. */
const pollMs = 30_000;

const secondMs = 1_000;

/** Maximum watch time: the capacity of `FleetSteps`. */
const watchMsMax = 10_000 * fleetWindowsMax;

/** Flags for a running fleet. */
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
 * Reads the last 15 minutes of some services from a running fleet, and continues for `watchMs`, or
 * until the user ends it.
 *
 * @throws CommandFailure if no Headgate answers
 */
export async function observeFleet(
  { services, rules }: StepSubjects,
  call: {
    readonly flags: FleetFlags;
    readonly watchMs: number;
    readonly context: CommandContext;
  },
): Promise<StepObservations> {
  const { flags, watchMs, context } = call;
  const client = createAdminClient(flags, context);
  const reader = new FleetReader(client, services);
  const ruleReader = new RuleHistories(client, rules);
  let isEnded = false;
  const startMs = systemClock.monotonicMs();
  try {
    await reader.poll();
    await ruleReader.poll();
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
        await ruleReader.poll();
      }
    });
    return { services: reader.observations(), proxies: {}, ...ruleReader.finish() };
  } catch (thrown) {
    throw adminCallFailure(thrown, client);
  }
}

/** Runs a function that waits. Ctrl-C ends the wait, and the data collected so far is used. */
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
  /** End of the last second taken, by service and replica. */
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
