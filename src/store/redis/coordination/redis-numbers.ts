import { ServiceError } from "../../../core/base/errors.js";
import {
  type FoundNumbers,
  fieldBytesMax,
  type NumberQuestion,
  type NumberStore,
  numberBytesMax,
  numberFieldsMax,
} from "../../coordination/number-store.js";
import type { StoreConnection, StoreScript } from "../scripts/connection.js";
import { replyBytes } from "./fleet-script.js";

/**
 * Reads a number, or numbers by field, in one step, and no more data than needed. KEYS: the key.
 * ARGV: the maximum bytes of a number, fields of a hash, and bytes of a field. Returns a kind (`n`
 * number, `h` hash, `-` nothing, `x` another type, `m` too many fields), and for each number its
 * length, a colon and that many bytes. In a hash, each number follows its field in the same form.
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

/** Reads a number from a string, the length of a list, or a hash of numbers. */
export class RedisNumbers implements NumberStore {
  readonly #connection: StoreConnection;

  constructor(connection: StoreConnection) {
    this.#connection = connection;
  }

  async read({ key, fieldsMax }: NumberQuestion, deadlineMs: number): Promise<FoundNumbers> {
    const most = Math.min(fieldsMax, numberFieldsMax);
    const reply = await this.#connection.run({
      script: signalKeyScript,
      keys: [key],
      args: [numberBytesMax, most, fieldBytesMax].map(String),
      deadlineMs,
    });
    return decode(replyBytes(reply));
  }
}

function decode(reply: Buffer): FoundNumbers {
  switch (String.fromCharCode(reply[0] ?? 0)) {
    case "-":
      return { kind: "missing" };
    case "m":
      return { kind: "tooMany" };
    case "n":
      return { kind: "number", text: unpack(reply)[0] ?? "" };
    case "h": {
      const words = unpack(reply);
      const texts: (readonly [string, string])[] = [];
      for (let i = 0; i + 1 < words.length; i += 2)
        texts.push([words[i] ?? "", words[i + 1] ?? ""]);
      return { kind: "fields", texts };
    }
    default:
      return { kind: "other" };
  }
}

/** Reads the texts after the kind, each after its length. @throws ServiceError STORE_PROTOCOL */
function unpack(reply: Buffer): readonly string[] {
  const texts: string[] = [];
  for (let at = 1; at < reply.length; ) {
    // Parsed byte by byte: a string and a pattern for each length took most of the time.
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

/** Maximum number of texts in a reply: fields of a hash and their numbers. */
const textsMax = 2 * numberFieldsMax;

/** Maximum number of digits in the length of a text. */
const lengthDigitsMax = 3;
