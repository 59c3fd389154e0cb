import { MemoryLimitStore } from "../../src/store/memory.js";
import { FakeClock } from "../support/fake-clock.js";
import { describeLimitStore } from "./limit-store.js";

describeLimitStore("MemoryLimitStore", async () => {
  const clock = new FakeClock();
  return {
    open: async () => new MemoryLimitStore({ clock }),
    soon: () => clock.monotonicMs() + 1_000,
    stop: async () => {},
  };
});
