import type { LimitKey } from "../../../core/limits/limit.js";

/** Number of slots of a Redis Cluster. Source: redis/src/cluster.h, CLUSTER_SLOTS. */
export const slotCount = 16_384;

/** Maximum number of hash tags for keys. */
export const clusterTagsMax = 1_024;

/** Byte of the digit 0. The other digits follow it. */
const digitZero = 48;

/**
 * Returns hash tags. The keys with one tag are always on the same node, so that a batch is a few
 * scripts instead of one per key. Tag i is in the slot in the middle of the i-th of `count` equal
 * parts of all slots, so an evenly divided cluster has about the same number of tags on each node.
 *
 * Example: the first of 12 tags is the smallest number whose slot is 682.
 *
 * @param count 1 to `clusterTagsMax`
 */
export function clusterTags(count: number): readonly string[] {
  const wanted = new Map<number, number>();
  for (let i = 0; i < count; i += 1) {
    wanted.set(Math.floor(((2 * i + 1) * slotCount) / (2 * count)), i);
  }
  const tags: string[] = Array.from({ length: count }, () => "");
  const crcs: number[] = [];
  // This terminates: for every slot, there is a number of at most six digits.
  for (let number = 0; wanted.size > 0; number += 1) {
    // Tens of thousands of numbers are tried. The CRC of all digits but the last is known already.
    const before = number < 10 ? 0 : (crcs[Math.floor(number / 10)] ?? 0);
    const crc = nextCrc16(before, digitZero + (number % 10));
    crcs.push(crc);
    const slot = crc % slotCount;
    const i = wanted.get(slot);
    if (i === undefined) continue;
    tags[i] = String(number);
    wanted.delete(slot);
  }
  return tags;
}

/**
 * Returns which of `count` tags a key has. It is a hash of the key alone, so that replicas agree,
 * also after restarts and resharding. Another count moves most keys to other tags, where their
 * buckets start empty.
 *
 * Source: the FNV-1a hash of 32 bits, over UTF-16 units.
 */
export function tagIndex(key: LimitKey, count: number): number {
  if (count === 1) return 0;
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i += 1) {
    hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  }
  // The low bits alone would not depend enough on the first characters of a key.
  return ((hash ^ (hash >>> 15)) >>> 0) % count;
}

/**
 * Returns the slot of a complete key: that of the part between the first opening brace and the next
 * closing one if it is not empty, otherwise that of the whole key.
 *
 * Source: "Redis cluster specification", hash tags.
 */
export function keySlot(key: string): number {
  const open = key.indexOf("{");
  if (open >= 0) {
    const close = key.indexOf("}", open + 1);
    if (close > open + 1) return crc16(key.slice(open + 1, close)) % slotCount;
  }
  return crc16(key) % slotCount;
}

/**
 * Computes the CRC-16 of the text's UTF-8 bytes: polynomial 0x1021, no reflection, initial value 0.
 * Works bit by bit, since it is used only for short tags and for keys that users name.
 *
 * Source: CRC-16/XMODEM, "Redis cluster specification", appendix A.
 */
function crc16(text: string): number {
  let crc = 0;
  for (const byte of Buffer.from(text, "utf8")) crc = nextCrc16(crc, byte);
  return crc;
}

function nextCrc16(before: number, byte: number): number {
  let crc = before ^ (byte << 8);
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc & 0xffff;
}
