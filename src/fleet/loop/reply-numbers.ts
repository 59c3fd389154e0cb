import { ServiceError } from "../../core/base/errors.js";
import type { ScriptReply } from "../../store/connection.js";

/** A whole number as scripts write it: exact here and in the store, or -1. */
const numberPattern = /^(-1|\d{1,16})$/;

/**
 * The numbers that a script answers, with a space between them: one for each key.
 *
 * @throws ServiceError STORE_PROTOCOL for anything else
 */
export function parseNumbers(reply: ScriptReply, count: number): readonly number[] {
  const words = Buffer.isBuffer(reply) ? reply.toString("latin1").split(" ") : [];
  const isSound = words.length === count && words.every((word) => numberPattern.test(word));
  if (!isSound) throw new ServiceError("STORE_PROTOCOL");
  return words.map(Number);
}
