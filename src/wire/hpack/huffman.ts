import { connectionError, http2ErrorCodes } from "../base/http2-error.js";
import type { OutputBuffer } from "../base/output-buffer.js";

/**
 * Bits of each byte's code, and of EOS at the end. The code is canonical: shorter codes come first,
 * and among codes of one length those of smaller bytes, so the lengths define it.
 *
 * Source: RFC 7541, appendix B.
 */
const codeBits: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
  28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5,
  6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6,
  7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23,
  23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22,
  22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22,
  23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27,
  27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25,
  24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

/** The symbol after those of the bytes. In HPACK it ends nothing and is an error. */
const endOfString = 256;

/** A padding is shorter than a byte. Source: RFC 7541, section 5.2. */
const paddingBitsMax = 7;

/** A text whose decoded form is longer does not stay in the decoder's memory. */
const keptBytesMax = 4_096;

/** Result of a step: the next node, and up to one byte. */
const nodeBits = 8;
const nodeMask = 0xff;
const emitsFlag = 1 << 16;
const failsFlag = 1 << 17;

/**
 * Decodes texts, four bits per step. No code is shorter than five bits, so a step completes at most
 * one byte, and the table of all steps takes 16 KiB.
 *
 * Source: RFC 7541, section 5.2.
 */
export class HuffmanDecoder {
  #scratch: Buffer = Buffer.alloc(0);

  /**
   * Decodes the bytes from `start` to below `end` to a text of Latin-1.
   *
   * @throws Http2Error of the connection, COMPRESSION_ERROR: the end symbol, or a padding that is
   *   longer than 7 bits or not of ones
   */
  decode(bytes: Buffer, start: number, end: number): string {
    const target = this.#room(end - start);
    let node = 0;
    let at = 0;
    for (let i = start; i < end; i += 1) {
      const byte = bytes[i] ?? 0;
      const high = steps[(node << 4) | (byte >>> 4)] ?? failsFlag;
      if ((high & emitsFlag) !== 0) {
        target[at] = high >>> nodeBits;
        at += 1;
      }
      const low = steps[((high & nodeMask) << 4) | (byte & 0xf)] ?? failsFlag;
      if ((low & emitsFlag) !== 0) {
        target[at] = low >>> nodeBits;
        at += 1;
      }
      if (((high | low) & failsFlag) !== 0)
        throw compressionError("a string contains the end symbol");
      node = low & nodeMask;
    }
    if (mayEnd[node] !== 1) throw compressionError("a string ends within a symbol");
    return target.toString("latin1", 0, at);
  }

  /** Returns room for what this many bytes may decode to: each takes at least five bits. */
  #room(byteCount: number): Buffer {
    const needed = Math.ceil((byteCount * 8) / 5);
    if (needed <= this.#scratch.length) return this.#scratch;
    if (needed > keptBytesMax) return Buffer.allocUnsafe(needed);
    this.#scratch = Buffer.allocUnsafe(Math.min(keptBytesMax, needed * 2));
    return this.#scratch;
  }
}

/** Returns how many bytes a text of Latin-1 takes when it is encoded. */
export function huffmanBytes(text: string): number {
  let bits = 0;
  for (let i = 0; i < text.length; i += 1) bits += codeBits[text.charCodeAt(i)] ?? 0;
  return Math.ceil(bits / 8);
}

/** Appends a text of Latin-1, encoded and padded with ones. It takes `huffmanBytes` bytes. */
export function writeHuffman(text: string, output: OutputBuffer): void {
  let byte = 0;
  let freeBits = 8;
  for (let i = 0; i < text.length; i += 1) {
    const symbol = text.charCodeAt(i);
    const code = codes[symbol] ?? 0;
    let leftBits = codeBits[symbol] ?? 0;
    while (leftBits > 0) {
      const takenBits = Math.min(freeBits, leftBits);
      leftBits -= takenBits;
      byte = (byte << takenBits) | ((code >>> leftBits) & ((1 << takenBits) - 1));
      freeBits -= takenBits;
      if (freeBits > 0) continue;
      output.byte(byte);
      byte = 0;
      freeBits = 8;
    }
  }
  if (freeBits < 8) output.byte((byte << freeBits) | ((1 << freeBits) - 1));
}

function compressionError(message: string): Error {
  return connectionError(http2ErrorCodes.compressionError, message);
}

/** Each symbol's code, right-aligned. */
const codes: readonly number[] = canonicalCodes(codeBits);

function canonicalCodes(bitsOf: readonly number[]): readonly number[] {
  const made: number[] = bitsOf.map(() => 0);
  let next = 0;
  for (let bits = 1; bits <= Math.max(...bitsOf); bits += 1) {
    next *= 2;
    for (const [symbol, symbolBits] of bitsOf.entries()) {
      if (symbolBits !== bits) continue;
      made[symbol] = next;
      next += 1;
    }
  }
  return made;
}

/** A node of the code's tree: for each bit a symbol (below 257) or another node. */
interface TreeNode {
  readonly index: number;
  /** Whether only ones lead here, few enough for a padding. */
  readonly mayEnd: boolean;
  readonly next: [TreeNode | number | undefined, TreeNode | number | undefined];
}

/** Creates the tree's nodes, the root first. A full binary tree of 257 leaves has 256 nodes. */
function createNodes(): readonly TreeNode[] {
  const root: TreeNode = { index: 0, mayEnd: true, next: [undefined, undefined] };
  const nodes: TreeNode[] = [root];
  for (const [symbol, code] of codes.entries()) {
    let node = root;
    for (let left = (codeBits[symbol] ?? 0) - 1; left >= 0; left -= 1) {
      const bit = ((code >>> left) & 1) === 1 ? 1 : 0;
      if (left === 0) {
        node.next[bit] = symbol;
        break;
      }
      let child = node.next[bit];
      if (typeof child !== "object") {
        const depth = (codeBits[symbol] ?? 0) - left;
        const isAllOnes = code >>> left === 2 ** depth - 1;
        const mayEnd = isAllOnes && depth <= paddingBitsMax;
        child = { index: nodes.length, mayEnd, next: [undefined, undefined] };
        nodes.push(child);
        node.next[bit] = child;
      }
      node = child;
    }
  }
  return nodes;
}

const nodes = createNodes();

/** By node and four bits: the next node, the byte that they complete, and flags. */
const steps = createSteps(nodes);

/** By node: 1 if a text may end there. */
const mayEnd = Uint8Array.from(nodes, (node) => (node.mayEnd ? 1 : 0));

function createSteps(tree: readonly TreeNode[]): Int32Array {
  const made = new Int32Array(tree.length << 4);
  for (const node of tree) {
    for (let bits = 0; bits < 16; bits += 1) made[(node.index << 4) | bits] = stepOf(node, bits);
  }
  return made;

  function stepOf(from: TreeNode, bits: number): number {
    let node = from;
    let emitted = 0;
    for (let left = 3; left >= 0; left -= 1) {
      const reached = node.next[((bits >>> left) & 1) === 1 ? 1 : 0];
      if (reached === undefined || reached === endOfString) return failsFlag;
      if (typeof reached === "object") {
        node = reached;
        continue;
      }
      emitted = emitsFlag | (reached << nodeBits);
      node = tree[0] ?? from;
    }
    return emitted | node.index;
  }
}
