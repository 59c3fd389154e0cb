import { describe, expect, it } from "vitest";
import {
  commandBytesMax,
  commandPartsMax,
  type ReadCommand,
  readCommand,
} from "../../../../src/wire/resp/resp-reader.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { encodeCommand } from "../../../support/resp-client.js";
import { seedsFrom } from "../../../support/seeds.js";

function read(text: string): ReadCommand {
  return readCommand(Buffer.from(text, "latin1"), 0);
}

describe("readCommand()", () => {
  it("reads one of several commands, and says where it ends", () => {
    const bytes = Buffer.concat([encodeCommand("PING"), encodeCommand("a", "", "\r\n\0")]);
    const first = readCommand(bytes, 0);
    if (first.kind !== "command") throw new Error(first.kind);
    expect(first.parts.map(String)).toEqual(["PING"]);
    const second = readCommand(bytes, first.end);
    if (second.kind !== "command") throw new Error(second.kind);
    expect(second.parts.map(String)).toEqual(["a", "", "\r\n\0"]);
    expect(second.end).toBe(bytes.length);
  });

  it("waits for the rest wherever a command is cut", () => {
    const whole = encodeCommand("CL.THROTTLE", "user", "15", "30", "60");
    for (let size = 0; size < whole.length; size += 1) {
      expect([size, readCommand(whole.subarray(0, size), 0)]).toEqual([size, { kind: "partial" }]);
    }
  });

  it.each([
    ["an inline command", "PING\r\n"],
    ["a request of HTTP", "POST / HTTP/1.1\r\n"],
    ["a nested array", "*1\r\n*1\r\n$4\r\nPING\r\n"],
    ["an integer in place of a bulk", "*1\r\n:1\r\n"],
    ["a null array", "*-1\r\n"],
    ["a null bulk", "*1\r\n$-1\r\n"],
    ["no length", "*\r\n"],
    ["a length that is no number", "*1x\r\n"],
    ["a signed length", "*+1\r\n"],
    ["a fraction", "*1.5\r\n"],
    ["an enormous length", "*99999999999999999999\r\n"],
    ["a length that does not end", "*1\rx"],
    ["a bulk that is longer than its length", "*1\r\n$1\r\nab\r\n"],
    ["zeros without end", `*${"0".repeat(11)}`],
    ["too many parts", `*${commandPartsMax + 1}\r\n`],
    ["a bulk above the bound", `*1\r\n$${commandBytesMax}\r\n`],
    ["bulks above the bound together", `*2\r\n$9000\r\n${"a".repeat(9_000)}\r\n$9000\r\n`],
  ])("refuses %s before it is whole", (_, text) => {
    expect(read(text).kind).toBe("broken");
  });

  it("takes what is as long as it may be, and an empty array", () => {
    const parts = Array.from({ length: commandPartsMax }, () => "a");
    expect(readCommand(encodeCommand(...parts), 0)).toMatchObject({ kind: "command" });
    const long = "a".repeat(commandBytesMax - 16);
    expect(readCommand(encodeCommand(long), 0)).toMatchObject({ kind: "command" });
    expect(read("*0\r\n")).toEqual({ kind: "command", parts: [], end: 4 });
  });

  it.each(seedsFrom(1, 200))("ends within its bytes, whatever they are, seed %i", (seed) => {
    const random = new FakeRandom(seed);
    const letters = "*$:-0123456789\r\n a";
    const pick = (): string => letters[Math.floor(random.next() * letters.length)] ?? "";
    const noise = Array.from({ length: 30 }, pick).join("");
    const bytes = Buffer.concat([encodeCommand("PING", "a"), Buffer.from(noise)]);
    const flipped = Math.floor(random.next() * bytes.length);
    bytes[flipped] = pick().charCodeAt(0);
    let at = 0;
    for (let result = readCommand(bytes, at); result.kind === "command"; ) {
      expect(result.end).toBeGreaterThan(at);
      expect(result.end).toBeLessThanOrEqual(bytes.length);
      at = result.end;
      result = readCommand(bytes, at);
    }
  });
});
