import { describe, expect, it } from "vitest";
import { gatheredMax, SnapshotStore } from "../../../../src/fleet/loop/snapshot-store.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { FakeConnection } from "../../../support/fake-connection.js";

describe("SnapshotStore", () => {
  it("takes reports of as many replicas as there may be, and of no more", async () => {
    const connection = new FakeConnection();
    const store = new SnapshotStore({
      connection,
      clock: new FakeClock(),
      id: "a1",
      keyPrefix: "t:",
    });
    const gather = (count: number) => {
      connection.answer = { kind: "reply", reply: Buffer.from("a 1 0 1\nx".repeat(count)) };
      return store.gather();
    };
    await expect(gather(gatheredMax)).resolves.toHaveLength(gatheredMax);
    await expect(gather(gatheredMax + 1)).rejects.toMatchObject({ code: "STORE_PROTOCOL" });
  });
});
