import { formatTimestamp } from "../../src/core/base/timestamp.js";
import type { LoggedRequest } from "../../src/simulate/logged-request.js";
import { FakeRandom } from "./fake-random.js";

/** Callers that send by chance, and what they do. */
export interface GeneratedLog {
  readonly seed: number;
  readonly days: number;
  readonly callers: number;
  /** Requests a day, of all callers together. */
  readonly perDay: number;
  /** How fast the rates of callers fall with their rank; 0: all send as much. */
  readonly zipf: number;
  /** How often a day the caller `wild` sends how many requests, 20 a second. */
  readonly wild?: { readonly bursts: number; readonly size: number };
}

/** 2026-01-05, a Monday. */
export const firstDayUs = 1_767_571_200_000_000;

const dayUs = 86_400_000_000;

/**
 * Requests of Poisson callers with Zipf-distributed rates, with twice the mean rate at 14:00 UTC
 * and none at 02:00, in the order of time.
 */
export function* generateRequests(log: GeneratedLog): Generator<{ timeUs: number; user: string }> {
  const random = new FakeRandom(log.seed);
  const weights = Array.from({ length: log.callers }, (_, i) => (i + 1) ** -log.zipf);
  const sums: number[] = [];
  for (const weight of weights) sums.push((sums.at(-1) ?? 0) + weight);
  const total = sums.at(-1) ?? 1;
  for (let day = 0; day < log.days; day += 1) {
    const requests: { timeUs: number; user: string }[] = [];
    const meanGapUs = dayUs / (2 * log.perDay);
    for (let at = 0; ; ) {
      at += -Math.log(1 - random.next()) * meanGapUs;
      if (at >= dayUs) break;
      const shape = (1 - Math.cos((2 * Math.PI * (at - dayUs / 12)) / dayUs)) / 2;
      if (random.next() >= shape) continue;
      const user = `user-${rankOf(sums, random.next() * total)}`;
      requests.push({ timeUs: firstDayUs + day * dayUs + Math.floor(at), user });
    }
    const { bursts, size } = log.wild ?? { bursts: 0, size: 0 };
    for (let burst = 0; burst < bursts; burst += 1) {
      const startUs = firstDayUs + day * dayUs + Math.floor(random.next() * (dayUs - 600_000_000));
      for (let i = 0; i < size; i += 1) {
        requests.push({ timeUs: startUs + 50_000 * i, user: "wild" });
      }
    }
    yield* requests.sort((a, b) => a.timeUs - b.timeUs);
  }
}

function rankOf(sums: readonly number[], drawn: number): number {
  let [low, high] = [0, sums.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sums[middle] ?? 0) > drawn) high = middle;
    else low = middle + 1;
  }
  return low + 1;
}

/** The same as a log of CSV. */
export function generatedCsv(log: GeneratedLog): string {
  const lines = ["time,x-user"];
  for (const { timeUs, user } of generateRequests(log)) {
    const fraction = String(timeUs % 1_000_000).padStart(6, "0");
    lines.push(`${formatTimestamp(timeUs).slice(0, -1)}.${fraction}Z,${user}`);
  }
  return `${lines.join("\n")}\n`;
}

/** A request as a reader has it that wants the header of the user alone. */
export function requestOf(user: string, timeUs: number): LoggedRequest {
  return { timeUs, wasLimited: false, authority: "", address: "", headers: [user] };
}
