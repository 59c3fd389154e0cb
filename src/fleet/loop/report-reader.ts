import type { NodeReport, ServiceRemainder, ServiceSamples } from "../../core/feedback/feedback.js";
import { ByteReader, readTexts, textsMax } from "./byte-fields.js";
import {
  ageMsMax,
  ageStepMs,
  nodeCodeMosts,
  nodeFields,
  noOwner,
  readChanges,
  recordFlags,
  recordRowsMax,
  recordServicesMax,
  reportFormat,
  rowCodeMosts,
  rowFields,
  type ServicePressure,
} from "./report-format.js";
import { readRemainders, readSamples } from "./report-samples.js";
import type { ReportScale } from "./report-scale.js";

const nodeStride = nodeCodeMosts.length;
const rowStride = rowCodeMosts.length;
const pressureBytes = 21;

/** Rows that are passed on in one turn: about a millisecond. */
const turnRows = 500;

/** The Envoys and services of a full record, with later additions. */
interface ReadTable {
  readonly services: readonly string[];
  readonly owners: readonly string[];
  readonly nodeIds: readonly string[];
  /** Positions of their owners. */
  readonly nodeOwners: Uint16Array;
  readonly rowNodes: Uint16Array;
  readonly rowServices: Uint16Array;
  readonly nodeCodes: Uint32Array;
  readonly rowCodes: Uint32Array;
}

/** A decoded record. */
export interface ReadReport {
  /** Number of the full record that it is based on. 0 if it is a full record. */
  readonly baseNumber: number;
  readonly table: ReadTable;
  readonly pressures: readonly ServicePressure[];
  readonly samples: readonly ServiceSamples[];
  readonly remainders: readonly Omit<ServiceRemainder, "source" | "atMs">[];
  /** Reference time of its Envoys' ages, on the reader's clock. */
  readonly atMs: number;
  /** Number of rows with values; there was no room for the others. 0: nothing about Envoys. */
  readonly rowCount: number;
}

/** An encoded record, as it was found. */
export interface FoundRecord {
  readonly bytes: Buffer;
  /** Time when its encoding was complete, on the reader's clock. */
  readonly atMs: number;
}

const noTable: ReadTable = {
  services: [],
  owners: [],
  nodeIds: [],
  nodeOwners: new Uint16Array(0),
  rowNodes: new Uint16Array(0),
  rowServices: new Uint16Array(0),
  nodeCodes: new Uint32Array(0),
  rowCodes: new Uint32Array(0),
};

/** Returns the full record that a record is based on. 0: it is full; undefined: invalid format. */
export function baseNumberOf(bytes: Buffer): number | undefined {
  const reader = new ByteReader(bytes);
  if (reader.byte() !== reportFormat) return undefined;
  const isDelta = (reader.byte() & recordFlags.isDelta) !== 0;
  const baseNumber = reader.whole();
  return isDelta === baseNumber > 0 ? baseNumber : undefined;
}

/**
 * Reads a record, in turns. Returns undefined for invalid bytes, or those of another version.
 *
 * @param base the full record that it is based on, decoded; unused if it is a full record
 * @param rowsMax maximum number of its rows. Default `recordRowsMax`
 */
export function* readReport(
  { bytes, atMs: foundMs }: FoundRecord,
  base: ReadReport | undefined,
  rowsMax = recordRowsMax,
): Generator<undefined, ReadReport | undefined> {
  const baseNumber = baseNumberOf(bytes);
  if (baseNumber === undefined) return undefined;
  const known = baseNumber === 0 ? noTable : base?.table;
  if (known === undefined) return undefined;
  const reader = new ByteReader(bytes);
  reader.byte();
  const isQuiet = (reader.byte() & recordFlags.isQuiet) !== 0;
  reader.whole();
  const atMs = foundMs - reader.measure();
  const added = yield* readTable(reader, known, rowsMax);
  if (added === undefined) return undefined;
  const pressures: ServicePressure[] = [];
  yield* reader.rows({ rowBytes: pressureBytes }, () => {
    pressures.push(readPressure(reader, added.services));
  });
  const samples = yield* readSamples(reader, added.services, atMs);
  let rowCount = 0;
  if (!isQuiet) {
    yield* readChanges(reader, added.nodeCodes, nodeCodeMosts);
    rowCount = reader.countBelow(added.rowNodes.length + 1);
    yield* readChanges(reader, added.rowCodes, rowCodeMosts);
  }
  const remainders = yield* readRemainders(reader, added.services);
  if (!reader.isDone) return undefined;
  return { baseNumber, table: added, pressures, samples, remainders, atMs, rowCount };
}

/** Returns the table with additions, and with its own copy of the codes. */
function* readTable(
  reader: ByteReader,
  known: ReadTable,
  rowsMax: number,
): Generator<undefined, ReadTable | undefined> {
  const services = joined(known.services, yield* readTexts(reader));
  const owners = joined(known.owners, yield* readTexts(reader));
  const addedIds: string[] = [];
  const addedOwners: number[] = [];
  yield* reader.rows({ rowBytes: 3, countMax: textsMax }, () => {
    addedIds.push(reader.text());
    addedOwners.push(reader.countBelow(owners.length));
  });
  const nodeIds = joined(known.nodeIds, addedIds);
  const isLarge = nodeIds.length > textsMax || owners.length > textsMax;
  if (isLarge || services.length > recordServicesMax) return undefined;
  const rowNodes: number[] = [];
  const rowServices: number[] = [];
  const roomCount = Math.min(rowsMax, recordRowsMax) - known.rowNodes.length;
  const counts = { services: services.length, nodes: nodeIds.length };
  let group: RowGroup = { node: -1, services: [] };
  yield* reader.rows({ rowBytes: 2 }, function* () {
    group = readGroup(reader, group, counts);
    for (const service of group.services) {
      if (rowNodes.length >= roomCount) return reader.refuse();
      rowNodes.push(group.node);
      rowServices.push(service);
      if (rowNodes.length % turnRows === 0) yield;
    }
  });
  return {
    services,
    owners,
    nodeIds,
    nodeOwners: extended(known.nodeOwners, addedOwners),
    rowNodes: extended(known.rowNodes, rowNodes),
    rowServices: extended(known.rowServices, rowServices),
    nodeCodes: copied(known.nodeCodes, nodeStride * nodeIds.length),
    rowCodes: copied(known.rowCodes, rowStride * (known.rowNodes.length + rowNodes.length)),
  };
}

/** Consecutive rows of one Envoy. */
interface RowGroup {
  readonly node: number;
  /** Positions of services. */
  readonly services: readonly number[];
}

function readGroup(
  reader: ByteReader,
  before: RowGroup,
  counts: { readonly services: number; readonly nodes: number },
): RowGroup {
  const node = before.node + reader.difference();
  if (node < 0 || node >= counts.nodes) reader.refuse();
  const count = reader.countBelow(counts.services + 1);
  if (count === 0) return { node, services: before.services };
  const services: number[] = [];
  for (let i = 0; i < count; i += 1) services.push(reader.countBelow(counts.services));
  return { node, services };
}

function readPressure(reader: ByteReader, services: readonly string[]): ServicePressure {
  const service = services[reader.countBelow(services.length)] ?? "";
  const rejectRatio = reader.ratio();
  const weight = reader.measure();
  const waitingCount = reader.whole();
  return { service, rejectRatio, weight, waitingCount, serviceMs: reader.optionalMeasure() };
}

function joined(known: readonly string[], added: readonly string[]): readonly string[] {
  return added.length === 0 ? known : [...known, ...added];
}

function extended(known: Uint16Array, added: readonly number[]): Uint16Array {
  if (added.length === 0) return known;
  const all = new Uint16Array(known.length + added.length);
  all.set(known);
  all.set(added, known.length);
  return all;
}

function copied(known: Uint32Array, length: number): Uint32Array {
  const all = new Uint32Array(length);
  all.set(known);
  return all;
}

type OpenReport = { -readonly [field in keyof NodeReport]: NodeReport[field] };

const noLatency = { count: 0, sumMs: 0 } as const;

/**
 * Passes on the values of each Envoy and service, in turns. All calls get the same object, with new
 * values each time. Otherwise, a report of 3,333 Envoys with 20 services would create 130,000
 * objects each second.
 */
export function* eachRow(
  { table, atMs: referenceMs, rowCount }: ReadReport,
  scale: ReportScale,
  take: (report: NodeReport) => void,
): Generator<undefined, void> {
  const { services, owners, nodeIds, nodeOwners, rowNodes, rowServices } = table;
  const { nodeCodes, rowCodes } = table;
  const report = blankReport();
  for (let row = 0; row < rowCount; row += 1) {
    if (row % turnRows === turnRows - 1) yield;
    const node = rowNodes[row] ?? 0;
    const news = nodeCodes[node * nodeStride + nodeFields.news] ?? 0;
    const heldCode = nodeCodes[node * nodeStride + nodeFields.held] ?? 0;
    if (heldCode === 0) continue;
    const from = row * rowStride;
    const lag = rowCodes[from + rowFields.lag] ?? 0;
    const hasNews = news > 0 && lag !== 1;
    report.held = rowCodes[from + rowFields.held] ?? 0;
    if (!hasNews && report.held === 0) continue;
    const owner = owners[nodeOwners[node] ?? 0];
    report.nodeId = nodeIds[node] ?? "";
    report.owner = owner === noOwner ? undefined : owner;
    report.service = services[rowServices[row] ?? 0] ?? "";
    const lagSteps = lag < 2 ? 0 : lag - 2;
    const ageMs = hasNews ? (news - 1 + lagSteps) * ageStepMs : ageMsMax;
    report.atMs = referenceMs - ageMs;
    report.heldAtMs = heldCode === 1 ? undefined : referenceMs - (heldCode - 2) * ageStepMs;
    report.demand = scale.valueOf(rowCodes[from + rowFields.demand] ?? 0);
    report.inFlight = scale.valueOf(rowCodes[from + rowFields.inFlight] ?? 0);
    report.rps = scale.valueOf(rowCodes[from + rowFields.rps] ?? 0);
    report.overflowCount = scale.valueOf(rowCodes[from + rowFields.overflow] ?? 0);
    const high = rowCodes[from + rowFields.high] ?? 0;
    report.highInFlight = high === 0 ? undefined : scale.valueOf(high - 1);
    take(report);
  }
}

function blankReport(): OpenReport {
  return {
    nodeId: "",
    owner: undefined,
    service: "",
    atMs: 0,
    inFlight: 0,
    highInFlight: undefined,
    rps: 0,
    latency: noLatency,
    demand: 0,
    errorCount: 0,
    dropCount: 0,
    overflowCount: 0,
    held: 0,
    heldAtMs: undefined,
  };
}
