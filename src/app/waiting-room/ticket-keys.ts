import { createHash, createHmac } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import type { Clock } from "../../core/base/clock.js";
import type { TicketKey } from "../../core/waiting-room/ticket.js";
import { exitCodes, StartFailure } from "../base/failure.js";
import type { Logger } from "../base/logger.js";
import { PathWatcher } from "../base/path-watcher.js";
import { SerializedPoll } from "../base/serialized-poll.js";
import { readErrorWords } from "../config/policy-files.js";

/** The keys that sign tickets: from a file, or those of the rooms themselves. */
export interface TicketKeys {
  /**
   * The first one signs, all of them verify.
   *
   * @param secret the room's own, which the store keeps; undefined: it is not known yet
   */
  keysOf(secret: Buffer | undefined): readonly TicketKey[];
  /** Follows the file no more. */
  close(): void;
}

interface TicketKeysParts {
  /** Undefined: rooms sign with their own secrets. */
  readonly path: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The shortest key, in characters. */
const keyCharsMin = 32;

/** Keys of one file at most: a ticket costs a signature for each that has its id. */
const ticketKeysMax = 8;

const fileBytesMax = 16_384;

/**
 * Opens the keys of tickets. A file is read now and again when it changes; what is wrong with it
 * then changes nothing but the log.
 *
 * @throws StartFailure for a file that is wrong, with the exit code of a wrong configuration
 */
export async function openTicketKeys({
  path,
  clock,
  logger,
}: TicketKeysParts): Promise<TicketKeys> {
  if (path === undefined) return new RoomSecrets();
  const file = new KeysFile(path, logger);
  const problem = await file.look();
  if (problem !== undefined) {
    throw new StartFailure(exitCodes.usage, `HEADGATE_WAITING_ROOM_KEYS_FILE ${problem}`);
  }
  const looks = new SerializedPoll(() => file.look());
  const onChange = (): void => looks.want();
  const watcher = new PathWatcher({ path, directories: [], clock, onChange });
  return { keysOf: () => file.keys, close: () => watcher.close() };
}

/** A key of a secret. Its id tells nothing of it but that it is another one. */
function ticketKeyOf(secret: string | Buffer): TicketKey {
  const [id = 0] = createHash("sha256").update("headgate ticket key ").update(secret).digest();
  return { id, mac: (bytes) => createHmac("sha256", secret).update(bytes).digest() };
}

/** The keys that the store keeps, made once for each room. */
class RoomSecrets implements TicketKeys {
  readonly #known = new Map<string, readonly TicketKey[]>();

  keysOf(secret: Buffer | undefined): readonly TicketKey[] {
    if (secret === undefined) return [];
    // Each answer of the store has a copy of it.
    const name = secret.toString("latin1");
    const known = this.#known.get(name) ?? [ticketKeyOf(secret)];
    if (this.#known.size < secretsMax) this.#known.set(name, known);
    return known;
  }

  close(): void {}
}

/** Secrets whose keys are kept. */
const secretsMax = 1_024;

/** The file of keys as it was read last without a fault. */
class KeysFile {
  readonly #path: string;
  readonly #logger: Logger;
  #keys: readonly TicketKey[] = [];
  #seen: string | undefined;

  constructor(path: string, logger: Logger) {
    this.#path = path;
    this.#logger = logger;
  }

  get keys(): readonly TicketKey[] {
    return this.#keys;
  }

  /** Reads it; answers what is wrong with it, and then keeps what it knows. */
  async look(): Promise<string | undefined> {
    const read = await readKeys(this.#path);
    const isFirst = this.#seen === undefined;
    const seen = "problem" in read ? `\n${read.problem}` : read.secrets.join("\n");
    if (seen === this.#seen) return undefined;
    this.#seen = seen;
    if (!("problem" in read)) {
      this.#keys = read.secrets.map(ticketKeyOf);
      const line = { event: "ticketKeysRead", keyCount: read.secrets.length };
      this.#logger.info(line, "The keys of waiting rooms are active.");
      return undefined;
    }
    // At start the caller reports it, and there is nothing older to keep.
    if (!isFirst) {
      this.#logger.error(
        { event: "ticketKeysRefused", problem: read.problem },
        "The new keys of waiting rooms are invalid; the old ones stay active.",
      );
    }
    return read.problem;
  }
}

type ReadKeys = { readonly secrets: readonly string[] } | { readonly problem: string };

/** A key a line; empty lines do not count. */
async function readKeys(path: string): Promise<ReadKeys> {
  try {
    const found = await stat(path);
    if (!found.isFile()) return { problem: "is not a file" };
    if (found.size > fileBytesMax) return { problem: `has more than ${fileBytesMax} bytes` };
    const lines = (await readFile(path, "utf8")).split("\n").map((line) => line.trim());
    const secrets = lines.filter((line) => line !== "");
    if (secrets.length === 0) return { problem: "has no key" };
    if (secrets.length > ticketKeysMax) return { problem: `has more than ${ticketKeysMax} keys` };
    const isShort = secrets.some(({ length }) => length < keyCharsMin);
    return isShort ? { problem: `has a key below ${keyCharsMin} characters` } : { secrets };
  } catch (error) {
    return { problem: `cannot be read: ${readErrorWords(error)}` };
  }
}
