import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openLog } from "../../../../src/cli/replay/log-lines.js";
import { lineText } from "../../../../src/simulate/log-line.js";
import { CliFolder } from "../../../support/cli.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { seedsFrom } from "../../../support/seeds.js";

let folder: CliFolder;

beforeEach(async () => {
  folder = await CliFolder.create();
});

afterEach(async () => {
  await folder.remove();
});

async function linesOf(path: string): Promise<readonly string[]> {
  const log = await openLog(path);
  const lines: string[] = [];
  for await (const batch of log.batches) lines.push(...[...batch].map(lineText));
  expect(log.bytesRead()).toBe(log.bytesTotal);
  return lines;
}

/** What the lines of a text are; those above 65,536 units are empty. */
function expectedLines(content: Buffer): readonly string[] {
  const lines = new TextDecoder().decode(content).split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines.map((line) => (line.length > 65_536 ? "" : line.replace(/\r$/, "")));
}

/** Megabytes of what logs hold, and of what none should. */
function anyContent(seed: number): Buffer {
  const random = new FakeRandom(seed);
  const pieces = ["a", "\n", "\r\n", "\r", "ü", "€", "😀", "\ufeff", "\0", "x".repeat(500)].map(
    (text) => Buffer.from(text),
  );
  pieces.push(Buffer.from([0xff]), Buffer.from([0xe2, 0x82]), Buffer.from([0xf0, 0x9f, 0x98]));
  // One line is longer than any may be, and one as long as it may.
  pieces.push(Buffer.from("y".repeat(20_000)));
  const chosen = Array.from({ length: 6_000 }, () => {
    const piece = pieces[Math.floor(random.next() * pieces.length)] ?? Buffer.alloc(0);
    return random.next() < 0.3 ? Buffer.concat([piece, Buffer.from("\n")]) : piece;
  });
  return Buffer.concat([
    Buffer.from(`${"z".repeat(65_535)}\r\n${"z".repeat(65_536)}\r\n${"€".repeat(65_536)}\n`),
    Buffer.from(`${"€".repeat(65_537)}\n${"w".repeat(2_500_000)}\n`),
    ...chosen,
  ]);
}

describe("openLog()", () => {
  it.each(seedsFrom(1, 1))("reads lines as if it read them at once (seed %d)", async (seed) => {
    const content = anyContent(seed);
    const lines = expectedLines(content);
    expect(await linesOf(await folder.write("any.log", content))).toEqual(lines);
    expect(await linesOf(await folder.write("any.log.gz", gzipSync(content)))).toEqual(lines);
  });

  it.each([
    ["", []],
    ["a", ["a"]],
    ["a\r\n\nb", ["a", "", "b"]],
    ["\ufeffa\n\ufeffb\n", ["a", "\ufeffb"]],
    ["\ufeffa", ["a"]],
  ])("reads %j", async (content, lines) => {
    expect(await linesOf(await folder.write("short.log", content))).toEqual(lines);
  });
});
