import { ServiceError } from "../../../core/base/errors.js";
import type {
  AccountKey,
  AccountLaw,
  EntryResult,
  ReservedEntry,
} from "../../../core/budgets/account.js";
import { isAccountKey } from "../../../core/budgets/account-key.js";
import type { ReservationId } from "../../../core/budgets/budget-ledger.js";
import { holderOf, numberOf } from "../../../core/budgets/reservation-id.js";
import type {
  AccountRow,
  BudgetOperation,
  BudgetOutcome,
} from "../../coordination/budget-store.js";

/** A batch in the script's format. */
interface PackedBatch {
  /** Holders of the ids in the batch, each once. The calling holder is first. */
  readonly holders: readonly string[];
  /** Accounts in the batch, each once. */
  readonly accounts: readonly AccountKey[];
  /** Ids in the batch, each once. Those to settle are first, by holder. */
  readonly ids: readonly ReservationId[];
  readonly bytes: Buffer;
}

const lawBytes = 25;
/** Length of an entry in a batch, in bytes. */
export const entryBytes = 2 + lawBytes + 17;
const operationBytes = 12;

const kinds = { window: 0, drain: 1, inFlight: 2 } as const;

/** Packs a law: its kind, and three doubles. */
export function packLaw(law: AccountLaw): Buffer {
  const bytes = Buffer.alloc(lawBytes);
  writeLaw(bytes, 0, law);
  return bytes;
}

function writeLaw(bytes: Buffer, at: number, law: AccountLaw): number {
  bytes[at] = kinds[law.kind];
  let numbers = [0, 0, 0];
  if (law.kind === "window") {
    numbers = [law.windows.startUs, law.windows.endUs, law.windows.nextEndUs];
  } else if (law.kind === "drain") numbers = [law.periodUs, 0, 0];
  return writeDoubles(bytes, at + 1, numbers);
}

function writeDoubles(bytes: Buffer, at: number, numbers: readonly number[]): number {
  return numbers.reduce((next, number) => bytes.writeDoubleLE(number, next), at);
}

/**
 * Packs operations, little-endian. First the number of ids, the number of accounts, and for each
 * holder how many ids are settled (uint16). Then for each operation: its kind (1 reserve, 2 settle,
 * 3 settle also without a reservation), the position of its holder from 1, the position of its id
 * from 1 (uint16), the number in the id (double); the number of costs and the costs; the number of
 * entries and the entries: the position of the account from 1 (uint16), its law, capacity and
 * estimate (doubles), flags (1 enforced, 2 charged when lost).
 */
export function packBatch(holder: string, operations: readonly BudgetOperation[]): PackedBatch {
  const settled = new Map<string, Set<ReservationId>>([[holder, new Set()]]);
  for (const { kind, id } of operations) {
    if (kind === "reserve") continue;
    const name = holderOf(id);
    const own = settled.get(name) ?? new Set();
    settled.set(name, own.add(id));
  }
  const holders = new Map([...settled.keys()].map((name, i) => [name, i + 1]));
  const ids = new Map<ReservationId, number>();
  for (const own of settled.values()) for (const id of own) positionOf(ids, id);
  const accounts = new Map<AccountKey, number>();
  const headBytes = 4 + 2 * settled.size;
  const bytes = Buffer.allocUnsafe(operations.reduce((sum, one) => sum + bytesOf(one), headBytes));
  let at = 4;
  for (const own of settled.values()) at = bytes.writeUInt16LE(own.size, at);
  for (const operation of operations) {
    const { id } = operation;
    const isReserve = operation.kind === "reserve";
    const entries = isReserve ? operation.entries : operation.unreserved;
    const settle = entries === undefined ? 2 : 3;
    at = bytes.writeUInt8(isReserve ? 1 : settle, at);
    at = bytes.writeUInt8(holders.get(holderOf(id)) ?? 0, at);
    at = bytes.writeUInt16LE(positionOf(ids, id), at);
    at = bytes.writeDoubleLE(numberOf(id), at);
    if (!isReserve) {
      const { costs } = operation;
      at = writeDoubles(bytes, bytes.writeUInt8(costs.length, at), costs);
    }
    if (entries === undefined) continue;
    at = bytes.writeUInt8(entries.length, at);
    for (const entry of entries) {
      at = bytes.writeUInt16LE(positionOf(accounts, entry.account), at);
      at = writeEntry(bytes, at, entry);
    }
  }
  bytes.writeUInt16LE(ids.size, 0);
  bytes.writeUInt16LE(accounts.size, 2);
  return {
    holders: [...holders.keys()],
    accounts: [...accounts.keys()],
    ids: [...ids.keys()],
    bytes,
  };
}

function writeEntry(bytes: Buffer, at: number, entry: ReservedEntry): number {
  const { law, capacity, estimate, isEnforced, whenLost } = entry;
  const next = writeDoubles(bytes, writeLaw(bytes, at, law), [capacity, estimate]);
  const flags = (isEnforced ? 1 : 0) + (whenLost === "charge" ? 2 : 0);
  return bytes.writeUInt8(flags, next);
}

function bytesOf(operation: BudgetOperation): number {
  if (operation.kind === "reserve")
    return operationBytes + 1 + operation.entries.length * entryBytes;
  const { costs, unreserved } = operation;
  const entries = unreserved === undefined ? 0 : 1 + unreserved.length * entryBytes;
  return operationBytes + 1 + 8 * costs.length + entries;
}

function positionOf<Name>(positions: Map<Name, number>, name: Name): number {
  const position = positions.get(name) ?? positions.size + 1;
  positions.set(name, position);
  return position;
}

/** Reads numbers and names packed by scripts. @throws ServiceError STORE_PROTOCOL */
export class ReplyReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  byte(max: number): number {
    const byte = this.#take(1)[0] ?? 0;
    if (byte > max) throw new ServiceError("STORE_PROTOCOL");
    return byte;
  }

  /** Reads an integer of at least 0, or -1 if that is allowed. */
  amount(min: 0 | -1 = 0): number {
    const amount = this.#take(8).readDoubleLE(0);
    if (!Number.isSafeInteger(amount) || amount < min) throw new ServiceError("STORE_PROTOCOL");
    return amount;
  }

  name(): string {
    return this.#take(this.#take(2).readUInt16LE(0)).toString();
  }

  end(): void {
    if (!this.isAtEnd) throw new ServiceError("STORE_PROTOCOL");
  }

  #take(length: number): Buffer {
    const start = this.#at;
    this.#at += length;
    if (this.#at > this.#bytes.length) throw new ServiceError("STORE_PROTOCOL");
    return this.#bytes.subarray(start, this.#at);
  }
}

/** Reads the script's reply to a batch. @throws ServiceError STORE_PROTOCOL */
export function readOutcomes(
  reply: ReplyReader,
  operations: readonly BudgetOperation[],
): readonly BudgetOutcome[] {
  const nowUs = reply.amount();
  const outcomes = operations.map((operation): BudgetOutcome => {
    const code = reply.byte(5);
    if (code === 5) return { kind: "failed", code: "STORE_FULL" };
    if (operation.kind === "settle") {
      const result = (["settled", "late"] as const)[code - 3];
      if (code < 2) throw new ServiceError("STORE_PROTOCOL");
      return { kind: "settled", result: result ?? "unknown" };
    }
    if (code > 1) throw new ServiceError("STORE_PROTOCOL");
    const entries = operation.entries.map(() => readEntry(reply));
    return { kind: "reserved", result: { isReserved: code === 1, entries, nowUs } };
  });
  reply.end();
  return outcomes;
}

function readEntry(reply: ReplyReader): EntryResult {
  const isOver = reply.byte(1) === 1;
  const [spent, reserved, retryUs] = [reply.amount(), reply.amount(), reply.amount(-1)];
  return { spent, reserved, isOver, ...(retryUs < 0 ? {} : { retryUs }) };
}

/** Reads the row of an account; undefined if there is none. */
export function readRow(reply: ReplyReader, account: AccountKey): AccountRow | undefined {
  if (reply.byte(1) === 0) return undefined;
  const [spent, reserved] = [reply.amount(), reply.amount()];
  return { account, spent, reserved, spentBefore: reply.amount(), lost: reply.amount() };
}

/** Reads the key of an account. */
export function readKey(reply: ReplyReader): AccountKey {
  const name = reply.name();
  if (!isAccountKey(name)) throw new ServiceError("STORE_PROTOCOL");
  return name;
}
