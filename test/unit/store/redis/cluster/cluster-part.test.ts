import { beforeEach, describe, expect, it } from "vitest";
import { ServiceError } from "../../../../../src/core/base/errors.js";
import {
  ClusterPart,
  movingCallsMax,
} from "../../../../../src/store/redis/cluster/cluster-part.js";
import { SlotRefusal } from "../../../../../src/store/redis/redis-error.js";
import { farDeadlineMs, once, testCharge } from "../../../../support/charges.js";
import { FakeClock } from "../../../../support/fake-clock.js";
import { LawPart, type PartCall } from "../../../../support/law-part.js";

let inner: LawPart;
let part: ClusterPart;
let batches: string[][];

beforeEach(() => {
  inner = new LawPart(new FakeClock());
  part = new ClusterPart(inner);
  batches = [];
});

/** A node that has some of the keys only: it runs what is over one key. */
function isOnTheMove(call: PartCall): "answered" {
  if (call.kind === "giveBack") return "answered";
  const keys = call.batch.flatMap(({ charges }) => charges.map(({ key }) => String(key)));
  batches.push(keys);
  if (new Set(keys).size > 1) throw new SlotRefusal("tryAgain", "");
  return "answered";
}

function ask(...keys: readonly string[]) {
  return once(...keys.map((key) => testCharge({ key, burst: 1 })));
}

async function kindsOf(...batch: readonly ReturnType<typeof ask>[]): Promise<readonly string[]> {
  const outcomes = await part.take(batch, farDeadlineMs);
  return outcomes.map((outcome) => {
    if (outcome.kind === "failed") return outcome.code;
    return outcome.result.grantedCount > 0 ? "granted" : "denied";
  });
}

describe("ClusterPart.take()", () => {
  it("asks once while the slot stands still", async () => {
    expect(await kindsOf(ask("a"), ask("b"))).toEqual(["granted", "granted"]);
  });

  it("asks key by key while it moves, in order for each key", async () => {
    inner.meet = isOnTheMove;
    const batch = [ask("a"), ask("b"), ask("a"), ask("b", "b")];
    expect(await kindsOf(...batch)).toEqual(["granted", "granted", "denied", "denied"]);
    expect(batches).toEqual([
      ["a", "b", "a", "b", "b"],
      ["a", "a"],
      ["b", "b", "b"],
    ]);
  });

  it("fails a request over keys in two places alone", async () => {
    inner.meet = isOnTheMove;
    expect(await kindsOf(ask("a"), ask("a", "b"))).toEqual(["granted", "STORE_UNAVAILABLE"]);
    expect(inner.charged).toHaveLength(1);
    await expect(part.take([ask("a", "b")], farDeadlineMs)).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
    });
  });

  it("makes a bounded number of calls of one batch", async () => {
    inner.meet = isOnTheMove;
    const kinds = await kindsOf(
      ...Array.from({ length: movingCallsMax + 2 }, (_, i) => ask(`${i}`)),
    );
    expect(kinds.filter((kind) => kind === "granted")).toHaveLength(movingCallsMax);
    expect(kinds.slice(-2)).toEqual(["STORE_UNAVAILABLE", "STORE_UNAVAILABLE"]);
  });

  it("hands other failures on, and asks nothing again", async () => {
    inner.meet = () => {
      batches.push([]);
      throw new ServiceError("STORE_TIMEOUT");
    };
    await expect(kindsOf(ask("a"), ask("b"))).rejects.toMatchObject({ code: "STORE_TIMEOUT" });
    expect(batches).toHaveLength(1);
  });
});
