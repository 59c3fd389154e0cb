import type { DescriptorEntry } from "./key.js";
import { OverriddenLimits, type Override } from "./override.js";
import { domainHash, entryHash, OverrideRows, shapeOf } from "./override-rows.js";

/** The interface of rows that a table needs. */
type Rows = Pick<
  OverrideRows<never>,
  "count" | "domains" | "idsOf" | "overrideAt" | "expiryAt" | "hashAt" | "shapeAt"
>;

/**
 * The active overrides: an immutable snapshot that is rebuilt for each change. A lookup costs a
 * hash of the descriptor, so it is done when a query is prepared, not for each call.
 *
 * The table keeps no texts. A slot of four bytes and its row (`OverrideRows`) refer to the stored
 * override, which is parsed if a descriptor has its hash. 100,000 overrides take 5 MB.
 */
export class OverrideTable {
  /** Increases with each change, so that outdated prepared queries can be detected. */
  readonly version: number;
  /** When the next override expires, in milliseconds since 1970; Infinity if none does. */
  readonly nextExpiryEpochMs: number;
  readonly size: number;
  /** The resulting limits. */
  readonly limits = new OverriddenLimits();
  readonly #rows: Rows;
  /** Row numbers plus 1, by hash; 0 is empty. The size is a power of two, at most half full. */
  readonly #slots: Int32Array;
  readonly #domains: ReadonlySet<string>;
  /** The lengths of prefixes, longest first. */
  readonly #prefixLengths: readonly number[];

  /** @param nowEpochMs overrides that have expired by then are omitted */
  constructor(overrides: Iterable<Override> | Rows, version: number, nowEpochMs: number) {
    const rows = "hashAt" in overrides ? overrides : rowsOf(overrides);
    this.version = version;
    this.#rows = rows;
    this.#slots = new Int32Array(2 ** Math.ceil(Math.log2(2 * rows.count + 2)));
    this.#domains = new Set(rows.domains);
    let nextExpiryEpochMs = Number.POSITIVE_INFINITY;
    let size = 0;
    const shapes = new Set<number>();
    for (let row = 0; row < rows.count; row += 1) {
      const expiresEpochMs = rows.expiryAt(row);
      if (expiresEpochMs <= nowEpochMs) continue;
      if (expiresEpochMs < nextExpiryEpochMs) nextExpiryEpochMs = expiresEpochMs;
      size += 1;
      shapes.add(rows.shapeAt(row));
      this.#put(row);
    }
    this.#prefixLengths = prefixLengths(shapes);
    this.nextExpiryEpochMs = nextExpiryEpochMs;
    this.size = size;
  }

  /**
   * Finds the override of a descriptor's limit. Precedence: the whole descriptor before a prefix, a
   * longer prefix before a shorter one, one that names the limit before one that does not, and the
   * newest of equal ones. Undefined if there is none.
   */
  find(
    domain: string,
    entries: readonly DescriptorEntry[],
    limitName: string | undefined,
  ): Override | undefined {
    if (!this.#domains.has(domain)) return undefined;
    const hashes = [domainHash(domain)];
    for (const [i, entry] of entries.entries()) hashes.push(entryHash(hashes[i] ?? 0, entry));
    const asked = { domain, entries, limitName, hashes };
    const whole = this.#choose(asked, { length: entries.length, isPrefix: false });
    if (whole !== undefined) return whole;
    for (const length of this.#prefixLengths) {
      if (length > entries.length) continue;
      const one = this.#choose(asked, { length, isPrefix: true });
      if (one !== undefined) return one;
    }
    return undefined;
  }

  /** Whether the domain has any override. */
  concerns(domain: string): boolean {
    return this.#domains.has(domain);
  }

  /** The ids of the overrides in these domains, including expired ones. */
  idsOf(domains: readonly string[]): Iterable<string> {
    return this.#rows.idsOf(domains);
  }

  #put(row: number): void {
    const mask = this.#slots.length - 1;
    let slot = this.#rows.hashAt(row) & mask;
    while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
    this.#slots[slot] = row + 1;
  }

  #choose(asked: Asked, { length, isPrefix }: Pattern): Override | undefined {
    const hash = asked.hashes[length] ?? 0;
    const shape = shapeOf(length, isPrefix);
    const mask = this.#slots.length - 1;
    let best: Override | undefined;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const row = (this.#slots[slot] ?? 0) - 1;
      if (row < 0) return best;
      if (this.#rows.hashAt(row) !== hash || this.#rows.shapeAt(row) !== shape) continue;
      const one = this.#rows.overrideAt(row);
      if (one === undefined || !isOf(one, asked)) continue;
      if (best === undefined || isBefore(one, best)) best = one;
    }
  }
}

/** A table without overrides. */
export const noOverrides = new OverrideTable([], 0, 0);

/** A descriptor's limit, with the hashes of all its prefixes, by length. */
interface Asked {
  readonly domain: string;
  readonly entries: readonly DescriptorEntry[];
  readonly limitName: string | undefined;
  readonly hashes: readonly number[];
}

interface Pattern {
  readonly length: number;
  readonly isPrefix: boolean;
}

function rowsOf(overrides: Iterable<Override>): Rows {
  const all = [...overrides];
  const rows = new OverrideRows<Override>(all.length, (override) => override);
  for (const override of all) rows.add(override, override);
  return rows;
}

function prefixLengths(shapes: ReadonlySet<number>): readonly number[] {
  const whole = shapeOf(0, true);
  return [...shapes]
    .filter((shape) => shape >= whole)
    .map((shape) => shape - whole)
    .sort((one, other) => other - one);
}

function isOf(override: Override, { domain, entries, limitName }: Asked): boolean {
  if (override.domain !== domain) return false;
  if (override.limitName !== undefined && override.limitName !== limitName) return false;
  return override.entries.every(
    ({ key, value }, i) => entries[i]?.key === key && entries[i]?.value === value,
  );
}

function isBefore(one: Override, other: Override): boolean {
  const isNamed = one.limitName !== undefined;
  if (isNamed !== (other.limitName !== undefined)) return isNamed;
  return one.createdEpochMs > other.createdEpochMs;
}
