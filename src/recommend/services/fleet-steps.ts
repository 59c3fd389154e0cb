import type { LoadWindow } from "./service-observations.js";

/** One second of one replica and service. */
export interface ReplicaSecond {
  /** When it ended, in milliseconds since 1970. */
  readonly endMs: number;
  readonly inFlight: number;
  readonly admitted: number;
  /** 0: none, or unknown. */
  readonly limit: number;
  /** The latency that Envoys report to the leader, for the whole fleet; 0: they report none. */
  readonly rttMs: number;
}

/** Seconds in a window. A single second has too few requests. */
const windowSeconds = 10;
const windowMs = windowSeconds * 1_000;

/** Maximum number of windows: one day. */
export const fleetWindowsMax = 8_640;

interface ReplicaSums {
  seconds: number;
  inFlight: number;
  admitted: number;
  limit: number;
  rttMs: number;
}

/**
 * Combines reports of replicas into means of ten seconds of the fleet. Each replica counts the
 * requests that it admits itself, so these are added up. Envoys report values of the fleet.
 */
export class FleetSteps {
  /** By the number of the window since 1970, then by replica. */
  readonly #windows = new Map<number, Map<string, ReplicaSums>>();

  /** Takes a second. Each second must be taken only once. */
  add(replica: string, second: ReplicaSecond): void {
    const number = Math.ceil(second.endMs / windowMs);
    let window = this.#windows.get(number);
    if (window === undefined) {
      if (this.#windows.size >= fleetWindowsMax) return;
      window = new Map();
      this.#windows.set(number, window);
    }
    const sums = window.get(replica) ?? {
      seconds: 0,
      inFlight: 0,
      admitted: 0,
      limit: 0,
      rttMs: 0,
    };
    window.set(replica, sums);
    sums.seconds += 1;
    sums.inFlight += second.inFlight;
    sums.admitted += second.admitted;
    sums.limit += second.limit;
    sums.rttMs += second.rttMs;
  }

  /** Returns windows in which every second of each replica is known, in ascending order. */
  windows(): readonly LoadWindow[] {
    const numbers = [...this.#windows.keys()].sort((one, other) => one - other);
    return numbers.flatMap((number): readonly LoadWindow[] => {
      const replicas = [...(this.#windows.get(number)?.values() ?? [])];
      if (replicas.some(({ seconds }) => seconds !== windowSeconds)) return [];
      const mean = (of: Exclude<keyof ReplicaSums, "seconds">) =>
        replicas.reduce((sum, one) => sum + one[of], 0) / windowSeconds;
      const shared = replicas.find(({ rttMs }) => rttMs > 0);
      const at = { startMs: (number - 1) * windowMs, lengthMs: windowMs };
      if (shared === undefined) {
        return [
          { ...at, inFlight: mean("inFlight"), perSecond: mean("admitted"), limit: mean("limit") },
        ];
      }
      const { inFlight, rttMs, limit } = shared;
      const latencyMs = rttMs / windowSeconds;
      const fleet = { inFlight: inFlight / windowSeconds, limit: limit / windowSeconds };
      return [{ ...at, ...fleet, latencyMs }];
    });
  }
}
