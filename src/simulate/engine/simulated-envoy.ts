import type { Random } from "../../core/base/clock.js";
import type { Scenario } from "../../policy/scenario/parse-scenario.js";
import type { EventCalendar } from "./calendar.js";
import type { HeadgateReplica } from "./headgate-replica.js";
import type { SimulatedHeadgate } from "./simulated-headgate.js";

/** A request on its way through an Envoy. */
export interface EnvoyCall {
  /** The Envoy is gone, and the connection with it. */
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

/** A proxy: it chooses a replica of Headgate for each request, or keeps to one. */
export class SimulatedEnvoy {
  readonly index: number;
  readonly zone: number;
  readonly #parts: EnvoyParts;
  /** Its requests at each replica that have not ended. */
  readonly #activeCounts: number[];
  readonly #open = new Set<EnvoyCall>();
  #connection: { readonly replica: HeadgateReplica; readonly untilMs: number } | undefined;
  #awayCount = 0;
  /** Attempts that came here. */
  attemptCount = 0;

  constructor(parts: EnvoyParts) {
    const { index, zone, replicas } = parts;
    this.index = index;
    this.zone = zone;
    this.#parts = parts;
    this.#activeCounts = replicas.map(() => 0);
  }

  /** Whether it takes no connections: its zone is lost, or it restarts. */
  get isAway(): boolean {
    return this.#awayCount > 0;
  }

  /** A request comes. */
  begin(call: EnvoyCall): void {
    this.attemptCount += 1;
    this.#open.add(call);
  }

  /** A request is over. @param headgate whom it asked */
  end(call: EnvoyCall, headgate: SimulatedHeadgate | undefined): void {
    this.#open.delete(call);
    if (headgate !== undefined) this.forget(headgate);
  }

  /** A request is no longer at a replica. */
  forget({ index }: SimulatedHeadgate): void {
    this.#activeCounts[index] = (this.#activeCounts[index] ?? 1) - 1;
  }

  /** The replica that it asks about a request; undefined where none can be reached. */
  choose(): SimulatedHeadgate | undefined {
    const { settings } = this.#parts;
    const replica = settings.balancing === "connection" ? this.#connected() : this.#lessBusy();
    if (replica?.current === undefined) return undefined;
    this.#activeCounts[replica.index] = (this.#activeCounts[replica.index] ?? 0) + 1;
    return replica.current;
  }

  /** It closes its connections, and takes new ones when it is back. */
  leave(): void {
    this.#awayCount += 1;
  }

  /** It is gone, with all requests on their way through it. */
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
    // At first evenly, and as chance has it from then on.
    const replica = known === undefined ? ready[index % ready.length] : this.#any(ready);
    const lifetimeMs = settings.connectionLifetime ?? Number.POSITIVE_INFINITY;
    // Connections do not all end at once.
    const partMs = known === undefined ? lifetimeMs * (1 - random.next()) : lifetimeMs;
    this.#connection = replica && { replica, untilMs: nowMs + partMs };
    return replica;
  }

  /** Those that can be reached, of its own zone where that is preferred and possible. */
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
