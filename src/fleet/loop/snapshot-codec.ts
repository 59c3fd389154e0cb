import { type GateState, gateStates } from "../../core/admission/gate.js";
import type {
  NodeShare,
  ServiceFacts,
  ServiceShares,
  ShareSnapshot,
} from "../../core/feedback/feedback.js";
import type { SnapshotVersion } from "../../store/coordination/snapshot-version.js";
import { ByteReader, ByteWriter, readTexts, TextTable } from "./byte-fields.js";
import type { GateVerdict } from "./fleet-gates.js";

/** What a leader decides in one second. */
export interface FleetSnapshot {
  readonly snapshot: ShareSnapshot;
  /** By service: what holds for the gates of admission. */
  readonly verdicts: ReadonlyMap<string, GateVerdict>;
}

/** A snapshot as it travels; its rank travels beside it, where the store can read it. */
interface EncodedSnapshot {
  readonly bytes: Buffer;
  /** Services for which there was no room: configured defaults hold there. */
  readonly leftOutCount: number;
}

/** The largest snapshot in bytes: 600,000 shares, of 30,000 Envoys with 20 services each. */
export const snapshotBytesMax = 8_388_608;

/** The most services, and the most verdicts; a policy has 1,000. */
export const snapshotServicesMax = 4_096;

/** Another one is another program's, which reads none of ours. */
const format = 2;

/** What rows take at least. */
const shareBytes = 12;
const serviceBytes = 43;
const verdictBytes = 11;
const headBytes = 1 + 3 * 4;

/** A snapshot as bytes, verdicts first; services beyond `bytesMax` are left out, the last ones. */
export function encodeSnapshot(
  { snapshot, verdicts }: FleetSnapshot,
  bytesMax = snapshotBytesMax,
): EncodedSnapshot {
  const nodeIds = new TextTable();
  let usedBytes = headBytes;
  const fitting = (name: string, bytes: number): boolean => {
    const cost = bytes + Buffer.byteLength(name);
    if (usedBytes + nodeIds.sizeBytes + cost > bytesMax) return false;
    usedBytes += cost;
    return true;
  };
  const reported = [...verdicts]
    .slice(0, snapshotServicesMax)
    .filter(([name]) => fitting(name, verdictBytes));
  const services = [...snapshot.services]
    .slice(0, snapshotServicesMax)
    .filter(([name, { shares }]) => {
      const nodesBytes = nodeIds.costBytes(shares.keys());
      if (!fitting(name, serviceBytes + shares.size * shareBytes + nodesBytes)) return false;
      usedBytes -= nodesBytes;
      for (const id of shares.keys()) nodeIds.add(id);
      return true;
    });
  const writer = new ByteWriter();
  writer.byte(format);
  nodeIds.write(writer);
  writer.whole(reported.length);
  for (const [name, { rejectRatio, state }] of reported) {
    writer.text(name);
    writer.ratio(rejectRatio);
    writer.byte(gateStates.indexOf(state));
  }
  writer.whole(services.length);
  for (const [name, service] of services) {
    writer.text(name);
    writeService(writer, service, nodeIds);
  }
  const leftOutCount = verdicts.size + snapshot.services.size - reported.length - services.length;
  return { bytes: writer.finish(), leftOutCount };
}

function writeService(writer: ByteWriter, service: ServiceShares, nodeIds: TextTable): void {
  const { limit, shares, rejectRatio, gate, facts } = service;
  writer.whole(limit);
  writer.ratio(rejectRatio);
  writer.byte(gateStates.indexOf(gate));
  writer.whole(facts.inFlight);
  writer.measure(facts.rps);
  writer.measure(facts.overflowPerSecond);
  writer.optionalMeasure(facts.rttMs);
  writer.optionalMeasure(facts.minRttMs);
  writer.optionalMeasure(facts.gradient);
  writer.whole(shares.size);
  for (const [nodeId, share] of shares) {
    writer.whole(nodeIds.add(nodeId));
    writer.whole(share.default);
    writer.whole(share.high);
  }
}

/** Reads a snapshot back, in turns. Undefined for bytes that are none, or another version's. */
export function* decodeSnapshot(
  bytes: Buffer,
  rank: SnapshotVersion,
): Generator<undefined, FleetSnapshot | undefined> {
  const reader = new ByteReader(bytes);
  if (reader.byte() !== format) return undefined;
  const nodeIds = yield* readTexts(reader);
  const verdicts = new Map<string, GateVerdict>();
  yield* reader.rows({ rowBytes: verdictBytes, countMax: snapshotServicesMax }, () => {
    const name = reader.text();
    verdicts.set(name, { rejectRatio: reader.ratio(), state: readGate(reader) });
  });
  const services = new Map<string, ServiceShares>();
  yield* reader.rows({ rowBytes: serviceBytes, countMax: snapshotServicesMax }, function* () {
    const name = reader.text();
    services.set(name, yield* readService(reader, nodeIds));
  });
  if (!reader.isDone) return undefined;
  const { term, leaderId, version } = rank;
  return { snapshot: { term, leaderId, version, services }, verdicts };
}

function* readService(
  reader: ByteReader,
  nodeIds: readonly string[],
): Generator<undefined, ServiceShares> {
  const limit = reader.whole();
  const rejectRatio = reader.ratio();
  const gate = readGate(reader);
  const facts = readFacts(reader);
  const shares = new Map<string, NodeShare>();
  yield* reader.rows({ rowBytes: shareBytes }, () => {
    const nodeId = reader.named(nodeIds);
    shares.set(nodeId, { default: reader.whole(), high: reader.whole() });
  });
  return { limit, shares, rejectRatio, gate, facts };
}

function readFacts(reader: ByteReader): ServiceFacts {
  const inFlight = reader.whole();
  const rps = reader.measure();
  const overflowPerSecond = reader.measure();
  const rttMs = reader.optionalMeasure();
  const minRttMs = reader.optionalMeasure();
  const gradient = reader.optionalMeasure();
  return {
    inFlight,
    rps,
    overflowPerSecond,
    ...(rttMs === undefined ? {} : { rttMs }),
    ...(minRttMs === undefined ? {} : { minRttMs }),
    ...(gradient === undefined ? {} : { gradient }),
  };
}

function readGate(reader: ByteReader): GateState {
  return reader.oneOf(gateStates);
}
