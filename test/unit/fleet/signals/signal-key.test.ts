import { describe, expect, it } from "vitest";
import { hashFieldsMax, KeySignalReader } from "../../../../src/fleet/signals/signal-key.js";
import { farDeadlineMs } from "../../../support/charges.js";
import { FakeConnection } from "../../../support/fake-connection.js";

const tooMany = `h${"0:".repeat(2 * hashFieldsMax + 1)}`;

function read(reply: string) {
  const connection = new FakeConnection();
  connection.answer = { kind: "reply", reply: Buffer.from(reply) };
  return new KeySignalReader({ connection, key: "k", keysMax: 10 }).read(farDeadlineMs);
}

describe("KeySignalReader", () => {
  it("reads texts behind their lengths", async () => {
    const readings = new Map([["a:1", 7]]);
    await expect(read("h3:a:11:7")).resolves.toEqual({ kind: "byKey", readings });
  });

  // A length below nothing once led back to itself, for ever.
  it.each(["h-3:", "h1:", "h0001:a", "h1;a1:7", "h5:abc", "h:", "h 1:a", "h1000:", "hx", tooMany])(
    "refuses lengths that are none, and more texts than it asked for",
    async (reply) => {
      await expect(read(reply)).rejects.toMatchObject({ code: "STORE_PROTOCOL" });
    },
  );
});
