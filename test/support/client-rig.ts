import type { Admission, AdmissionOptions } from "../../src/client/admission.js";
import { createAdmission } from "../../src/client/create-admission.js";
import { FakeClock } from "./fake-clock.js";
import { FakeRandom } from "./fake-random.js";
import { waitFor } from "./wait.js";

/** Retries that wait for the least time, and are never refused for the budget. */
export const promptRetries = { baseMs: 1, maxMs: 1, budgetPerSecondMin: 100 } as const;

/** An admission whose time stands still until a test moves it. */
export interface ClientRig {
  readonly clock: FakeClock;
  readonly admission: Admission;
  /** Permits in use now. */
  inFlight(): number;
  /** Resolves when so many retries wait, or have waited. */
  retries(count: number): Promise<void>;
  /** Resolves when no permit is in use. */
  permitsBack(): Promise<void>;
}

/** Four permits, and whatever parts a test wants. */
export function createClientRig(options: Partial<AdmissionOptions> = {}): ClientRig {
  const clock = new FakeClock();
  const admission = createAdmission({
    name: "orders",
    clock,
    random: new FakeRandom(),
    concurrency: { law: "fixed", initial: 4 },
    ...options,
  });
  const until = async (what: string, isSo: () => boolean): Promise<void> => {
    await waitFor(what, isSo, { everyMs: 1 });
  };
  return {
    clock,
    admission,
    inFlight: () => admission.snapshot().inFlight,
    retries: (count) =>
      until(`retry ${count} waits`, () => admission.snapshot().retriesCount >= count),
    permitsBack: () => until("all permits are back", () => admission.snapshot().inFlight === 0),
  };
}

/** Teaches the wait before hedges that calls are answered at once: then it is the least wait. */
export async function teachHedges({ admission }: ClientRig): Promise<void> {
  for (let i = 0; i < 100; i += 1) await admission.run(async () => {});
}
