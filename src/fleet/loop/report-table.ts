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

/** The longest text in bytes, as UTF-8. */
const textBytesMax = 65_535;

/** Texts by place, and places by text. */
class Places {
  readonly texts: string[] = [];
  readonly #places = new Map<string, number>();
  readonly #countMax: number;
  /** What all texts take, with their lengths. */
  sizeBytes = 0;

  constructor(countMax: number) {
    this.#countMax = countMax;
  }

  /** The place of a text, which is added if it is new; -1: there is no room for it. */
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

/** How much of a table a reader has, or how much there is. */
export interface TableSize {
  readonly services: number;
  readonly owners: number;
  readonly nodes: number;
  readonly rows: number;
}

const noSize: TableSize = { services: 0, owners: 0, nodes: 0, rows: 0 };

/**
 * The Envoys and services of which one replica tells, by places: what a full record says, and what
 * has come since. An Envoy whose identity is another one is another Envoy.
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
  /** When the newest numbers that were told of a row were true; minus infinity: none were. */
  lastAtMs = new Float64Array(64);
  /** What readers have of each Envoy and each row; see `nodeFields` and `rowFields`. */
  nodeCodes: Uint32Array = new Uint32Array(0);
  rowCodes: Uint32Array = new Uint32Array(0);
  /** What readers have of this table. */
  reported = noSize;
  readonly #nodePlaces = new Map<string, number>();
  /** By Envoy, its first row; by row, the next one of the same Envoy. */
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

  /** What all of it takes in a record, about. */
  get sizeBytes(): number {
    const rowBytes = 2 * this.rowNodes.length;
    return this.services.sizeBytes + this.owners.sizeBytes + this.#nodeBytes + rowBytes;
  }

  /**
   * The row of an Envoy and service, which is added if it is new; -1: there is no room for it. They
   * come in the same order each second, as a rule, and are found without a search then.
   */
  rowOf(report: NodeReport): number {
    const next = this.#cursor;
    const row = this.#isOf(next, report) ? next : this.#search(report);
    if (row >= 0) this.#cursor = row + 1;
    return row;
  }

  /** When the newest numbers of a row were true that were told; minus infinity: nobody told any. */
  lastAtMsOf(report: NodeReport): number {
    const place = this.#nodePlaces.get(report.nodeId);
    const row = place === undefined ? -1 : this.#find(place, report.service);
    return row < 0 ? Number.NEGATIVE_INFINITY : (this.lastAtMs[row] ?? 0);
  }

  /** Room for the codes of all that has been added. */
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
