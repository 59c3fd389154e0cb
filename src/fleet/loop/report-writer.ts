import type { NodeReport } from "../../core/feedback/feedback.js";
import { demandOf, reportGapMsMin } from "../../core/feedback/feedback-nodes.js";
import { ByteWriter } from "./byte-fields.js";
import {
  ageMsMax,
  ageStepMs,
  ChangeWriter,
  entryBytesMax,
  nodeCodeMosts,
  nodeFields,
  recordFlags,
  reportBytesMax,
  reportFormat,
  rowCodeMosts,
  rowFields,
  type ServicePressure,
} from "./report-format.js";
import { ReportRemainders, ReportSamples } from "./report-samples.js";
import { ReportScale } from "./report-scale.js";
import { ReportTable, type TableSize } from "./report-table.js";

/** Report of one replica about the last second. */
export interface ReplicaReport {
  /** Reports of the Envoys that report to it. */
  readonly nodes: readonly NodeReport[];
  /** Pressure on the services whose requests this replica admits. */
  readonly services: readonly ServicePressure[];
}

/** An encoded report. */
export interface EncodedReport {
  readonly bytes: Buffer;
  /** Number of the full record that it is based on. Undefined if it is a full record. */
  readonly baseNumber: number | undefined;
  /** Number of rows and pressures for which there was no room. */
  readonly leftOutCount: number;
}

interface EncodeTerms {
  /** Increases with each record of the replica. */
  readonly number: number;
  /** Returns the time of the monotonic clock that all times of the report use. */
  readonly now: () => number;
  /** Default `reportBytesMax`. */
  readonly bytesMax?: number;
}

/** Maximum time that records are based on the same full record, in milliseconds. */
export const fullRecordMsMax = 300_000;

/** Maximum time between numbers of one Envoy that are reported with one age, in milliseconds. */
const spreadMs = 64;

/** By how much a reported age may be too high before it is reported again, in milliseconds. */
const newsSlackMs = 192;
const heldSlackMs = 64;

/** Rows that are written before other work gets a turn: about a millisecond. */
const turnRows = 1_000;

/** Size of a pressure without its name, in bytes. */
const pressureBytes = 30;

const headBytesMax = 64;
const nodeStride = nodeCodeMosts.length;
const rowStride = rowCodeMosts.length;

/** State of a written record, until it is known whether the store has it. */
interface PendingRecord {
  readonly number: number;
  readonly table: ReportTable;
  readonly rowsAtMs: Float64Array;
  readonly full: { readonly nodeCodes: Uint32Array; readonly rowCodes: Uint32Array } | undefined;
  readonly bytes: number;
  readonly isQuiet: boolean;
  readonly atMs: number;
}

/**
 * Writes the reports of a replica's Envoys as one record: the differences from the last full record
 * that the store has. A value within `deadbandRatio` of the reported one is no difference, so a
 * fleet in a steady state writes next to nothing, however many Envoys it has. Latencies and errors
 * are summed by service. A new full record is written when later records have repeated as many
 * bytes as it takes, after `fullRecordMsMax`, and whenever the store has lost it.
 */
export class ReportWriter {
  readonly #scale = new ReportScale();
  #table = new ReportTable();
  #pending: PendingRecord | undefined;
  /** The full record that the store has. */
  #base: { readonly number: number; readonly bytes: number; readonly atMs: number } | undefined;
  /** Bytes that records since then have repeated, and the size of the smallest of them. */
  #repeatedBytes = 0;
  #leastBytes = Number.POSITIVE_INFINITY;

  /**
   * Encodes a record, in turns. Times are converted to ages at its end, because clocks of two
   * machines are never compared. Rows beyond `bytesMax` are left out, from the end.
   */
  *encode(report: ReplicaReport, terms: EncodeTerms): Generator<undefined, EncodedReport> {
    const nowMs = terms.now();
    const base = this.#base;
    const isOver = base !== undefined && nowMs - base.atMs >= fullRecordMsMax;
    const isFull = base === undefined || isOver || this.#repeatedBytes >= base.bytes;
    const table = isFull ? new ReportTable() : this.#table;
    const record = new RecordWriter({ table, before: this.#table, scale: this.#scale, isFull });
    const { bytesMax = reportBytesMax } = terms;
    yield* record.write(report, bytesMax);
    const baseNumber = isFull ? undefined : base.number;
    const tookMs = Math.max(0, terms.now() - record.referenceMs);
    const bytes = record.finish(baseNumber ?? 0, tookMs);
    const { rowsAtMs, kept: full, isQuiet, leftOutCount } = record;
    this.#pending = {
      ...{ number: terms.number, table, rowsAtMs, full, isQuiet },
      bytes: bytes.length,
      atMs: nowMs,
    };
    return { bytes, baseNumber, leftOutCount };
  }

  /** Notes that the store has the record that was encoded last. */
  confirm(): void {
    const pending = this.#pending;
    if (pending === undefined) return;
    this.#pending = undefined;
    const { table, rowsAtMs, full, number, bytes, atMs } = pending;
    rowsAtMs.forEach((rowAtMs, row) => {
      if (rowAtMs > (table.lastAtMs[row] ?? 0)) table.lastAtMs[row] = rowAtMs;
    });
    if (full === undefined) {
      this.#noteRepeated(pending);
      return;
    }
    table.nodeCodes = full.nodeCodes;
    table.rowCodes = full.rowCodes;
    table.reported = table.size;
    this.#table = table;
    this.#base = { number, bytes, atMs };
    this.#repeatedBytes = 0;
    this.#leastBytes = Number.POSITIVE_INFINITY;
  }

  /** Notes that the store has lost the last full record: the next record is a full one. */
  forget(): void {
    this.#base = undefined;
    this.#pending = undefined;
  }

  /** Adds what a full record would save: additions since the last one, and changes. */
  #noteRepeated({ table, bytes, isQuiet }: PendingRecord): void {
    if (isQuiet) return;
    this.#leastBytes = Math.min(this.#leastBytes, bytes);
    const addedBytes = addedBytesOf(table);
    this.#repeatedBytes += bytes - this.#leastBytes + addedBytes;
  }
}

function addedBytesOf({ reported, nodeIds }: ReportTable): number {
  let addedBytes = 0;
  for (let node = reported.nodes; node < nodeIds.length; node += 1) {
    addedBytes += Buffer.byteLength(nodeIds[node] ?? "");
  }
  return addedBytes;
}

interface RecordParts {
  readonly table: ReportTable;
  /** The previous table, which knows when rows were reported. */
  readonly before: ReportTable;
  readonly scale: ReportScale;
  readonly isFull: boolean;
}

/** One record during its encoding. */
class RecordWriter {
  readonly #parts: RecordParts;
  readonly #reported: TableSize;
  readonly #body = new ByteWriter();
  /** By row of the table: the index of its report, and 1 if that is news. */
  #reportAt = new Int32Array(0);
  #isNews = new Uint8Array(0);
  /** By Envoy: the times of its newest numbers and of what it holds; infinite if not known. */
  #newestMs = new Float64Array(0);
  #heldAtMs = new Float64Array(0);
  #isThere = new Uint8Array(0);
  readonly #row = new Uint32Array(rowStride);
  #remainders = new ReportRemainders(0);
  rowsAtMs = new Float64Array(0);
  /** The newest of all times of the report, from which ages are counted. */
  referenceMs = Number.NEGATIVE_INFINITY;
  kept: { readonly nodeCodes: Uint32Array; readonly rowCodes: Uint32Array } | undefined;
  isQuiet = false;
  leftOutCount = 0;

  constructor(parts: RecordParts) {
    this.#parts = parts;
    this.#reported = parts.table.reported;
  }

  *write({ nodes, services }: ReplicaReport, bytesMax: number): Generator<undefined, void> {
    const { table, isFull } = this.#parts;
    this.isQuiet = nodes.length === 0;
    const pressures = new ByteWriter();
    const pressureCount = this.#writePressures(pressures, services, bytesMax);
    const samples = new ReportSamples();
    yield* this.#place(nodes, samples, bytesMax - pressures.position - headBytesMax);
    table.reserve();
    const { nodeCodes, rowCodes } = table;
    if (isFull) {
      this.kept = {
        nodeCodes: new Uint32Array(nodeCodes.length),
        rowCodes: new Uint32Array(rowCodes.length),
      };
    }
    yield* this.#writeTable();
    this.#body.whole(pressureCount);
    this.#body.bytes(pressures.finish());
    samples.write(this.#body, bytesMax - headBytesMax);
    if (this.isQuiet) {
      this.#remainders.write(this.#body);
      return;
    }
    this.#remainders = new ReportRemainders(table.services.texts.length);
    yield* this.#writeNodes();
    yield* this.#writeRows(nodes, bytesMax - headBytesMax);
  }

  finish(baseNumber: number, tookMs: number): Buffer {
    const { isDelta, isQuiet } = recordFlags;
    const head = new ByteWriter();
    head.byte(reportFormat);
    head.byte((baseNumber > 0 ? isDelta : 0) + (this.isQuiet ? isQuiet : 0));
    head.whole(baseNumber);
    head.measure(this.isQuiet ? 0 : tookMs);
    return Buffer.concat([head.finish(), this.#body.finish()]);
  }

  #writePressures(
    writer: ByteWriter,
    pressures: readonly ServicePressure[],
    bytesMax: number,
  ): number {
    const { services } = this.#parts.table;
    let count = 0;
    for (const { service, rejectRatio, weight, waitingCount, serviceMs } of pressures) {
      const costBytes = pressureBytes + Buffer.byteLength(service);
      const isFull = headBytesMax + services.sizeBytes + writer.position + costBytes > bytesMax;
      const place = isFull ? -1 : services.add(service);
      if (place < 0) {
        this.leftOutCount += 1;
        continue;
      }
      writer.count(place);
      writer.ratio(rejectRatio);
      writer.measure(weight);
      writer.whole(waitingCount);
      writer.optionalMeasure(serviceMs);
      count += 1;
    }
    return count;
  }

  /** Finds the row of each report, and which reports are news, with their times. */
  *#place(
    nodes: readonly NodeReport[],
    samples: ReportSamples,
    bytesMax: number,
  ): Generator<undefined, void> {
    const { table, before, isFull } = this.#parts;
    const reportRows = new Int32Array(nodes.length);
    // By index: an iterator that outlives a turn creates an object for each element.
    for (let i = 0; i < nodes.length; i += 1) {
      const report = nodes[i];
      if (report === undefined) continue;
      const isNew = table.rowNodes.length;
      const row = table.sizeBytes > bytesMax ? -1 : table.rowOf(report);
      reportRows[i] = row;
      if (isFull && row === isNew) table.lastAtMs[row] = before.lastAtMsOf(report);
      const { atMs, heldAtMs = atMs } = report;
      this.referenceMs = Math.max(this.referenceMs, atMs, heldAtMs);
      if (row < 0) this.leftOutCount += 1;
      if (i % turnRows === turnRows - 1) yield;
    }
    const { rows: rowCount, nodes: nodeCount } = table.size;
    this.#reportAt = new Int32Array(rowCount).fill(-1);
    this.#isNews = new Uint8Array(rowCount);
    this.rowsAtMs = new Float64Array(rowCount).fill(Number.NEGATIVE_INFINITY);
    this.#newestMs = new Float64Array(nodeCount).fill(Number.NEGATIVE_INFINITY);
    this.#heldAtMs = new Float64Array(nodeCount).fill(Number.POSITIVE_INFINITY);
    this.#isThere = new Uint8Array(nodeCount);
    for (let i = 0; i < nodes.length; i += 1) {
      const report = nodes[i];
      const row = reportRows[i] ?? -1;
      if (row >= 0 && report !== undefined) this.#note(row, i, { report, samples });
      if (i % turnRows === turnRows - 1) yield;
    }
  }

  #note(row: number, i: number, { report, samples }: Noted): void {
    const { rowNodes, rowServices, lastAtMs } = this.#parts.table;
    const node = rowNodes[row] ?? 0;
    const { atMs, heldAtMs } = report;
    this.#reportAt[row] = i;
    this.#isThere[node] = 1;
    if (heldAtMs !== undefined) {
      this.#heldAtMs[node] = Math.min(this.#heldAtMs[node] ?? heldAtMs, heldAtMs);
    }
    const lastMs = lastAtMs[row] ?? Number.NEGATIVE_INFINITY;
    const ageMs = this.referenceMs - atMs;
    if (atMs - lastMs < reportGapMsMin || !(ageMs <= ageMsMax)) return;
    this.#isNews[row] = 1;
    this.rowsAtMs[row] = atMs;
    this.#newestMs[node] = Math.max(this.#newestMs[node] ?? atMs, atMs);
    samples.add(rowServices[row] ?? 0, report, { atMs, lastMs, referenceMs: this.referenceMs });
  }

  /** Writes the part of the table that readers do not have. */
  *#writeTable(): Generator<undefined, void> {
    const { services, owners, nodeIds, nodeOwners, rowNodes, rowServices } = this.#parts.table;
    const reported = this.#reported;
    const body = this.#body;
    for (const [texts, from] of [
      [services.texts, reported.services],
      [owners.texts, reported.owners],
    ] as const) {
      body.whole(texts.length - from);
      for (let i = from; i < texts.length; i += 1) {
        body.text(texts[i] ?? "");
        if (body.endsTurn()) yield;
      }
    }
    body.whole(nodeIds.length - reported.nodes);
    for (let node = reported.nodes; node < nodeIds.length; node += 1) {
      body.text(nodeIds[node] ?? "");
      body.count(nodeOwners[node] ?? 0);
      if (body.endsTurn()) yield;
    }
    const groups = new ByteWriter();
    let groupCount = 0;
    let before = { node: -1, from: 0, to: 0 };
    for (let from = reported.rows; from < rowNodes.length; ) {
      const node = rowNodes[from] ?? 0;
      let to = from + 1;
      while (rowNodes[to] === node) to += 1;
      groups.difference(node - before.node);
      const isSame = areSame(rowServices, { from, to }, before);
      groups.count(isSame ? 0 : to - from);
      if (!isSame) for (let row = from; row < to; row += 1) groups.count(rowServices[row] ?? 0);
      before = { node, from, to };
      from = to;
      groupCount += 1;
      if (groupCount % turnRows === 0) yield;
    }
    body.whole(groupCount);
    body.bytes(groups.finish());
  }

  *#writeNodes(): Generator<undefined, void> {
    const { nodeCodes, nodeIds } = this.#parts.table;
    const entries = new ByteWriter();
    const changes = new ChangeWriter(entries, nodeStride);
    const codes = new Uint32Array(nodeStride);
    for (let node = 0; node < nodeIds.length; node += 1) {
      const from = node * nodeStride;
      codes[nodeFields.news] = this.#newsCode(node, nodeCodes[from + nodeFields.news] ?? 0);
      codes[nodeFields.held] = this.#heldCode(node, nodeCodes[from + nodeFields.held] ?? 0);
      changes.add(node, codes, nodeCodes);
      this.kept?.nodeCodes.set(codes, from);
      if (node % turnRows === turnRows - 1) yield;
    }
    this.#body.whole(changes.count);
    this.#body.bytes(entries.finish());
  }

  #newsCode(node: number, reported: number): number {
    const newestMs = this.#newestMs[node] ?? Number.NEGATIVE_INFINITY;
    if (newestMs === Number.NEGATIVE_INFINITY) return 0;
    // This age also applies to numbers of the Envoy that are older by at most `spreadMs`.
    const ageMs = this.referenceMs - newestMs + spreadMs;
    return reportedAge(ageMs, reported > 0 ? reported - 1 : -1, newsSlackMs) + 1;
  }

  #heldCode(node: number, reported: number): number {
    if (this.#isThere[node] !== 1) return 0;
    const heldAtMs = this.#heldAtMs[node] ?? Number.POSITIVE_INFINITY;
    if (heldAtMs === Number.POSITIVE_INFINITY) return 1;
    return (
      reportedAge(this.referenceMs - heldAtMs, reported > 1 ? reported - 2 : -1, heldSlackMs) + 2
    );
  }

  *#writeRows(nodes: readonly NodeReport[], bytesMax: number): Generator<undefined, void> {
    const { rowCodes, rowNodes } = this.#parts.table;
    const entries = new ByteWriter();
    const changes = new ChangeWriter(entries, rowStride);
    const remainderBytes = 4 + 15 * this.#parts.table.services.texts.length;
    const roomBytes = bytesMax - this.#body.position - entryBytesMax - remainderBytes;
    let row = 0;
    for (; row < rowNodes.length && entries.position <= roomBytes; row += 1) {
      if (row % turnRows === turnRows - 1) yield;
      if (this.#isThere[rowNodes[row] ?? 0] !== 1) continue;
      this.#fillRow(row, nodes[this.#reportAt[row] ?? -1]);
      changes.add(row, this.#row, rowCodes);
      this.kept?.rowCodes.set(this.#row, row * rowStride);
    }
    this.#body.count(row);
    this.#body.whole(changes.count);
    this.#body.bytes(entries.finish());
    this.#remainders.write(this.#body);
    for (; row < rowNodes.length; row += 1)
      if ((this.#reportAt[row] ?? -1) >= 0) this.leftOutCount += 1;
  }

  /** Fills in the codes of a row. A row without news has only what it holds. */
  #fillRow(row: number, report: NodeReport | undefined): void {
    const { table, scale } = this.#parts;
    const codes = this.#row;
    const from = row * rowStride;
    const reported = table.rowCodes;
    for (let field = 0; field < rowStride; field += 1) codes[field] = reported[from + field] ?? 0;
    codes[rowFields.held] = wholeOf(report?.held ?? 0);
    codes[rowFields.lag] = 1;
    if (report === undefined || this.#isNews[row] !== 1) return;
    const lagMs = (this.#newestMs[table.rowNodes[row] ?? 0] ?? report.atMs) - report.atMs;
    codes[rowFields.lag] = lagMs <= spreadMs ? 0 : 2 + Math.ceil(lagMs / ageStepMs);
    const { latency, inFlight, overflowCount, highInFlight, rps } = report;
    const { demand, inFlight: inWork, rps: rate, overflow } = rowFields;
    codes[demand] = scale.next(codes[demand] ?? 0, report.demand ?? demandOf(report));
    codes[inWork] = scale.next(codes[inWork] ?? 0, inFlight);
    // A service that answered had requests, even if their rate is not known yet.
    const reportedRps = latency.count > 0 ? Math.max(rps, Number.MIN_VALUE) : rps;
    codes[rate] = scale.next(codes[rate] ?? 0, reportedRps);
    this.#remainders.add(table.rowServices[row] ?? 0, {
      inFlight: inFlight - scale.valueOf(codes[inWork] ?? 0),
      rps: reportedRps - scale.valueOf(codes[rate] ?? 0),
    });
    codes[overflow] = scale.next(codes[overflow] ?? 0, overflowCount);
    const reportedHigh = reported[from + rowFields.high] ?? 0;
    codes[rowFields.high] =
      highInFlight === undefined ? 0 : 1 + scale.next(Math.max(0, reportedHigh - 1), highInFlight);
  }
}

interface Noted {
  readonly report: NodeReport;
  readonly samples: ReportSamples;
}

interface Range {
  readonly from: number;
  readonly to: number;
}

function areSame(values: readonly number[], one: Range, other: Range): boolean {
  const length = one.to - one.from;
  if (other.to - other.from !== length) return false;
  for (let i = 0; i < length; i += 1) {
    if (values[one.from + i] !== values[other.from + i]) return false;
  }
  return true;
}

/** Returns an age in steps, never below the real one: the reported one, unless it is too high. */
function reportedAge(ageMs: number, reported: number, slackMs: number): number {
  const reportedMs = reported * ageStepMs;
  if (reported >= 0 && reportedMs >= ageMs && reportedMs <= ageMs + slackMs) return reported;
  return Math.ceil(Math.min(ageMsMax, ageMs + slackMs / 2) / ageStepMs);
}

function wholeOf(value: number): number {
  return Number.isNaN(value) ? 0 : Math.min(2 ** 32 - 1, Math.max(0, Math.round(value)));
}
