/** Maximum length of a line, in UTF-16 units. Longer lines become empty. */
const lineCharsMax = 65_536;

/** Returns the lines of a log in batches, without line endings. Throws the errors of reading. */
export async function* lineBatches(
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<readonly string[]> {
  // Skips a byte order mark at the start.
  const decoder = new TextDecoder();
  /** The start of a line that continues in the next chunk, cut after the maximum length. */
  let rest = "";
  for await (const chunk of source) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop()?.slice(0, lineCharsMax + 1) ?? "";
    yield lines.map(readableLine);
  }
  const last = rest + decoder.decode();
  if (last !== "") yield [readableLine(last)];
}

/** Returns a line without a carriage return at its end; empty if it is too long. */
function readableLine(line: string): string {
  if (line.length > lineCharsMax) return "";
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

/** Reports whether a log starts like gzip. Source: RFC 1952 section 2.3.1. */
export function isGzip(start: Uint8Array): boolean {
  return start[0] === 0x1f && start[1] === 0x8b;
}
