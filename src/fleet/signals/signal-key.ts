import { ServiceError } from "../../core/base/errors.js";
import type { StoreConnection, StoreScript } from "../../store/connection.js";
import { parseReading, someOf } from "./signal-answers.js";
import { ReadingSum, type SignalReader, type SignalReadings } from "./signal-readings.js";

/** Bytes of a number in a key. */
export const keyNumberBytesMax = 64;

/**
 * Reads a number, or numbers by key, in one step, and never more than is of use. KEYS: the key.
 * ARGV: the most bytes of a number, the most fields of a hash, the most bytes of a field. Answers
 * a kind (`n` number, `h` hash, `-` nothing, `x` another type, `m` too much), and for each number
 * a length, a colon and that many bytes; of a hash a field stands before each.
 */
const signalKeyScript: StoreScript = {
  name: "signal-key",
  text: `
local key, bytesMax, fieldsMax, nameMax = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]),
  tonumber(ARGV[3])
local kind = redis.call('TYPE', key)
kind = kind.ok or kind

local function packed(text) return string.format('%d:%s', #text, text) end

if kind == 'none' then return '-' end
if kind == 'string' then
  if redis.call('STRLEN', key) > bytesMax then return 'x' end
  return 'n' .. packed(redis.call('GET', key))
end
if kind == 'list' then return 'n' .. packed(string.format('%.0f', redis.call('LLEN', key))) end
if kind ~= 'hash' then return 'x' end
if fieldsMax == 0 then return 'x' end
if redis.call('HLEN', key) > fieldsMax then return 'm' end
local flat, parts = redis.call('HGETALL', key), {}
for i = 1, #flat, 2 do
  if #flat[i] <= nameMax and #flat[i + 1] <= bytesMax then
    parts[#parts + 1] = packed(flat[i]) .. packed(flat[i + 1])
  end
end
return 'h' .. table.concat(parts)
`,
};

/** Bytes of a field of a hash; longer ones are left aside. */
export const fieldBytesMax = 256;

/** Fields of a hash that are read at once: neither the store nor we do anything else meanwhile. */
export const hashFieldsMax = 3_000;

/** Reads a key of the store: a number in a text, the length of a list, or a hash of numbers. */
export class KeySignalReader implements SignalReader {
  readonly #connection: StoreConnection;
  readonly #key: string;
  readonly #keysMax: number | undefined;

  /** @param parts.keysMax the most keys; undefined: only one number is of use */
  constructor(parts: {
    readonly connection: StoreConnection;
    readonly key: string;
    readonly keysMax: number | undefined;
  }) {
    this.#connection = parts.connection;
    this.#key = parts.key;
    this.#keysMax = parts.keysMax;
  }

  async read(deadlineMs: number): Promise<SignalReadings> {
    const fieldsMax = this.#keysMax === undefined ? 0 : Math.min(this.#keysMax, hashFieldsMax);
    const reply = await this.#connection.run({
      script: signalKeyScript,
      keys: [this.#key],
      args: [keyNumberBytesMax, fieldsMax, fieldBytesMax].map(String),
      deadlineMs,
    });
    if (!Buffer.isBuffer(reply)) throw new ServiceError("STORE_PROTOCOL");
    return this.#decode(reply);
  }

  #decode(reply: Buffer): SignalReadings {
    switch (String.fromCharCode(reply[0] ?? 0)) {
      case "-":
        throw new ServiceError("SIGNAL_EMPTY", "There is no such key.");
      case "m":
        throw new ServiceError("SIGNAL_TOO_LARGE", "The hash has more fields than keys are held.");
      case "n": {
        const [text = ""] = unpack(reply);
        const sum = new ReadingSum(undefined);
        sum.add(parseReading(text), undefined);
        return someOf(sum);
      }
      case "h": {
        const texts = unpack(reply);
        // Each text was read for itself.
        const sum = new ReadingSum(this.#keysMax ?? 0, (text) => text);
        for (let i = 0; i + 1 < texts.length; i += 2) {
          sum.add(parseReading(texts[i + 1] ?? ""), texts[i]);
        }
        return someOf(sum);
      }
      default: {
        const words = "The key holds neither a number nor a list, nor a hash for a split limit.";
        throw new ServiceError("SIGNAL_MALFORMED", words);
      }
    }
  }
}

/** Texts behind their lengths, after the kind. @throws ServiceError STORE_PROTOCOL */
function unpack(reply: Buffer): readonly string[] {
  const texts: string[] = [];
  for (let at = 1; at < reply.length; ) {
    // By hand: a text and a pattern for each length took most of the time.
    let start = at;
    let length = 0;
    for (; start < at + lengthDigitsMax && isDigit(reply[start]); start += 1) {
      length = 10 * length + (reply[start] ?? 0) - zero;
    }
    const isLength = start > at && reply[start] === colon;
    at = start + 1 + length;
    if (!isLength || at > reply.length || texts.length >= textsMax) {
      throw new ServiceError("STORE_PROTOCOL");
    }
    texts.push(reply.toString("utf8", start + 1, at));
  }
  return texts;
}

const [zero, nine, colon] = [0x30, 0x39, 0x3a];

function isDigit(byte = 0): boolean {
  return byte >= zero && byte <= nine;
}

/** Fields of a hash and their numbers. */
const textsMax = 2 * hashFieldsMax;

/** Of the length of a text in a reply. */
const lengthDigitsMax = 3;
