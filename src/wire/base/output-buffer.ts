import { assert } from "../../core/base/errors.js";

/** Bytes of the first slab: a server that sends little needs little. */
const slabBytesMin = 4_096;

/** Maximum bytes of a slab, up to which they double: one allocation for hundreds of answers. */
const slabBytesMax = 65_536;

/** A slab with less room than this is not written to any more. */
const restBytesMin = 512;

/** Maximum slabs with room that are kept: as many connections write in one turn. */
const restsMax = 16;

/**
 * Memory that the connections of one server write into. A connection has its own slab only while
 * there is something to write. With permanent slabs, a thousand connections that are written to
 * once a second took 33 MB.
 */
export class OutputSlabs {
  readonly #rests: { readonly slab: Buffer; readonly start: number }[] = [];
  #bytes = slabBytesMin;

  /** Returns memory with room for this many bytes, for the caller alone. */
  lend(count: number): { readonly slab: Buffer; readonly start: number } {
    const rest = this.#rests.pop();
    if (rest !== undefined && rest.slab.length - rest.start >= count) return rest;
    let bytes = this.#bytes;
    while (bytes < count) bytes *= 2;
    this.#bytes = Math.min(slabBytesMax, this.#bytes * 2);
    return { slab: Buffer.allocUnsafeSlow(bytes), start: 0 };
  }

  /** Takes back the memory behind the written bytes. */
  giveBack(slab: Buffer, start: number): void {
    if (slab.length - start < restBytesMin || this.#rests.length >= restsMax) return;
    this.#rests.push({ slab, start });
  }
}

/**
 * The bytes to write to a socket next. Everything that becomes ready in a turn is appended here and
 * leaves in one write: `take` hands the bytes out, and later ones are written behind them in the
 * same slab of memory, so that a write needs no allocation of its own.
 *
 * It has no maximum size: the writer checks `length` and stops in time.
 */
export class OutputBuffer {
  readonly #slabs: OutputSlabs;
  #slab = noSlab;
  /** Start of the bytes that were not taken yet. */
  #start = 0;
  #end = 0;

  /** @param slabs shared with other connections. Default its own */
  constructor(slabs = new OutputSlabs()) {
    this.#slabs = slabs;
  }

  /** Number of bytes that were written and not taken. */
  get length(): number {
    return this.#end - this.#start;
  }

  /** Returns what was written. The bytes belong to the caller and never change again. */
  take(): Buffer {
    const taken = this.#slab.subarray(this.#start, this.#end);
    this.#slabs.giveBack(this.#slab, this.#end);
    this.#slab = noSlab;
    this.#start = 0;
    this.#end = 0;
    return taken;
  }

  /** Removes what was written after an earlier `length`. */
  truncate(length: number): void {
    assert(length >= 0 && length <= this.length, "an output is only cut where it was written");
    this.#end = this.#start + length;
  }

  /** Appends one byte. */
  byte(value: number): void {
    if (this.#end === this.#slab.length) this.#grow(1);
    this.#slab[this.#end] = value;
    this.#end += 1;
  }

  /** Appends 16 bits, high byte first. */
  uint16(value: number): void {
    if (this.#end + 2 > this.#slab.length) this.#grow(2);
    const slab = this.#slab;
    slab[this.#end] = value >>> 8;
    slab[this.#end + 1] = value;
    this.#end += 2;
  }

  /** Appends 32 bits, high byte first. */
  uint32(value: number): void {
    if (this.#end + 4 > this.#slab.length) this.#grow(4);
    this.#put32(this.#end, value);
    this.#end += 4;
  }

  /** Appends a copy of bytes. */
  bytes(source: Uint8Array): void {
    this.slice(source, 0, source.length);
  }

  /** Appends a copy of the bytes of `source` from `start` to below `end`. */
  slice(source: Uint8Array, start: number, end: number): void {
    const count = end - start;
    if (this.#end + count > this.#slab.length) this.#grow(count);
    const slab = this.#slab;
    let at = this.#end;
    if (count <= loopBytesMax) {
      for (let i = start; i < end; i += 1) {
        slab[at] = source[i] ?? 0;
        at += 1;
      }
    } else {
      slab.set(start === 0 && end === source.length ? source : source.subarray(start, end), at);
    }
    this.#end += count;
  }

  /** Appends text, with one byte for each character. None is above 0xff. */
  latin1(text: string): void {
    if (this.#end + text.length > this.#slab.length) this.#grow(text.length);
    this.#slab.write(text, this.#end, "latin1");
    this.#end += text.length;
  }

  /** Appends the head of a frame. @see FrameWriter */
  frameHead(payloadBytes: number, typeAndFlags: number, streamId: number): void {
    if (this.#end + 9 > this.#slab.length) this.#grow(9);
    const slab = this.#slab;
    const at = this.#end;
    slab[at] = payloadBytes >>> 16;
    slab[at + 1] = payloadBytes >>> 8;
    slab[at + 2] = payloadBytes;
    slab[at + 3] = typeAndFlags >>> 8;
    slab[at + 4] = typeAndFlags;
    this.#put32(at + 5, streamId);
    this.#end = at + 9;
  }

  /** Overwrites the 24 bits at a place, counted like `length`. */
  patch24(place: number, value: number): void {
    const at = this.#start + place;
    assert(place >= 0 && at + 3 <= this.#end, "only what was written is patched");
    const slab = this.#slab;
    slab[at] = value >>> 16;
    slab[at + 1] = value >>> 8;
    slab[at + 2] = value;
  }

  /** Sets more bits of the byte at a place, counted like `length`. */
  patchBits(place: number, bits: number): void {
    const at = this.#start + place;
    assert(place >= 0 && at < this.#end, "only what was written is patched");
    this.#slab[at] = (this.#slab[at] ?? 0) | bits;
  }

  /** Returns a copy of the bytes from a place to the end. */
  copyFrom(place: number): Buffer {
    return Buffer.from(this.#slab.subarray(this.#start + place, this.#end));
  }

  #put32(at: number, value: number): void {
    const slab = this.#slab;
    slab[at] = value >>> 24;
    slab[at + 1] = value >>> 16;
    slab[at + 2] = value >>> 8;
    slab[at + 3] = value;
  }

  /** Gets memory with room for this many more bytes, and moves what was not taken there. */
  #grow(count: number): void {
    const kept = this.length;
    // Twice what is kept. Otherwise each further write of a long output would move all of it.
    const { slab, start } = this.#slabs.lend(2 * kept + count);
    this.#slab.copy(slab, start, this.#start, this.#end);
    this.#slab = slab;
    this.#start = start;
    this.#end = start + kept;
  }
}

const noSlab: Buffer = Buffer.alloc(0);

/** Up to this many bytes, a loop is faster than a call that leaves JavaScript. */
const loopBytesMax = 32;
