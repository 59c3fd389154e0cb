import type { Dice } from "../simulation/dice.js";
import { frame, preface, request, settings, uint32 } from "./http2-peer.js";
import { recordedExchanges } from "./recorded-exchanges.js";
import { mutate, randomBytes } from "./wire-fuzz.js";

/**
 * Connections that once were a mistake, or are one in other servers: frames behind a greeting. What
 * a run finds is added here, as it was fed.
 */
const corpus: readonly Buffer[] = [
  // No window at all, then a call that is answered, then a window of a single byte.
  Buffer.concat([
    frame({ type: 4, payload: settings([4, 0]) }),
    request(1),
    frame({ type: 8, streamId: 1, payload: uint32(1) }),
  ]),
  // A window that is shut below nothing while an answer waits.
  Buffer.concat([
    frame({ type: 4, payload: settings([4, 10]) }),
    request(1),
    frame({ type: 4, payload: settings([4, 0]) }),
    frame({ type: 8, streamId: 1, payload: uint32(5) }),
  ]),
  // A stream that is reset, and goes on.
  Buffer.concat([
    request(1, 0x4),
    frame({ type: 3, streamId: 1, payload: uint32(8) }),
    frame({ type: 0, flags: 1, streamId: 1, payload: Buffer.alloc(5) }),
  ]),
  // A client that leaves with a call open, and then sends one more.
  Buffer.concat([
    request(1, 0x4),
    frame({ type: 7, payload: Buffer.concat([uint32(0), uint32(0)]) }),
    frame({ type: 0, flags: 1, streamId: 1, payload: Buffer.alloc(5) }),
    request(3),
  ]),
  // A table of header fields that changes its size between two calls.
  Buffer.concat([
    request(1),
    frame({ type: 4, payload: settings([1, 0], [1, 4_096]) }),
    request(3),
    frame({ type: 4, payload: settings([1, 65_536]) }),
    request(5),
  ]),
  // Trailers, and a body behind them.
  Buffer.concat([
    request(1, 0x4),
    request(1, 0x5, [["x-end", "yes"]]),
    frame({ type: 0, flags: 1, streamId: 1, payload: Buffer.alloc(5) }),
  ]),
];

/** Frames of a connection behind its preface; the last one may be a part of one. */
export function framesOf(bytes: Buffer): Buffer[] {
  const frames: Buffer[] = [];
  let rest = bytes;
  while (rest.length >= 9) {
    const end = Math.min(rest.length, 9 + rest.readUIntBE(0, 3));
    frames.push(Buffer.from(rest.subarray(0, end)));
    rest = rest.subarray(end);
  }
  if (rest.length > 0) frames.push(rest);
  return frames;
}

const recorded: readonly (readonly Buffer[])[] = [
  ...recordedExchanges.map(({ bytes }) => framesOf(bytes.subarray(preface.length))),
  ...corpus.map((bytes) => framesOf(Buffer.concat([frame({ type: 4 }), bytes]))),
];

/** How many frames are changed at once, at most. */
const changesMax = 6;

/** What a client says on one connection: an exchange of a real one, more or less changed. */
export function mutatedExchange(dice: Dice): Buffer {
  const frames = dice.pick(recorded).map((bytes) => Buffer.from(bytes));
  if (dice.chance(0.3)) frames.push(...others(dice));
  if (dice.chance(0.2)) frames.splice(1, 0, narrowWindows(dice));
  for (let left = dice.below(changesMax); left > 0; left -= 1) changeFrames(dice, frames);
  const whole = Buffer.concat([preface, ...frames]);
  return dice.chance(0.3) ? Buffer.from(mutate(dice, whole)) : whole;
}

/** Answers wait for windows that the client opens, or never does. */
function narrowWindows(dice: Dice): Buffer<ArrayBuffer> {
  return Buffer.from(frame({ type: 4, payload: settings([4, dice.pick([0, 1, 20])]) }));
}

/** Another exchange behind the first one, with streams of its own, or with the same. */
function others(dice: Dice): Buffer<ArrayBuffer>[] {
  const shift = dice.pick([0, 8, 100]);
  const frames = dice.pick(recorded).map((bytes) => Buffer.from(bytes));
  for (const bytes of frames) if (bytes.length >= 9) moveStream(bytes, shift);
  return frames;
}

function moveStream(bytes: Buffer, by: number): void {
  const id = bytes.readUInt32BE(5);
  if (id > 0) bytes.writeUInt32BE((id + by) >>> 0, 5);
}

/** Changes one frame, its place, or what stands beside it. */
function changeFrames(dice: Dice, frames: Buffer[]): void {
  const at = dice.below(frames.length + 1);
  const bytes = frames[at];
  const how = dice.below(10);
  if (bytes === undefined || bytes.length < 9 || how < 3) {
    frames.splice(at, 0, strangeFrame(dice));
    return;
  }
  switch (how) {
    case 3:
      frames.splice(at, 1);
      return;
    case 4:
      frames.splice(at, 0, bytes);
      return;
    case 5:
      frames.splice(dice.below(frames.length), 0, ...frames.splice(at, 1));
      return;
    case 6:
      bytes[4] = (bytes[4] ?? 0) ^ dice.pick([0x1, 0x4, 0x5, 0x8, 0x20]);
      return;
    case 7:
      bytes.writeUInt32BE(dice.pick([0, 1, 2, 3, 5, 7, 9, 101, 0x7fffffff, 0x80000001]), 5);
      return;
    case 8:
      bytes[3] = dice.below(12);
      return;
    default:
      frames[at] = Buffer.from(mutate(dice, bytes));
  }
}

/** A frame as any peer may send it at any time, right or wrong. */
function strangeFrame(dice: Dice): Buffer {
  const streamId = dice.pick([0, 1, 1, 3, 5, 7, 101]);
  const number = dice.pick([0, 1, 4_096, 65_535, 0x7fffffff, 0xffffffff]);
  const flags = dice.pick([0, 0x1, 0x4, 0x5, 0xd, 0xff]);
  switch (dice.below(9)) {
    case 0:
      return frame({ type: 3, streamId, payload: uint32(dice.pick([0, 5, 7, 8, number])) });
    case 1:
      return frame({ type: 8, streamId, payload: uint32(number) });
    case 2:
      return frame({ type: 4, payload: settings([1 + dice.below(7), number]) });
    case 3:
      return frame({ type: 6, flags: dice.below(2), payload: Buffer.alloc(8, 7) });
    case 4:
      return frame({ type: 7, payload: Buffer.concat([uint32(streamId), uint32(number)]) });
    case 5:
      return frame({ type: 2, streamId, payload: Buffer.concat([uint32(number), Buffer.of(1)]) });
    case 6:
      return frame({ type: 0, flags, streamId, payload: randomBytes(dice, 300) });
    case 7:
      return frame({ type: 9, flags, streamId, payload: randomBytes(dice, 20) });
    default:
      return frame({ type: dice.below(256), flags, streamId, payload: randomBytes(dice, 20) });
  }
}
