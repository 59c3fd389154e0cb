import { clientPreface, frameHeadBytes, framePayloadBytesMax } from "../../src/wire/base/frames.js";
import type { HeaderFields } from "../../src/wire/base/http2.js";
import { Http2Error, http2ErrorCodes } from "../../src/wire/base/http2-error.js";
import { HpackDecoder } from "../../src/wire/hpack/hpack-decoder.js";
import { FrameReader, heldBytesMax } from "../../src/wire/http2/frame-reader.js";
import { Dice } from "../simulation/dice.js";
import { FakeRandom } from "./fake-random.js";
import { type PlainBounds, PlainHpackDecoder, RandomBlocks } from "./plain-hpack.js";

/**
 * Where mutations begin, beside random blocks: what once was, or in other servers was, a mistake.
 * Blocks of header fields in hexadecimal; what a run finds is added here.
 */
const corpus: readonly string[] = [
  // Appendix C of RFC 7541.
  "828684418cf1e3c2e5f23a6ba0ab90f4ff",
  "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
  "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff",
  // A large number: of an index, a limit and a text's length.
  "ffffffffffffffffff7f",
  "3fffffffffffffff7f",
  "007fffffffff7f",
  // A limit of zero, then fields and a limit again.
  "2040016101623fe11fbe",
  // A text of the end symbol alone, and paddings of eight bits.
  "0084ffffffff00",
  "0081ff0081ff",
  // The table's last index, and the one behind it.
  "bdbe",
  // A name by its index, of a field that the entry itself pushes out.
  "40016101627e7f80017a",
];

/** What is fed. */
type Input = Uint8Array;

/** One run of the fuzzer. */
export interface FuzzRun {
  readonly seed: number;
  /** Inputs: blocks of header fields or streams of frames. */
  readonly count: number;
  /** Told of each thousand. */
  readonly onProgress?: (done: number) => void;
}

/** Inputs that one pair of decoders takes before it is replaced. */
const blocksOfPairMax = 40;

/**
 * Feeds header blocks and frames that nobody should send to what reads them, and holds what comes
 * of it against plain readers. Random bytes never crash it, never hang it, never make it grow.
 *
 * @returns what is wrong with the first input that fails; undefined when none does
 */
export function fuzzWire({ seed, count, onProgress }: FuzzRun): string | undefined {
  const dice = new Dice(new FakeRandom(seed));
  let blocks = new BlockFuzzer(dice);
  for (let done = 0; done < count; done += 1) {
    if (blocks.isSpent) blocks = new BlockFuzzer(dice);
    const failure = dice.chance(0.7) ? blocks.next() : fuzzFrames(dice);
    if (failure !== undefined) return `seed ${seed}, input ${done}: ${failure}`;
    if (done % 1_000 === 999) onProgress?.(done + 1);
  }
  return undefined;
}

/** One connection's header blocks. */
class BlockFuzzer {
  readonly #dice: Dice;
  readonly #bounds: PlainBounds;
  readonly #decoder: HpackDecoder;
  readonly #plain: PlainHpackDecoder;
  readonly #random: RandomBlocks;
  #left = blocksOfPairMax;
  #latest: Input = Buffer.alloc(0);

  constructor(dice: Dice) {
    this.#dice = dice;
    this.#bounds = {
      tableBytesMax: dice.pick([0, 40, 200, 4_096]),
      listBytesMax: dice.pick([50, 500, 16_384]),
      fieldCountMax: dice.pick([1, 10, 256]),
    };
    this.#decoder = new HpackDecoder(this.#bounds);
    this.#plain = new PlainHpackDecoder(this.#bounds);
    this.#random = new RandomBlocks(dice, this.#bounds.tableBytesMax);
  }

  /** A decoder that has refused a block is used no more, as its connection is. */
  get isSpent(): boolean {
    return this.#left <= 0;
  }

  next(): string | undefined {
    this.#left -= 1;
    const block = this.#input();
    this.#latest = block;
    const expected = this.#plain.decode(block);
    if (expected.kind === "wrong") this.#left = 0;
    const actual = decodeOutcome(this.#decoder, block, this.#dice.below(4));
    const tableBytes = this.#decoder.tableBytes;
    if (tableBytes > this.#bounds.tableBytesMax) return `${hex(block)} grows the table`;
    if (JSON.stringify(actual) === JSON.stringify(expected)) return undefined;
    return `${hex(block)} reads as ${actual.kind} and not as ${expected.kind}, or otherwise`;
  }

  #input(): Input {
    const dice = this.#dice;
    const throwOf = dice.below(10);
    if (throwOf < 2) return this.#latest;
    if (throwOf < 4) return randomBytes(dice, 30);
    if (throwOf < 5) return mutate(dice, Buffer.from(dice.pick(corpus), "hex"));
    const { block } = this.#random.next();
    return throwOf < 8 ? block : mutate(dice, block);
  }
}

/** What the decoder makes of a block that lies among other bytes. */
function decodeOutcome(decoder: HpackDecoder, block: Input, offset: number): { kind: string } {
  const around = Buffer.alloc(block.length + offset * 2, 0x82);
  around.set(block, offset);
  try {
    const fields = decoder.decode(around, offset, offset + block.length);
    return fields === undefined ? { kind: "tooLarge" } : outcomeOf(fields);
  } catch (thrown) {
    const isExpected =
      thrown instanceof Http2Error && thrown.code === http2ErrorCodes.compressionError;
    return { kind: isExpected ? "wrong" : "another error" };
  }
}

function outcomeOf(fields: HeaderFields): { kind: string } {
  const pairs = Array.from({ length: fields.count }, (_, i) => [fields.name(i), fields.value(i)]);
  return { kind: "fields", ...{ fields: pairs } };
}

/** A stream of frames, whole or broken, in chunks that are cut anywhere. */
function fuzzFrames(dice: Dice): string | undefined {
  const bytes = randomStream(dice);
  const seen: string[] = [];
  const reader = FrameReader.ofClient({
    onFrame: ({ type, flags, streamId, bytes: from, start, end }) => {
      seen.push(`${type} ${flags} ${streamId} ${from.toString("hex", start, end)}`);
    },
  });
  let error = "none";
  try {
    for (let at = 0; at < bytes.length; ) {
      const end = Math.min(bytes.length, at + 1 + dice.below(dice.pick([1, 8, 100, 60_000])));
      // A chunk of its own, which nobody may look at later.
      const chunk = Buffer.from(bytes.subarray(at, end));
      reader.read(chunk);
      chunk.fill(0xee);
      if (reader.heldBytes > heldBytesMax) return `${hex(bytes)}: holds too much`;
      at = end;
    }
  } catch (thrown) {
    if (!(thrown instanceof Http2Error)) return `${hex(bytes)}: throws another error`;
    error = String(thrown.code);
  }
  const expected = plainFrames(bytes);
  if (error === expected.error && seen.join() === expected.frames.join()) return undefined;
  return `${hex(bytes)}: reads otherwise than whole (error ${error}, not ${expected.error})`;
}

function randomStream(dice: Dice): Buffer {
  if (dice.chance(0.05)) return randomBytes(dice, 60);
  const parts: Buffer[] = [Buffer.from(clientPreface)];
  for (let left = dice.below(6); left > 0; left -= 1) {
    const size = dice.chance(0.03) ? framePayloadBytesMax - 1 + dice.below(3) : dice.below(60);
    const head = randomBytes(dice, 1, frameHeadBytes);
    head.writeUIntBE(size, 0, 3);
    parts.push(head, Buffer.alloc(size, dice.below(256)));
  }
  if (dice.chance(0.3)) parts.push(randomBytes(dice, 40));
  const whole = Buffer.concat(parts);
  return dice.chance(0.3) ? Buffer.from(mutate(dice, whole)) : whole;
}

/** The frames of a stream that lies there whole. */
function plainFrames(bytes: Buffer): { frames: readonly string[]; error: string } {
  const frames: string[] = [];
  const greeting = bytes.toString("latin1", 0, clientPreface.length);
  if (!clientPreface.startsWith(greeting)) {
    return { frames, error: String(http2ErrorCodes.protocolError) };
  }
  let rest = bytes.subarray(clientPreface.length);
  while (rest.length >= frameHeadBytes) {
    const size = rest.readUIntBE(0, 3);
    if (size > framePayloadBytesMax) {
      return { frames, error: String(http2ErrorCodes.frameSizeError) };
    }
    if (rest.length < frameHeadBytes + size) break;
    const streamId = rest.readUInt32BE(5) % 2 ** 31;
    const payload = rest.toString("hex", frameHeadBytes, frameHeadBytes + size);
    frames.push(`${rest[3]} ${rest[4]} ${streamId} ${payload}`);
    rest = rest.subarray(frameHeadBytes + size);
  }
  return { frames, error: "none" };
}

/** Random bytes: `countMin` of them, and up to `countEnd` more. */
export function randomBytes(dice: Dice, countEnd: number, countMin = 0): Buffer {
  const length = countMin + dice.below(countEnd);
  return Buffer.from(Array.from({ length }, () => dice.below(256)));
}

/** A few bytes changed, taken out, doubled or put in. */
export function mutate(dice: Dice, input: Input): Input {
  const bytes = [...input];
  for (let left = 1 + dice.below(3); left > 0; left -= 1) {
    const at = dice.below(bytes.length + 1);
    const how = dice.below(5);
    if (how === 0) bytes.splice(at, 1 + dice.below(4));
    else if (how === 1) bytes.splice(at, 0, ...randomBytes(dice, 4));
    else if (how === 2) bytes.splice(at, 0, ...bytes.slice(at, at + dice.below(10)));
    else if (how === 3) bytes[at] = (bytes[at] ?? 0) ^ (1 << dice.below(8));
    else bytes[at] = dice.pick([0x00, 0x20, 0x3f, 0x40, 0x7f, 0x80, 0xff]);
  }
  return Buffer.from(bytes);
}

function hex(input: Input): string {
  return Buffer.from(input).toString("hex").slice(0, 2_000);
}
