import { describe, expect, it } from "vitest";
import { createStyle } from "../../../../src/app/base/style.js";
import {
  drawRefusals,
  followRefusals,
  RefusalLooks,
} from "../../../../src/cli/live/service-refusals.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";

function service(place: string, refused: number, overflowPerSecond = 0) {
  const [name = "", replica = ""] = place.split("@");
  return { name, replica, refused: BigInt(refused), overflowPerSecond };
}

const drawing = { style: createStyle(false), columnsMax: 80 };

describe("RefusalLooks", () => {
  it("says what admission has refused so far, and from the next look on how many a second", () => {
    const looks = new RefusalLooks();
    const first = looks.take([service("orders@a", 5), service("orders@b", 7)], 1_000);
    expect(drawRefusals(first, drawing)).toEqual([
      "",
      "Refused by admission",
      "  12 so far  orders",
    ]);
    const second = looks.take([service("orders@a", 9), service("orders@b", 8)], 3_000);
    expect(second).toMatchObject([{ by: "admission", perSecond: 2.5, replica: "a" }]);
    expect(looks.take([service("orders@a", 9), service("orders@b", 8)], 4_000)).toEqual([]);
  });

  it("counts a replica that began anew from 0", () => {
    const looks = new RefusalLooks();
    looks.take([service("orders@a", 500)], 0);
    expect(looks.take([service("orders@a", 30)], 1_000)).toMatchObject([{ perSecond: 30 }]);
  });

  it("says what breakers refuse of a service once, though every replica knows it", () => {
    const looks = new RefusalLooks();
    const services = [service("shop@a", 0, 3), service("shop@b", 0, 4)];
    const both = looks.take([...services, service("orders@b", 2)], 0);
    expect(drawRefusals(both, drawing)).toEqual([
      "",
      "Refused by circuit breakers, as Envoys report",
      "  4.0/s  shop",
      "",
      "Refused by admission",
      "  2 so far  orders",
    ]);
  });
});

describe("followRefusals()", () => {
  it("asks again the second after it could not be answered, and says so once", async () => {
    const clock = new FakeClock();
    const looks = new RefusalLooks();
    const reported: string[] = [];
    let refused = 0;
    let isAway = false;
    const stop = followRefusals(
      async () => {
        if (isAway) throw new Error("away");
        return looks.take([service("orders@a", refused)], clock.monotonicMs());
      },
      {
        clock,
        onRefusal: ({ service: name, perSecond }) => reported.push(`${name} ${perSecond}`),
        onFailure: () => reported.push("away"),
      },
    );
    const second = async (grown: number): Promise<void> => {
      await settlePromises();
      refused += grown;
      clock.advance(1_000);
      await settlePromises();
    };
    await second(3);
    isAway = true;
    await second(0);
    await second(0);
    isAway = false;
    await second(3);
    expect(reported).toEqual(["orders 3", "away", "orders 1"]);
    stop();
    await second(9);
    expect(reported).toHaveLength(3);
  });
});
