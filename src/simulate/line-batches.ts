/** The longest line that is looked at, in UTF-16 units; longer ones come as empty ones. */
const lineCharsMax = 65_536;

/** The lines of a log, some at a time, without what ends them. Throws what reading throws. */
export async function* lineBatches(
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<readonly string[]> {
  // Leaves out the mark with which some programs begin what is UTF-8.
  const decoder = new TextDecoder();
  /** The beginning of a line that goes on in the next chunk: of a long one, enough to tell. */
  let rest = "";
  for await (const chunk of source) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop()?.slice(0, lineCharsMax + 1) ?? "";
    yield lines.map(readableLine);
  }
  const last = rest + decoder.decode();
  if (last !== "") yield [readableLine(last)];
}

/** A line without the carriage return at its end; empty if it is too long. */
function readableLine(line: string): string {
  if (line.length > lineCharsMax) return "";
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

/** What a log that gzip has compressed begins with. Source: RFC 1952 section 2.3.1. */
export function isGzip(start: Uint8Array): boolean {
  return start[0] === 0x1f && start[1] === 0x8b;
}
