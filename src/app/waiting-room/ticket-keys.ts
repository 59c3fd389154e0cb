import { createHash, createHmac } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import type { Clock } from "../../core/base/clock.js";
import type { TicketKey } from "../../core/waiting-room/ticket.js";
import { exitCodes, StartFailure } from "../base/failure.js";
import type { Logger } from "../base/logger.js";
import { PathWatcher } from "../base/path-watcher.js";
import { SerializedPoll } from "../base/serialized-poll.js";
import { readErrorWords } from "../config/policy-files.js";

/** The keys that sign tickets: from a file, or from the rooms' own secrets. */
export interface TicketKeys {
  /**
   * The first one signs, all of them verify.
   *
   * @param secret the room's own, which the store keeps; undefined: it is not known yet
   */
  keysOf(secret: Buffer | undefined): readonly TicketKey[];
  /** Stops following the file. */
  close(): void;
}

interface TicketKeysParts {
  /** Undefined: rooms sign with their own secrets. */
  readonly path: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Minimum length of a key, in characters. */
const keyCharsMin = 32;

/** Maximum number of keys in a file: a ticket costs one signature for each key with its id. */
const ticketKeysMax = 8;

const fileBytesMax = 16_384;

/**
 * Opens the keys of tickets. A file is read now and again when it changes. An invalid change has no
 * effect except a log line.
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

/** Creates a key from a secret. Its id tells secrets apart, but reveals nothing else. */
function ticketKeyOf(secret: string | Buffer): TicketKey {
  const [id = 0] = createHash("sha256").update("headgate ticket key ").update(secret).digest();
  return { id, mac: (bytes) => createHmac("sha256", secret).update(bytes).digest() };
}

/** Keys of the secrets in the store, created once for each room. */
class RoomSecrets implements TicketKeys {
  readonly #known = new Map<string, readonly TicketKey[]>();

  keysOf(secret: Buffer | undefined): readonly TicketKey[] {
    if (secret === undefined) return [];
    // Each response of the store contains a new copy of the secret.
    const name = secret.toString("latin1");
    const known = this.#known.get(name) ?? [ticketKeyOf(secret)];
    if (this.#known.size < secretsMax) this.#known.set(name, known);
    return known;
  }

  close(): void {}
}

/** Maximum number of secrets whose keys are kept. */
const secretsMax = 1_024;

/** The file of keys as of the last read without an error. */
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

  /** Reads the file. Returns what is wrong with it, and in that case keeps the previous keys. */
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
    // At the start, the caller reports the problem, and there are no older keys to keep.
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

/** Reads one key from each line. Empty lines do not count. */
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
