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

/** Rows that are handed on in one turn: about a millisecond. */
const turnRows = 500;

/** Who and what a full record tells of, and what has come since. */
interface ReadTable {
  readonly services: readonly string[];
  readonly owners: readonly string[];
  readonly nodeIds: readonly string[];
  /** Places of their owners. */
  readonly nodeOwners: Uint16Array;
  readonly rowNodes: Uint16Array;
  readonly rowServices: Uint16Array;
  readonly nodeCodes: Uint32Array;
  readonly rowCodes: Uint32Array;
}

/** A record as it was read. */
export interface ReadReport {
  /** The number of the full record that it differs from; 0: it is one. */
  readonly baseNumber: number;
  readonly table: ReadTable;
  readonly pressures: readonly ServicePressure[];
  readonly samples: readonly ServiceSamples[];
  readonly remainders: readonly Omit<ServiceRemainder, "source" | "atMs">[];
  /** What the ages of its Envoys are counted from, on the clock of who reads. */
  readonly atMs: number;
  /** Rows that are told; the others are those for which there was no room. 0: nothing of Envoys. */
  readonly rowCount: number;
}

/** Where a record was found. */
export interface FoundRecord {
  readonly bytes: Buffer;
  /** When its encoding was done, on the clock of who reads. */
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

/** The full record that a record differs from; 0: it is one; undefined: it is no record of ours. */
export function baseNumberOf(bytes: Buffer): number | undefined {
  const reader = new ByteReader(bytes);
  if (reader.byte() !== reportFormat) return undefined;
  const isDelta = (reader.byte() & recordFlags.isDelta) !== 0;
  const baseNumber = reader.whole();
  return isDelta === baseNumber > 0 ? baseNumber : undefined;
}

/**
 * Reads a record, in turns. Undefined for bytes that are none, or another version's.
 *
 * @param base the full record that it differs from, as it was read; unused by a full one
 * @param rowsMax how many rows it may have. Default `recordRowsMax`
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

/** The table with what has come, and codes of its own. */
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

/** Rows of one Envoy, one behind the other. */
interface RowGroup {
  readonly node: number;
  /** Places. */
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
 * Hands on what a record tells of each Envoy and service, in turns. It is one object for all of
 * them, which changes from call to call: a report of 3,333 Envoys with 20 services would else be
 * 130,000 objects each second.
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
