import { MemoryLimitStore } from "../../src/store/memory.js";
import { FakeClock } from "../support/fake-clock.js";
import { describeLimitStore } from "./limit-store.js";

describeLimitStore("MemoryLimitStore", async () => {
  const clock = new FakeClock();
  const store = new MemoryLimitStore({ clock });
  return { store, soon: () => clock.monotonicMs() + 1_000, stop: () => store.close() };
});
