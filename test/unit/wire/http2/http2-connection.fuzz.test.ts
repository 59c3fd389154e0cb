import { describe, expect, it } from "vitest";
import { answersTo, cutAtEveryByte, fuzzConnections } from "../../../support/connection-fuzz.js";
import { recordedExchanges } from "../../../support/recorded-exchanges.js";
import { firstSeed, seedCount } from "../../../support/seeds.js";

const seed = firstSeed(1);

/** `npm run bench -- --fuzz 1000000` runs more. */
const connectionCount = seedCount(500);

/** Where the mutations begin: a server that refused these would be fuzzed in vain. */
describe("a server of the native transport, with clients as they are,", () => {
  it.each(recordedExchanges)("answers $what", async ({ bytes, served }) => {
    const { lines, end } = await answersTo([bytes]);
    const ended = lines.filter((line) => line.endsWith("HEADERS grpc-status=0, end"));
    expect(ended.map((line) => Number.parseInt(line, 10)).sort((a, b) => a - b)).toEqual(served);
    expect(lines.filter((line) => /RST_STREAM|GOAWAY/.test(line))).toEqual([]);
    // By us, or as the client says itself that it leaves.
    expect(["destroyed", "left"]).toContain(end);
  });

  it.each(recordedExchanges)("is not harmed by a cut at any byte of $what", async ({ bytes }) => {
    expect(await cutAtEveryByte(bytes)).toBeUndefined();
  });
});

describe(`the native transport, with clients that send anything (seed ${seed}),`, () => {
  it("ends their connections or serves them, and nobody else is harmed", async () => {
    expect(await fuzzConnections({ seed, count: connectionCount })).toBeUndefined();
  });
});
