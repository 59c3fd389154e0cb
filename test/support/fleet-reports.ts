import type {
  NodeReport,
  ServiceRemainder,
  ServiceSamples,
  ServiceShares,
  ShareSnapshot,
} from "../../src/core/feedback/feedback.js";
import type { Allocator, TermStart } from "../../src/fleet/loop/leader-term.js";
import type { ServicePressure } from "../../src/fleet/loop/report-format.js";
import { eachRow, type ReadReport, readReport } from "../../src/fleet/loop/report-reader.js";
import { ReportScale } from "../../src/fleet/loop/report-scale.js";
import {
  type EncodedReport,
  type ReplicaReport,
  ReportWriter,
} from "../../src/fleet/loop/report-writer.js";
import type { FleetSnapshot } from "../../src/fleet/loop/snapshot-codec.js";
import { allTurns } from "./all-turns.js";

/** What one Envoy did; all that a test does not say is as in a quiet fleet. */
export function testReport(wish: Partial<NodeReport> = {}): NodeReport {
  return {
    nodeId: "node-1",
    service: "orders",
    atMs: 1_000,
    inFlight: 3,
    rps: 40,
    latency: { count: 40, sumMs: 400 },
    errorCount: 0,
    dropCount: 0,
    overflowCount: 0,
    held: 10,
    ...wish,
  };
}

/** How hard a service is pressed; quiet, unless a test says otherwise. */
export function testPressure(wish: Partial<ServicePressure> = {}): ServicePressure {
  const quiet = { rejectRatio: 0, weight: 1, waitingCount: 0, serviceMs: undefined };
  return { service: "orders", ...quiet, ...wish };
}

/** What holds for a service; all that a test does not say is as in a quiet fleet. */
export function testShares(wish: Partial<ServiceShares> = {}): ServiceShares {
  const facts = { inFlight: 0, rps: 0, overflowPerSecond: 0 };
  return { limit: 10, shares: new Map(), rejectRatio: 0, gate: "open", facts, ...wish };
}

/** A snapshot with maps for tables of shares, to be compared with another one. */
export function withMaps(snapshot: ShareSnapshot): ShareSnapshot {
  const services = [...snapshot.services].map(
    ([name, service]) => [name, { ...service, shares: new Map(service.shares) }] as const,
  );
  return { ...snapshot, services: new Map(services) };
}

/** A full record, as a replica writes it that has written nothing before. */
export function fullRecord(
  report: Partial<ReplicaReport>,
  { nowMs = 0, ...terms }: { readonly nowMs?: number; readonly bytesMax?: number } = {},
): EncodedReport {
  const now = (): number => nowMs;
  const whole = { nodes: [], services: [], ...report };
  return allTurns(new ReportWriter().encode(whole, { number: 1, now, ...terms }));
}

/** What a full record says; undefined: it is none. */
export function readRecord(bytes: Buffer, nowMs = 0): RecordContent | undefined {
  const read = allTurns(readReport({ bytes, atMs: nowMs }, undefined));
  return read && contentOf(read);
}

interface RecordContent extends ReplicaReport {
  readonly samples: readonly ServiceSamples[];
  readonly remainders: ReadReport["remainders"];
}

/** What a record says of each Envoy and service, and of services. */
export function contentOf(read: ReadReport): RecordContent {
  const nodes: NodeReport[] = [];
  allTurns(eachRow(read, new ReportScale(), (report) => nodes.push({ ...report })));
  const { pressures: services, samples, remainders } = read;
  return { nodes, services, samples, remainders };
}

/** A snapshot of one service, without verdicts. */
export function testFleetSnapshot(rank: Partial<ShareSnapshot> = {}): FleetSnapshot {
  const services = new Map([["orders", testShares()]]);
  return {
    snapshot: { term: 1, leaderId: "a1", version: 1, services, ...rank },
    verdicts: new Map(),
  };
}

/**
 * Makes snapshots that show what they are made of: a service for each that anybody told of, with a
 * share of one for each node, and as its limit the nodes that told something this time.
 */
export class TestMaker implements Allocator {
  readonly start: TermStart;
  readonly reports: NodeReport[] = [];
  readonly samples: ServiceSamples[] = [];
  readonly remainders: ServiceRemainder[] = [];
  readonly queues = new Map<string, number>();
  /** Called within each update, as time that it takes. */
  onUpdate = (): void => {};
  #version = 0;

  constructor(start: TermStart) {
    this.start = start;
  }

  noteQueue(service: string, { waitingCount }: { readonly waitingCount: number }): void {
    this.queues.set(service, waitingCount);
  }

  take(report: NodeReport): void {
    this.reports.push({ ...report });
  }

  takeRemainder(remainder: ServiceRemainder): void {
    this.remainders.push(remainder);
  }

  takeSamples(samples: ServiceSamples): void {
    this.samples.push(samples);
  }

  *update(): Generator<undefined, ShareSnapshot> {
    this.#version += 1;
    this.onUpdate();
    const { term, leaderId } = this.start;
    const services = new Map<string, ServiceShares>();
    for (const service of new Set(this.reports.map((report) => report.service))) {
      const mine = this.reports.filter((report) => report.service === service);
      const nodeIds = new Set(mine.map(({ nodeId }) => nodeId));
      const shares = new Map([...nodeIds].map((id) => [id, { default: 1, high: 0 }]));
      services.set(service, testShares({ limit: nodeIds.size, shares }));
    }
    return { term, leaderId, version: this.#version, services };
  }
}
