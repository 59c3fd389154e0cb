import { type LogLine, viewOf } from "../../src/simulate/log-line.js";

/** What stands before and behind a line: what would make another line of it if it were read. */
const around = '9"}1e5";{"a":1}null,';

/** A line of a log, in the midst of others. */
export function logLine(said: string | Buffer): LogLine {
  const before = Buffer.from(around);
  const line = Buffer.from(said);
  const bytes = Buffer.concat([before, line, before]);
  return { bytes, view: viewOf(bytes), start: before.length, end: before.length + line.length };
}
