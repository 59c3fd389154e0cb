import type { AnswersCommands, RespReply } from "../../src/wire/resp/resp-connection.js";
import { readCommand } from "../../src/wire/resp/resp-reader.js";
import { encodeCommand } from "../support/resp-client.js";
import { type CallShape, inFlight } from "./calls.js";

/** Digits of a key's number. */
const numberDigits = 7;

/**
 * Sends `CL.THROTTLE` commands, turn after turn, over all keys in the order of `decideMany`: bytes
 * that have just been read, to replies.
 */
export async function throttleMany(
  answer: AnswersCommands,
  { keyCount, first = 0 }: CallShape,
  count: number,
): Promise<void> {
  const rate = "4294967295";
  const command = encodeCommand("CL.THROTTLE", `user-${"#".repeat(numberDigits)}`, rate, rate, "2");
  const bytes = Buffer.concat(Array.from({ length: inFlight }, () => command));
  const numberAt = command.indexOf("#");
  let next = first;
  while (next < first + count) {
    const replies: (RespReply | Promise<RespReply>)[] = [];
    for (let place = 0; place < inFlight; place += 1, next += 1) {
      const start = place * command.length;
      writeNumber(bytes, start + numberAt, (next * 7_919) % keyCount);
      const read = readCommand(bytes, start);
      if (read.kind !== "command") throw new Error(read.kind);
      replies.push(answer(read.parts));
    }
    await Promise.all(replies);
  }
}

function writeNumber(bytes: Buffer, start: number, number: number): void {
  let rest = number;
  for (let at = start + numberDigits - 1; at >= start; at -= 1) {
    bytes[at] = 48 + (rest % 10);
    rest = Math.floor(rest / 10);
  }
}
