import type { NodeReport } from "../../core/feedback/feedback.js";
import { textsMax } from "./byte-fields.js";
import {
  nodeCodeMosts,
  noOwner,
  recordRowsMax,
  recordServicesMax,
  rowCodeMosts,
} from "./report-format.js";

const nodeStride = nodeCodeMosts.length;
const rowStride = rowCodeMosts.length;

/** Maximum length of a text as UTF-8, in bytes. */
const textBytesMax = 65_535;

/** Texts by place, and places by text. */
class Places {
  readonly texts: string[] = [];
  readonly #places = new Map<string, number>();
  readonly #countMax: number;
  /** Size of all texts, including their lengths. */
  sizeBytes = 0;

  constructor(countMax: number) {
    this.#countMax = countMax;
  }

  /** Returns the place of a text. Adds it if it is new. -1 if there is no room for it. */
  add(text: string): number {
    const known = this.#places.get(text);
    if (known !== undefined) return known;
    const lengthBytes = Buffer.byteLength(text);
    if (lengthBytes > textBytesMax || this.texts.length >= this.#countMax) return -1;
    this.#places.set(text, this.texts.length);
    this.sizeBytes += lengthBytes + 2;
    return this.texts.push(text) - 1;
  }
}

/** Size of a table, or of the part of it that a reader has. */
export interface TableSize {
  readonly services: number;
  readonly owners: number;
  readonly nodes: number;
  readonly rows: number;
}

const noSize: TableSize = { services: 0, owners: 0, nodes: 0, rows: 0 };

/**
 * The Envoys and services that one replica reports, by place: the content of a full record, and
 * later additions. An Envoy with another identity counts as another Envoy.
 */
export class ReportTable {
  readonly services = new Places(recordServicesMax);
  readonly owners = new Places(textsMax);
  readonly nodeIds: string[] = [];
  /** Places of their owners. */
  readonly nodeOwners: number[] = [];
  /** Places of Envoys, by row. */
  readonly rowNodes: number[] = [];
  readonly rowServices: number[] = [];
  /** Time of the newest reported numbers of each row. Minus infinity if none were reported. */
  lastAtMs = new Float64Array(64);
  /** Codes that readers have of each Envoy and each row; see `nodeFields` and `rowFields`. */
  nodeCodes: Uint32Array = new Uint32Array(0);
  rowCodes: Uint32Array = new Uint32Array(0);
  /** Size of the part of this table that readers have. */
  reported = noSize;
  readonly #nodePlaces = new Map<string, number>();
  /** The first row of each Envoy; for each row, the next one of the same Envoy. */
  readonly #firstRows: number[] = [];
  readonly #nextRows: number[] = [];
  #cursor = 0;
  #nodeBytes = 0;

  get size(): TableSize {
    return {
      services: this.services.texts.length,
      owners: this.owners.texts.length,
      nodes: this.nodeIds.length,
      rows: this.rowNodes.length,
    };
  }

  /** Approximate size of all of it in a record, in bytes. */
  get sizeBytes(): number {
    const rowBytes = 2 * this.rowNodes.length;
    return this.services.sizeBytes + this.owners.sizeBytes + this.#nodeBytes + rowBytes;
  }

  /**
   * Returns the row of an Envoy and service. Adds it if it is new. -1 if there is no room for it.
   * Normally, they come in the same order each second, and are then found without a search.
   */
  rowOf(report: NodeReport): number {
    const next = this.#cursor;
    const row = this.#isOf(next, report) ? next : this.#search(report);
    if (row >= 0) this.#cursor = row + 1;
    return row;
  }

  /** Returns the time of a row's newest reported numbers. Minus infinity if there are none. */
  lastAtMsOf(report: NodeReport): number {
    const place = this.#nodePlaces.get(report.nodeId);
    const row = place === undefined ? -1 : this.#find(place, report.service);
    return row < 0 ? Number.NEGATIVE_INFINITY : (this.lastAtMs[row] ?? 0);
  }

  /** Makes room for the codes of everything that has been added. */
  reserve(): void {
    this.nodeCodes = grown(this.nodeCodes, nodeStride * this.nodeIds.length);
    this.rowCodes = grown(this.rowCodes, rowStride * this.rowNodes.length);
  }

  #isOf(row: number, { nodeId, service, owner = noOwner }: NodeReport): boolean {
    const node = this.rowNodes[row];
    return (
      node !== undefined &&
      this.nodeIds[node] === nodeId &&
      this.services.texts[this.rowServices[row] ?? 0] === service &&
      this.owners.texts[this.nodeOwners[node] ?? 0] === owner
    );
  }

  #search(report: NodeReport): number {
    const { nodeId, service, owner = noOwner } = report;
    const known = this.#nodePlaces.get(nodeId);
    const isSame = known !== undefined && this.owners.texts[this.nodeOwners[known] ?? 0] === owner;
    const node = isSame ? known : this.#addNode(nodeId, owner);
    if (node < 0) return -1;
    const row = this.#find(node, service);
    return row < 0 ? this.#addRow(node, service) : row;
  }

  #find(node: number, service: string): number {
    let row = this.#firstRows[node] ?? -1;
    while (row >= 0) {
      if (this.services.texts[this.rowServices[row] ?? 0] === service) return row;
      row = this.#nextRows[row] ?? -1;
    }
    return -1;
  }

  #addNode(nodeId: string, owner: string): number {
    const lengthBytes = Buffer.byteLength(nodeId);
    if (lengthBytes > textBytesMax || this.nodeIds.length >= textsMax) return -1;
    const ownerPlace = this.owners.add(owner);
    if (ownerPlace < 0) return -1;
    const node = this.nodeIds.push(nodeId) - 1;
    this.#nodePlaces.set(nodeId, node);
    this.nodeOwners.push(ownerPlace);
    this.#firstRows.push(-1);
    this.#nodeBytes += lengthBytes + 12;
    return node;
  }

  #addRow(node: number, service: string): number {
    const servicePlace = this.services.add(service);
    if (servicePlace < 0 || this.rowNodes.length >= recordRowsMax) return -1;
    const row = this.rowNodes.push(node) - 1;
    this.rowServices.push(servicePlace);
    this.#nextRows.push(this.#firstRows[node] ?? -1);
    this.#firstRows[node] = row;
    if (row >= this.lastAtMs.length) {
      const larger = new Float64Array(2 * row);
      larger.set(this.lastAtMs);
      this.lastAtMs = larger;
    }
    this.lastAtMs[row] = Number.NEGATIVE_INFINITY;
    return row;
  }
}

function grown(codes: Uint32Array, length: number): Uint32Array {
  if (codes.length === length) return codes;
  const larger = new Uint32Array(length);
  larger.set(codes);
  return larger;
}
