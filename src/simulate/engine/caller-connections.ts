import type { CallerSettings } from "./request-source.js";
import type { SeededRandom } from "./seeded-random.js";
import type { SimulatedEnvoy } from "./simulated-envoy.js";
import type { SimulatedFleet } from "./simulated-fleet.js";

interface ConnectionParts {
  readonly settings: NonNullable<CallerSettings["keepAlive"]>;
  readonly fleet: SimulatedFleet;
  readonly random: SeededRandom;
}

interface Connection {
  readonly envoy: SimulatedEnvoy;
  readonly untilMs: number;
}

/** Connections that a caller keeps, each to one Envoy until it ends. */
export class CallerConnections {
  readonly #parts: ConnectionParts;
  readonly #connections: (Connection | undefined)[];

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
    this.#connections = new Array<undefined>(parts.settings.connections).fill(undefined);
  }

  /** The Envoy of any of the connections, which is opened where it is over. */
  pick(nowMs: number): SimulatedEnvoy | undefined {
    const { fleet, random, settings } = this.#parts;
    const place = Math.floor(random.next() * this.#connections.length);
    const known = this.#connections[place];
    if (known !== undefined && !known.envoy.isAway && nowMs < known.untilMs) return known.envoy;
    const envoy = fleet.pickEnvoy(random);
    const lifetimeMs = settings.lifetime ?? Number.POSITIVE_INFINITY;
    // The first ones do not all end at once.
    const partMs = known === undefined ? lifetimeMs * (1 - random.next()) : lifetimeMs;
    this.#connections[place] = envoy && { envoy, untilMs: nowMs + partMs };
    return envoy;
  }
}
