import type { LimitKey } from "../../../core/limits/limit.js";

/** Slots of a Redis Cluster. Source: redis/src/cluster.h, CLUSTER_SLOTS. */
export const slotCount = 16_384;

/** The most hash tags that keys may be spread over. */
export const clusterTagsMax = 1_024;

/** The byte of the digit 0; the others follow it. */
const digitZero = 48;

/**
 * Hash tags, one a group of keys that always live on one node, so that a batch is few scripts
 * instead of one a key. Tag i names the slot in the middle of the i-th of `count` equal parts of
 * all slots: an evenly divided cluster has about as many of them on each node.
 *
 * Example: of 12 tags, the first is the least number whose slot is 682.
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
  // Every slot is named by some number of six digits at most: this ends.
  for (let number = 0; wanted.size > 0; number += 1) {
    // Tens of thousands are looked at; all digits but the last were a number before.
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
 * Which of `count` tags a key falls under: a hash of the key alone, so that replicas, restarts and
 * reshardings agree. Another count moves most keys to other tags, where their buckets start empty.
 *
 * Source: the FNV-1a hash of 32 bits, over UTF-16 units.
 */
export function tagIndex(key: LimitKey, count: number): number {
  if (count === 1) return 0;
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i += 1) {
    hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  }
  // The low bits alone would miss what the first letters of a key say.
  return ((hash ^ (hash >>> 15)) >>> 0) % count;
}

/**
 * The slot of a whole key: of the part between the first brace and the next closing one, if there
 * is any, else of all.
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
 * CRC-16 of the text's UTF-8 bytes: polynomial 0x1021, no reflection, from 0. Bit by bit: it meets
 * a tag of a few digits, or a key that people ask for.
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
