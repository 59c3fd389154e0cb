import { type GateState, gateStates } from "../../core/admission/gate.js";
import type {
  NodeShare,
  ServiceFacts,
  ServiceShares,
  ShareSnapshot,
} from "../../core/feedback/feedback.js";
import { NodeNames, type ShareColumns, ShareTable } from "../../core/feedback/share-table.js";
import type { SnapshotVersion } from "../../store/coordination/snapshot-version.js";
import { ByteReader, ByteWriter, readTexts, TextTable } from "./byte-fields.js";
import type { GateVerdict } from "./fleet-gates.js";

/** Decisions of a leader in one second. */
export interface FleetSnapshot {
  readonly snapshot: ShareSnapshot;
  /** Verdicts on the gates of admission, by service. */
  readonly verdicts: ReadonlyMap<string, GateVerdict>;
}

/** An encoded snapshot. Its rank is sent beside it, where the store can read it. */
interface EncodedSnapshot {
  readonly bytes: Buffer;
  /** Services and verdicts without room. Configured defaults apply to those services. */
  readonly leftOutCount: number;
}

/** Maximum size of a snapshot in bytes: 600,000 shares, of 30,000 Envoys with 20 services each. */
export const snapshotBytesMax = 8_388_608;

/** Maximum number of services, and of verdicts. A policy has up to 1,000. */
export const snapshotServicesMax = 4_096;

/** Format version. Programs do not read snapshots of other versions. */
const format = 2;

/** Minimum size of rows, in bytes. */
const shareBytes = 12;
const serviceBytes = 43;
const verdictBytes = 11;
const headBytes = 1 + 3 * 4;

/**
 * Encodes a snapshot, in turns, verdicts first. Services that do not fit into `bytesMax` are left
 * out.
 */
export function* encodeSnapshot(
  { snapshot, verdicts }: FleetSnapshot,
  bytesMax = snapshotBytesMax,
): Generator<undefined, EncodedSnapshot> {
  const nodeIds = new TextTable();
  const fits = (name: string, moreBytes: number): boolean => {
    const used = headBytes + reported.position + services.position + nodeIds.sizeBytes;
    return used + moreBytes + Buffer.byteLength(name) <= bytesMax;
  };
  const reported = new ByteWriter();
  const services = new ByteWriter();
  let verdictCount = 0;
  for (const [name, { rejectRatio, state }] of [...verdicts].slice(0, snapshotServicesMax)) {
    if (!fits(name, verdictBytes)) continue;
    reported.text(name);
    reported.ratio(rejectRatio);
    reported.byte(gateStates.indexOf(state));
    verdictCount += 1;
  }
  let serviceCount = 0;
  const places = new SharePlaces(nodeIds);
  for (const [name, service] of [...snapshot.services].slice(0, snapshotServicesMax)) {
    const { shares } = service;
    const nodesBytes = places.costBytes(shares);
    if (!fits(name, serviceBytes + shares.size * shareBytes + nodesBytes)) continue;
    services.text(name);
    yield* writeService(services, service, places);
    serviceCount += 1;
  }
  const writer = new ByteWriter();
  writer.byte(format);
  yield* nodeIds.write(writer);
  writer.whole(verdictCount);
  const count = new ByteWriter();
  count.whole(serviceCount);
  const parts = [writer, reported, count, services].map((part) => part.finish());
  const leftOutCount = verdicts.size + snapshot.services.size - verdictCount - serviceCount;
  return { bytes: Buffer.concat(parts), leftOutCount };
}

function* writeService(
  writer: ByteWriter,
  service: ServiceShares,
  places: SharePlaces,
): Generator<undefined, void> {
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
  yield* places.write(writer, shares);
}

/**
 * The places of Envoys in a snapshot. Services normally have the same Envoys in the same order: an
 * Envoy in the same row of the previous service is found without a search.
 */
class SharePlaces {
  readonly #nodeIds: TextTable;
  /** The last service's names by row, and their places. */
  #names: readonly string[] = [];
  #places = new Int32Array(0);

  constructor(nodeIds: TextTable) {
    this.#nodeIds = nodeIds;
  }

  /** Returns the size of the names that are new. Infinity if there are too many. */
  costBytes(shares: ReadonlyMap<string, NodeShare>): number {
    if (!(shares instanceof ShareTable)) return this.#nodeIds.costBytes(shares.keys());
    const { names, places } = shares.rows;
    const added: string[] = [];
    for (let row = 0; row < places.length; row += 1) {
      const name = names[places[row] ?? 0] ?? "";
      if (name !== this.#names[row]) added.push(name);
    }
    return this.#nodeIds.costBytes(added);
  }

  /** Writes the shares of a service, in turns. */
  *write(writer: ByteWriter, shares: ReadonlyMap<string, NodeShare>): Generator<undefined, void> {
    if (!(shares instanceof ShareTable)) {
      for (const [nodeId, share] of shares) {
        writeShare(writer, this.#nodeIds.add(nodeId), share);
        if (writer.endsTurn()) yield;
      }
      return;
    }
    const { names, places, defaults, highs } = shares.rows;
    const written: string[] = [];
    const writtenPlaces = new Int32Array(places.length);
    for (let row = 0; row < places.length; row += 1) {
      const name = names[places[row] ?? 0] ?? "";
      const isSame = name === this.#names[row];
      const place = isSame ? (this.#places[row] ?? 0) : this.#nodeIds.add(name);
      written.push(name);
      writtenPlaces[row] = place;
      writeShare(writer, place, { default: defaults[row] ?? 0, high: highs[row] ?? 0 });
      if (writer.endsTurn()) yield;
    }
    this.#names = written;
    this.#places = writtenPlaces;
  }
}

function writeShare(writer: ByteWriter, place: number, share: NodeShare): void {
  writer.whole(place);
  writer.whole(share.default);
  writer.whole(share.high);
}

/** Decodes a snapshot, in turns. Undefined if the bytes are invalid or of another version. */
export function* decodeSnapshot(
  bytes: Buffer,
  rank: SnapshotVersion,
): Generator<undefined, FleetSnapshot | undefined> {
  const reader = new ByteReader(bytes);
  if (reader.byte() !== format) return undefined;
  const nodes = new NodeNames(yield* readTexts(reader));
  const verdicts = new Map<string, GateVerdict>();
  yield* reader.rows({ rowBytes: verdictBytes, countMax: snapshotServicesMax }, () => {
    const name = reader.text();
    verdicts.set(name, { rejectRatio: reader.ratio(), state: readGate(reader) });
  });
  const services = new Map<string, ServiceShares>();
  yield* reader.rows({ rowBytes: serviceBytes, countMax: snapshotServicesMax }, function* () {
    const name = reader.text();
    services.set(name, yield* readService(reader, nodes));
  });
  if (!reader.isDone) return undefined;
  const { term, leaderId, version } = rank;
  return { snapshot: { term, leaderId, version, services }, verdicts };
}

function* readService(reader: ByteReader, nodes: NodeNames): Generator<undefined, ServiceShares> {
  const limit = reader.whole();
  const rejectRatio = reader.ratio();
  const gate = readGate(reader);
  const facts = readFacts(reader);
  const shares = yield* readShares(reader, nodes);
  return { limit, shares, rejectRatio, gate, facts };
}

function* readShares(reader: ByteReader, nodes: NodeNames): Generator<undefined, ShareTable> {
  const count = reader.upcoming(shareBytes);
  const rows = {
    places: new Uint32Array(count),
    defaults: new Uint32Array(count),
    highs: new Uint32Array(count),
  };
  let row = 0;
  let isAscending = true;
  yield* reader.rows({ rowBytes: shareBytes }, () => {
    const place = reader.placeOf(nodes.names);
    if (row > 0 && place <= (rows.places[row - 1] ?? 0)) isAscending = false;
    rows.places[row] = place;
    rows.defaults[row] = reader.whole();
    rows.highs[row] = reader.whole();
    row += 1;
  });
  return new ShareTable(nodes, isAscending ? rows : ascending(rows, nodes.names.length));
}

/** Returns the rows in the order of places. If a place occurs twice, its last row is kept. */
function ascending(columns: ShareColumns, placeCount: number): ShareColumns {
  const rowAt = new Int32Array(placeCount).fill(-1);
  for (let row = 0; row < columns.places.length; row += 1) rowAt[columns.places[row] ?? 0] = row;
  const rows = rowAt.filter((row) => row >= 0);
  const pick = (column: Uint32Array): Uint32Array =>
    Uint32Array.from(rows, (row) => column[row] ?? 0);
  return {
    places: pick(columns.places),
    defaults: pick(columns.defaults),
    highs: pick(columns.highs),
  };
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
