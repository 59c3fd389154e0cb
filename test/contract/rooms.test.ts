import { describe } from "vitest";
import { MemoryRooms } from "../../src/store/coordination/memory-rooms.js";
import { enginesFor } from "../support/engines.js";
import { FakeClock } from "../support/fake-clock.js";
import { shareTestStore } from "../support/redis-store.js";
import { openClockedRooms } from "../support/rooms.js";
import { describeRooms } from "./room-cases.js";

describe("waiting rooms in memory", () => {
  describeRooms(() => {
    const clock = new FakeClock();
    return { store: new MemoryRooms(clock), clock };
  });
});

describe.each(enginesFor.scripts)("waiting rooms over %s", (engine) => {
  const shared = shareTestStore(engine);
  let worldCount = 0;

  describeRooms(() => {
    worldCount += 1;
    const clock = new FakeClock();
    const { connections } = shared.opened;
    const keyPrefix = `world${worldCount}:`;
    return { store: openClockedRooms({ connections, clock, keyPrefix }), clock };
  });
});
