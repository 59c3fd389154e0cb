import type { Service } from "../../gen/headgate/admin/v1/admin_pb.js";

/** A service as the fleet has it, and as each replica sees it. */
export interface FleetService {
  readonly name: string;
  readonly algorithm: string;
  /** Whether Envoys share its limit: each replica then tells what is in flight in the fleet. */
  readonly isShared: boolean;
  /** Of the fleet, whoever shares it. */
  readonly limit: number;
  readonly inFlight: number;
  readonly waiting: number;
  readonly rttMs: number;
  readonly minRttMs: number;
  readonly gradient: number;
  readonly gate: string;
  /** The share of requests that admission refuses. */
  readonly shedRatio: number;
  readonly admitted: number;
  readonly refused: number;
  readonly overflowPerSecond: number;
  readonly replicas: readonly Service[];
}

/** From this part of refused requests on a service is said to shed. */
export const shedRatioNoticed = 0.01;

/** How far back "now" goes when shares of requests are measured. */
const measuredMs = 10_000;

/** Measures which share of requests admission refuses, by the totals that replicas tell. */
export class ShedMeter {
  #reported: { readonly atMs: number; readonly services: readonly Service[] }[] = [];

  /** Takes what was told just now; the shares by service, without those that nobody asked. */
  measure(services: readonly Service[], nowMs: number): ReadonlyMap<string, number> {
    const oldest = this.#reported.findLastIndex(({ atMs }) => atMs <= nowMs - measuredMs);
    this.#reported = [...this.#reported.slice(Math.max(0, oldest)), { atMs: nowMs, services }];
    const before = new Map(this.#reported[0]?.services.map((one) => [idOf(one), one]));
    const sums = new Map<string, { admitted: number; refused: number }>();
    for (const one of services) {
      const since = before.get(idOf(one));
      // What a replica had decided before it was first heard is nothing of now.
      if (since === undefined || one.admitted < since.admitted) continue;
      if (one.refused < since.refused) continue;
      const { admitted = 0, refused = 0 } = sums.get(one.name) ?? {};
      sums.set(one.name, {
        admitted: admitted + Number(one.admitted - since.admitted),
        refused: refused + Number(one.refused - since.refused),
      });
    }
    return new Map(
      [...sums]
        .filter(([, { admitted, refused }]) => admitted + refused > 0)
        .map(([name, { admitted, refused }]) => [name, refused / (admitted + refused)]),
    );
  }
}

function idOf({ name, replica }: Service): string {
  return JSON.stringify([name, replica]);
}

/**
 * Services by name, with what replicas see put together.
 *
 * @param shed measured shares; a service without one is shown with what its replicas expect
 */
export function mergeServices(
  services: readonly Service[],
  shed: ReadonlyMap<string, number> = new Map(),
): readonly FleetService[] {
  const names = [...new Set(services.map(({ name }) => name))].sort();
  return names.map((name) => {
    const replicas = services.filter((one) => one.name === name);
    const expected = Math.max(0, ...replicas.map(({ rejectRatio }) => rejectRatio));
    return mergeOne(replicas, shed.get(name) ?? expected);
  });
}

function mergeOne(replicas: readonly Service[], shedRatio: number): FleetService {
  const [first] = replicas;
  const isShared = replicas.some(({ shares }) => shares.length > 0);
  const sum = (of: (one: Service) => bigint): number =>
    replicas.reduce((total, one) => total + Number(of(one)), 0);
  const most = (of: (one: Service) => number): number => Math.max(0, ...replicas.map(of));
  const together = (of: (one: Service) => bigint): number =>
    isShared ? most((one) => Number(of(one))) : sum(of);
  const gradients = replicas.map(({ gradient }) => gradient).filter((value) => value > 0);
  return {
    name: first?.name ?? "",
    algorithm: first?.law ?? "",
    isShared,
    limit: most(({ concurrencyLimit }) => Number(concurrencyLimit)),
    inFlight: together(({ inFlight }) => inFlight),
    waiting: sum(({ waiting }) => waiting),
    rttMs: most(({ rttMs }) => rttMs),
    minRttMs: most(({ minRttMs }) => minRttMs),
    gradient: gradients.length === 0 ? 0 : Math.min(...gradients),
    gate: worstGate(replicas.map(({ gate }) => gate)),
    shedRatio,
    admitted: sum(({ admitted }) => admitted),
    refused: sum(({ refused }) => refused),
    overflowPerSecond: most(({ overflowPerSecond }) => overflowPerSecond),
    replicas,
  };
}

function worstGate(gates: readonly string[]): string {
  return ["closed", "limiting", "open"].find((gate) => gates.includes(gate)) ?? "";
}

/** How a service does, in a word. */
export function judgeService(service: FleetService): {
  readonly tone: "good" | "warn" | "bad";
  readonly word: string;
} {
  const { gate, shedRatio, limit, inFlight, waiting, overflowPerSecond } = service;
  if (gate === "closed") return { tone: "bad", word: "gate closed" };
  if (gate === "limiting" || shedRatio >= shedRatioNoticed)
    return { tone: "bad", word: "shedding" };
  if (overflowPerSecond > 0) return { tone: "bad", word: "breakers refuse" };
  if (waiting > 0 || (limit > 0 && inFlight >= limit)) return { tone: "warn", word: "full" };
  return { tone: "good", word: "healthy" };
}
