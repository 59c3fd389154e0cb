import type { Random } from "../../core/base/clock.js";
import type { Scenario } from "../../policy/scenario/parse-scenario.js";
import type { EventCalendar } from "./calendar.js";
import type { HeadgateReplica } from "./headgate-replica.js";
import type { SimulatedHeadgate } from "./simulated-headgate.js";

/** A request on its way through an Envoy. */
export interface EnvoyCall {
  /** Called when the Envoy is gone, and the connection with it. */
  envoyLost(): void;
}

interface EnvoyParts {
  readonly index: number;
  readonly zone: number;
  readonly calendar: EventCalendar;
  readonly random: Random;
  readonly replicas: readonly HeadgateReplica[];
  readonly settings: Pick<Scenario["fleet"], "balancing" | "connectionLifetime" | "zoneLocal">;
}

/** A proxy. It chooses a replica of Headgate for each request, or keeps one. */
export class SimulatedEnvoy {
  readonly index: number;
  readonly zone: number;
  readonly #parts: EnvoyParts;
  /** Its open requests at each replica. */
  readonly #activeCounts: number[];
  readonly #open = new Set<EnvoyCall>();
  #connection: { readonly replica: HeadgateReplica; readonly untilMs: number } | undefined;
  #awayCount = 0;
  /** Number of attempts that it received. */
  attemptCount = 0;

  constructor(parts: EnvoyParts) {
    const { index, zone, replicas } = parts;
    this.index = index;
    this.zone = zone;
    this.#parts = parts;
    this.#activeCounts = replicas.map(() => 0);
  }

  /** Whether it accepts no connections: its zone is lost, or it restarts. */
  get isAway(): boolean {
    return this.#awayCount > 0;
  }

  /** Registers a request. */
  begin(call: EnvoyCall): void {
    this.attemptCount += 1;
    this.#open.add(call);
  }

  /** Registers the end of a request. @param headgate the replica that it asked */
  end(call: EnvoyCall, headgate: SimulatedHeadgate | undefined): void {
    this.#open.delete(call);
    if (headgate !== undefined) this.forget(headgate);
  }

  /** Removes a request from the count of a replica. */
  forget({ index }: SimulatedHeadgate): void {
    this.#activeCounts[index] = (this.#activeCounts[index] ?? 1) - 1;
  }

  /** Chooses the replica for a request; undefined if none is reachable. */
  choose(): SimulatedHeadgate | undefined {
    const { settings } = this.#parts;
    const replica = settings.balancing === "connection" ? this.#connected() : this.#lessBusy();
    if (replica?.current === undefined) return undefined;
    this.#activeCounts[replica.index] = (this.#activeCounts[replica.index] ?? 0) + 1;
    return replica.current;
  }

  /** Closes its connections. It opens new ones when it is back. */
  leave(): void {
    this.#awayCount += 1;
  }

  /** Fails, and loses all requests on their way through it. */
  crash(): void {
    this.leave();
    for (const call of [...this.#open]) call.envoyLost();
  }

  comeBack(): void {
    this.#awayCount -= 1;
    this.#connection = undefined;
  }

  /** Source: Envoy, LEAST_REQUEST with two choices. */
  #lessBusy(): HeadgateReplica | undefined {
    const ready = this.#ready();
    if (ready.length <= 1) return ready[0];
    const [one, other] = [this.#any(ready), this.#any(ready)];
    return this.#activeOf(other) < this.#activeOf(one) ? other : one;
  }

  #activeOf(replica: HeadgateReplica | undefined): number {
    return this.#activeCounts[replica?.index ?? 0] ?? 0;
  }

  #connected(): HeadgateReplica | undefined {
    const { calendar, settings, index, random } = this.#parts;
    const { nowMs } = calendar;
    const known = this.#connection;
    if (known?.replica.current !== undefined && nowMs < known.untilMs) return known.replica;
    const ready = this.#ready();
    // The first connections are distributed evenly, later ones at random.
    const replica = known === undefined ? ready[index % ready.length] : this.#any(ready);
    const lifetimeMs = settings.connectionLifetime ?? Number.POSITIVE_INFINITY;
    // Connections end at different times.
    const partMs = known === undefined ? lifetimeMs * (1 - random.next()) : lifetimeMs;
    this.#connection = replica && { replica, untilMs: nowMs + partMs };
    return replica;
  }

  /** Returns reachable replicas, from its own zone if that is preferred and possible. */
  #ready(): readonly HeadgateReplica[] {
    const { replicas, settings } = this.#parts;
    const ready = replicas.filter(({ current }) => current !== undefined);
    if (!settings.zoneLocal) return ready;
    const own = ready.filter(({ zone }) => zone === this.zone);
    return own.length > 0 ? own : ready;
  }

  #any(replicas: readonly HeadgateReplica[]): HeadgateReplica | undefined {
    return replicas[Math.floor(this.#parts.random.next() * replicas.length)];
  }
}
