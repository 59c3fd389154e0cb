import type { LoadWindow } from "./service-observations.js";

/** A second of one replica and service. */
export interface ReplicaSecond {
  /** When it ended, in milliseconds since 1970. */
  readonly endMs: number;
  readonly inFlight: number;
  readonly admitted: number;
  /** 0: none, or unknown. */
  readonly limit: number;
  /** What Envoys report to the leader, for the whole fleet; 0: they do not. */
  readonly rttMs: number;
}

/** Seconds that are taken together: one alone has too few requests. */
const windowSeconds = 10;
const windowMs = windowSeconds * 1_000;

/** The most windows: a day. */
export const fleetWindowsMax = 8_640;

interface ReplicaSums {
  seconds: number;
  inFlight: number;
  admitted: number;
  limit: number;
  rttMs: number;
}

/**
 * What replicas report of a service, as means of ten seconds of the fleet. Replicas count the
 * requests that they admit themselves, so these are added up; what Envoys report is the fleet's.
 */
export class FleetSteps {
  /** By the number of the window since 1970, then by replica. */
  readonly #windows = new Map<number, Map<string, ReplicaSums>>();

  /** Takes a second; one that was taken before must not be taken again. */
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

  /** All windows of which every second is known of each replica, in the order of time. */
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
