import type { NodeReport } from "../../core/feedback/feedback.js";
import { ByteReader, ByteWriter, readTexts, TextTable } from "./byte-fields.js";

/** What one replica tells of the last second. */
export interface ReplicaReport {
  /** Of the Envoys that tell it what they do. */
  readonly nodes: readonly NodeReport[];
  /** Of the services in front of which it stands itself. */
  readonly services: readonly ServicePressure[];
}

/** How hard a service is pressed at one replica. */
export interface ServicePressure {
  /** Named by the policy. */
  readonly service: string;
  /** The share of requests that the expected wait would refuse there now, 0 to 1. */
  readonly rejectRatio: number;
  /** What it stands for: permits that may be in use there, from 0. */
  readonly weight: number;
  /** Requests that wait there for a permit. */
  readonly waitingCount: number;
  /** How long a request is in work, in milliseconds; undefined: not known there. */
  readonly serviceMs: number | undefined;
}

/** A report as it travels. */
interface EncodedReport {
  readonly bytes: Buffer;
  /** Rows for which there was no room. */
  readonly leftOutCount: number;
}

/** The largest report in bytes: 61,000 rows, of 3,000 Envoys with 20 services each. */
export const reportBytesMax = 4_194_304;

/** Another one is another program's, which reads none of ours. */
const format = 2;

/** Stands for an Envoy whose owner nobody knows: an identity is never empty. */
const noOwner = "";

/** What a row takes at least, and with what the gradient controller says. */
const rowBytes = 65;
const gradientBytes = 20;
const pressureBytes = 24;
const headBytes = 1 + 5 * 4;

interface EncodeTerms {
  /** The monotonic clock of all times of the report. */
  readonly now: () => number;
  /** Default `reportBytesMax`. */
  readonly bytesMax?: number;
}

/**
 * A report as bytes, in turns, with times as ages when it is done: clocks of two machines are never
 * compared. Pressures come first, since they are few; rows beyond `bytesMax` are left out, the last
 * ones.
 */
export function* encodeReport(
  { nodes, services }: ReplicaReport,
  { now, bytesMax = reportBytesMax }: EncodeTerms,
): Generator<undefined, EncodedReport> {
  const beganMs = now();
  const names = new TextTable();
  const nodeIds = new TextTable();
  const owners = new TextTable();
  const rows = new ByteWriter();
  const pressures = new ByteWriter();
  const agesAt: number[] = [];
  const fits = (textsBytes: number, moreBytes: number): boolean => {
    const used = rows.position + pressures.position;
    const tables = names.sizeBytes + nodeIds.sizeBytes + owners.sizeBytes;
    return headBytes + used + tables + textsBytes + moreBytes <= bytesMax;
  };
  let pressureCount = 0;
  for (const pressure of services) {
    if (!fits(names.costOf(pressure.service), pressureBytes)) continue;
    writePressure(pressures, pressure, names);
    pressureCount += 1;
  }
  let rowCount = 0;
  for (const row of nodes) {
    const { service, nodeId, owner = noOwner, gradientFacts } = row;
    const textsBytes = names.costOf(service) + nodeIds.costOf(nodeId) + owners.costOf(owner);
    const moreBytes = rowBytes + (gradientFacts === undefined ? 0 : gradientBytes);
    if (!fits(textsBytes, moreBytes)) continue;
    rows.whole(names.add(service));
    rows.whole(nodeIds.add(nodeId));
    rows.whole(owners.add(owner));
    writeRow(rows, row, { nowMs: beganMs, agesAt });
    rowCount += 1;
    if (rows.endsTurn()) yield;
  }
  const tookMs = now() - beganMs;
  if (tookMs > 0) for (const position of agesAt) rows.addToMeasure(position, tookMs);
  const writer = new ByteWriter();
  writer.byte(format);
  for (const table of [names, nodeIds, owners]) table.write(writer);
  writer.whole(pressureCount);
  const head = [writer.finish(), pressures.finish()];
  const count = new ByteWriter();
  count.whole(rowCount);
  const leftOutCount = nodes.length + services.length - rowCount - pressureCount;
  return { bytes: Buffer.concat([...head, count.finish(), rows.finish()]), leftOutCount };
}

function writePressure(
  writer: ByteWriter,
  { service, rejectRatio, weight, waitingCount, serviceMs }: ServicePressure,
  names: TextTable,
): void {
  writer.whole(names.add(service));
  writer.ratio(rejectRatio);
  writer.measure(weight);
  writer.whole(waitingCount);
  writer.optionalMeasure(serviceMs);
}

interface RowTerms {
  readonly nowMs: number;
  /** Where ages are. */
  readonly agesAt: number[];
}

function writeRow(writer: ByteWriter, row: NodeReport, { nowMs, agesAt }: RowTerms): void {
  const { latency, gradientFacts } = row;
  agesAt.push(writer.position);
  writer.measure(Math.max(0, nowMs - row.atMs));
  writer.whole(row.inFlight);
  writer.optionalMeasure(row.highInFlight);
  writer.measure(row.rps);
  writer.whole(latency.count);
  writer.measure(latency.sumMs);
  writer.optionalMeasure(latency.p50);
  writer.optionalMeasure(latency.minMs);
  writer.whole(row.errorCount);
  writer.whole(row.dropCount);
  writer.whole(row.overflowCount);
  writer.whole(row.held);
  if (row.heldAtMs !== undefined) agesAt.push(writer.position);
  writer.optionalMeasure(row.heldAtMs === undefined ? undefined : nowMs - row.heldAtMs);
  writer.byte(gradientFacts === undefined ? 0 : 1);
  if (gradientFacts === undefined) return;
  writer.whole(gradientFacts.concurrencyLimit);
  writer.measure(gradientFacts.gradient);
  writer.measure(gradientFacts.minRttMs);
  writer.measure(gradientFacts.sampleRttMs);
  writer.whole(gradientFacts.burstQueueSize);
}

/**
 * Reads a report back, in turns. Undefined for bytes that are none, or another version's.
 *
 * @param nowMs when `encodeReport` was done there, on the clock of who reads
 */
export function* decodeReport(
  bytes: Buffer,
  nowMs: number,
): Generator<undefined, ReplicaReport | undefined> {
  const reader = new ByteReader(bytes);
  if (reader.byte() !== format) return undefined;
  const names = yield* readTexts(reader);
  const nodeIds = yield* readTexts(reader);
  const owners = yield* readTexts(reader);
  const services: ServicePressure[] = [];
  yield* reader.rows({ rowBytes: pressureBytes }, () => {
    services.push(readPressure(reader, reader.named(names)));
  });
  const nodes: NodeReport[] = [];
  yield* reader.rows({ rowBytes }, () => {
    const service = reader.named(names);
    const nodeId = reader.named(nodeIds);
    nodes.push(readRow(reader, { service, nodeId, owner: reader.named(owners) }, nowMs));
  });
  return reader.isDone ? { nodes, services } : undefined;
}

function readPressure(reader: ByteReader, service: string): ServicePressure {
  const rejectRatio = reader.ratio();
  const weight = reader.measure();
  const waitingCount = reader.whole();
  return { service, rejectRatio, weight, waitingCount, serviceMs: reader.optionalMeasure() };
}

/**
 * While it is read: optional fields are put in afterwards. A report of 20,000 rows takes 7 ms so;
 * with fields spread in, and read by the methods of Buffer, which check their arguments, 59 ms.
 */
type OpenRow<Row> = { -readonly [field in keyof Row]: Row[field] };

function readRow(
  reader: ByteReader,
  { service, nodeId, owner }: Required<Pick<NodeReport, "service" | "nodeId" | "owner">>,
  nowMs: number,
): NodeReport {
  const atMs = nowMs - reader.measure();
  const inFlight = reader.whole();
  const highInFlight = reader.optionalMeasure();
  const row: OpenRow<NodeReport> = {
    service,
    nodeId,
    owner: owner === noOwner ? undefined : owner,
    atMs,
    inFlight,
    rps: reader.measure(),
    latency: readLatency(reader),
    errorCount: reader.whole(),
    dropCount: reader.whole(),
    overflowCount: reader.whole(),
    held: reader.whole(),
  };
  const heldAgeMs = reader.optionalMeasure();
  if (highInFlight !== undefined) row.highInFlight = highInFlight;
  if (heldAgeMs !== undefined) row.heldAtMs = nowMs - heldAgeMs;
  if (reader.byte() === 0) return row;
  row.gradientFacts = {
    concurrencyLimit: reader.whole(),
    gradient: reader.measure(),
    minRttMs: reader.measure(),
    sampleRttMs: reader.measure(),
    burstQueueSize: reader.whole(),
  };
  return row;
}

function readLatency(reader: ByteReader): NodeReport["latency"] {
  const latency: OpenRow<NodeReport["latency"]> = {
    count: reader.whole(),
    sumMs: reader.measure(),
  };
  const p50 = reader.optionalMeasure();
  const minMs = reader.optionalMeasure();
  if (p50 !== undefined) latency.p50 = p50;
  if (minMs !== undefined) latency.minMs = minMs;
  return latency;
}
