import { ServiceError } from "../../../core/base/errors.js";
import { type Bucket, levelUnitsMax } from "../../../core/limits/bucket.js";
import type { Compensation } from "../../../core/limits/compensation.js";
import type { LimitKey } from "../../../core/limits/limit.js";
import type { Windows } from "../../../core/limits/window.js";
import type { GivenBack } from "../../split/split-part.js";
import type { StoreScript } from "./connection.js";
import { exactText } from "./exact-text.js";
import { windowText } from "./law-text.js";

const compensationBytes = 54;
const replyHeadBytes = 8;
const replyBucketBytes = 16;

/** Compensations in the script's format. */
interface PackedCompensations {
  /** Each distinct key once, in the order of first use, without the store's prefix. */
  readonly keys: readonly LimitKey[];
  /**
   * Little-endian, unaligned. Per compensation: position of its key from 1 (uint16), hits (uint32),
   * period in us (double), cost (double), time of the charge in us (double), and the start, the end
   * and the next end of the windows in us (double each; all 0 if the limit drains).
   */
  readonly bytes: Buffer;
}

const noWindows: Windows = { startUs: 0, endUs: 0, nextEndUs: 0 };

/** Packs the charges to undo. */
export function encodeCompensations(compensations: readonly Compensation[]): PackedCompensations {
  const bytes = Buffer.allocUnsafe(compensations.length * compensationBytes);
  const positions = new Map<LimitKey, number>();
  let at = 0;
  for (const { key, hits, periodUs, windows = noWindows, cost, chargedUs } of compensations) {
    const position = positions.get(key) ?? positions.size + 1;
    positions.set(key, position);
    at = bytes.writeUInt16LE(position, at);
    at = bytes.writeUInt32LE(hits, at);
    at = bytes.writeDoubleLE(periodUs, at);
    at = bytes.writeDoubleLE(cost, at);
    at = bytes.writeDoubleLE(chargedUs, at);
    at = bytes.writeDoubleLE(windows.startUs, at);
    at = bytes.writeDoubleLE(windows.endUs, at);
    at = bytes.writeDoubleLE(windows.nextEndUs, at);
  }
  return { keys: [...positions.keys()], bytes };
}

/**
 * Reads the script's reply: store time in us (double), then per compensation the resulting level
 * and time of its bucket (double each). Throws STORE_PROTOCOL for anything else.
 */
export function decodeGivenBack(reply: unknown, compensationCount: number): GivenBack {
  const lengthBytes = replyHeadBytes + compensationCount * replyBucketBytes;
  if (!Buffer.isBuffer(reply) || reply.length !== lengthBytes) {
    throw new ServiceError("STORE_PROTOCOL");
  }
  const buckets = Array.from({ length: compensationCount }, (_, i): Bucket => {
    const at = replyHeadBytes + i * replyBucketBytes;
    return { level: reply.readDoubleLE(at), tUs: reply.readDoubleLE(at + 8) };
  });
  return { buckets, nowUs: reply.readDoubleLE(0) };
}

/**
 * A second implementation of `core/limits/compensation`, in Lua, for several charges. A contract
 * test keeps both equal.
 *
 * KEYS: each distinct key once. ARGV[1]: as packed by `encodeCompensations`. Returns one string for
 * `decodeGivenBack`. A missing bucket, or one not written by Headgate, gives nothing back. A key
 * keeps its expiry, since the lower level drains earlier.
 */
export const giveBackScript: StoreScript = {
  name: "give-back",
  text: `
local max = math.max
local pack, unpackStruct = struct.pack, struct.unpack
local unitsPerHit = 1048576

${exactText}
local time = redis.call('TIME')
local nowUs = tonumber(time[1]) * 1000000 + tonumber(time[2])
local storedLevel, storedTUs, storedExpiry, isChanged = {}, {}, {}, {}

local function isWhole(value, most)
  return value >= 0 and value <= most and value % 1 == 0
end

for k, value in ipairs(redis.call('MGET', unpack(KEYS))) do
  if value and #value == 24 then
    local level, tUs, expiresMs = unpackStruct('<ddd', value)
    if isWhole(level, ${levelUnitsMax}) and isWhole(tUs, exactMax) then
      storedLevel[k], storedTUs[k], storedExpiry[k] = level, tUs, expiresMs
    end
  end
end

${windowText}
local function giveBack(k, hits, periodUs, charged, chargedUs, startUs, endUs, nextEndUs)
  local level, tUs = storedLevel[k], storedTUs[k]
  if not level or level == 0 or tUs > nowUs or nowUs < chargedUs then return end
  if hits == 0 then return end
  if endUs > 0 then
    if charged == 0 then return end
    local from = windowAt(startUs, endUs, nextEndUs)
    if chargedUs < from then return end
    if tUs < from then level = 0 end
    storedLevel[k], storedTUs[k], isChanged[k] = max(0, level - charged), nowUs, true
    return
  end
  local drain = hits * unitsPerHit
  local units = charged - ceilMulDiv(nowUs - chargedUs, drain, periodUs, charged)
  if units == 0 then return end
  level = level - floorMulDiv(nowUs - tUs, drain, periodUs, level)
  storedLevel[k], storedTUs[k], isChanged[k] = max(0, level - units), nowUs, true
end

local list, at = ARGV[1], 1
local reply = { '' }
while at <= #list do
  local k, hits, periodUs, cost, chargedUs, startUs, endUs, nextEndUs
  k, hits, periodUs, cost, chargedUs, startUs, endUs, nextEndUs, at =
    unpackStruct('<I2I4dddddd', list, at)
  giveBack(k, hits, periodUs, cost * unitsPerHit, chargedUs, startUs, endUs, nextEndUs)
  reply[#reply + 1] = pack('<dd', storedLevel[k] or 0, storedTUs[k] or nowUs)
end

for k in pairs(isChanged) do
  if storedLevel[k] > 0 then
    local value = pack('<ddd', storedLevel[k], storedTUs[k], storedExpiry[k])
    redis.call('SET', KEYS[k], value, 'KEEPTTL')
  else
    redis.call('DEL', KEYS[k])
  end
end

reply[1] = pack('<d', nowUs)
return table.concat(reply)
`,
};
