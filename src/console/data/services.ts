import type { Service } from "../../gen/headgate/admin/v1/admin_pb.js";

/** A service in the fleet, and as seen by each replica. */
export interface FleetService {
  readonly name: string;
  readonly algorithm: string;
  /** Whether Envoys share its limit. Each replica then reports the fleet's requests in flight. */
  readonly isShared: boolean;
  /** Limit of the whole fleet, with or without shares. */
  readonly limit: number;
  readonly inFlight: number;
  readonly waiting: number;
  readonly rttMs: number;
  readonly minRttMs: number;
  readonly gradient: number;
  readonly gate: string;
  /** Ratio of requests that admission refused in the last ten seconds. */
  readonly shedRatio: number;
  readonly admitted: number;
  readonly refused: number;
  readonly overflowPerSecond: number;
  readonly replicas: readonly Service[];
}

/** From this ratio of refused requests on, a service is shown as shedding. */
export const shedRatioNoticed = 0.01;

/** Returns services by name, merged over all replicas. */
export function mergeServices(services: readonly Service[]): readonly FleetService[] {
  const names = [...new Set(services.map(({ name }) => name))].sort();
  return names.map((name) => mergeOne(services.filter((one) => one.name === name)));
}

function mergeOne(replicas: readonly Service[]): FleetService {
  const [first] = replicas;
  const isShared = replicas.some(({ shares }) => shares.length > 0);
  const sum = (of: (one: Service) => bigint): number =>
    replicas.reduce((total, one) => total + Number(of(one)), 0);
  const most = (of: (one: Service) => number): number => Math.max(0, ...replicas.map(of));
  const together = (of: (one: Service) => bigint): number =>
    isShared ? most((one) => Number(of(one))) : sum(of);
  const recentlyRefused = sum(({ recentRefused }) => recentRefused);
  const recent = recentlyRefused + sum(({ recentAdmitted }) => recentAdmitted);
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
    shedRatio: recent === 0 ? 0 : recentlyRefused / recent,
    admitted: sum(({ admitted }) => admitted),
    refused: sum(({ refused }) => refused),
    overflowPerSecond: most(({ overflowPerSecond }) => overflowPerSecond),
    replicas,
  };
}

function worstGate(gates: readonly string[]): string {
  return ["closed", "limiting", "open"].find((gate) => gates.includes(gate)) ?? "";
}

/** Judges a service in one word. */
export function judgeService(service: FleetService): {
  readonly tone: "good" | "warn" | "bad";
  readonly word: string;
} {
  const { gate, shedRatio, limit, inFlight, waiting, overflowPerSecond } = service;
  if (gate === "closed") return { tone: "bad", word: "gate closed" };
  if (gate === "limiting" || shedRatio >= shedRatioNoticed)
    return { tone: "bad", word: "shedding" };
  if (overflowPerSecond > 0) return { tone: "bad", word: "breakers refuse" };
  if (service.replicas.some(({ signals }) => signals.some(({ isMissing }) => isMissing)))
    return { tone: "warn", word: "signal missing" };
  if (waiting > 0 || (limit > 0 && inFlight >= limit)) return { tone: "warn", word: "full" };
  return { tone: "good", word: "healthy" };
}
