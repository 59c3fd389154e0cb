import { describe, expect, it } from "vitest";
import {
  attemptMsMax,
  PatientConnection,
  patientCallsMax,
  retryMsMax,
  retryMsMin,
} from "../../../../src/store/redis/patient-connection.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { FakeConnection } from "../../../support/fake-connection.js";
import { FakeRandom } from "../../../support/fake-random.js";

const script = { name: "test", text: "return 1" };

function createPatient() {
  const clock = new FakeClock();
  const connection = new FakeConnection();
  const patient = new PatientConnection({ connection, clock, random: new FakeRandom(7) });
  const run = (withinMs: number) =>
    patient.run({ script, keys: [], args: [], deadlineMs: clock.monotonicMs() + withinMs });
  return { clock, connection, patient, run };
}

/** The outcome as it is now, without waiting for it. */
function watch(promise: Promise<unknown>): { text: string } {
  const seen = { text: "pending" };
  promise.then(
    (reply) => {
      seen.text = `reply ${String(reply)}`;
    },
    (error: { code?: string }) => {
      seen.text = String(error.code);
    },
  );
  return seen;
}

describe("PatientConnection", () => {
  it("answers what the connection answers, without a wait", async () => {
    const { clock, connection, run } = createPatient();
    connection.answer = { kind: "reply", reply: 42 };
    expect(await run(1_000)).toBe(42);
    expect(clock.timerCount).toBe(0);
  });

  it("repeats a call that failed for a passing reason, at growing distances", async () => {
    const { clock, connection, run } = createPatient();
    connection.answer = { kind: "fails", code: "STORE_UNAVAILABLE" };
    const outcome = watch(run(30_000));
    const attemptedMs: number[] = [];
    for (let i = 0; i < 3_000; i += 1) {
      if (connection.calls.length > attemptedMs.length) attemptedMs.push(clock.monotonicMs());
      await clock.advanceAsync(5);
    }
    const distances = attemptedMs.slice(1).map((atMs, i) => atMs - (attemptedMs[i] ?? 0));
    expect(Math.min(...distances)).toBeGreaterThanOrEqual(retryMsMin);
    expect(Math.max(...distances)).toBeLessThanOrEqual(retryMsMax + 5);
    expect(distances.slice(-3).every((ms) => ms >= retryMsMax / 2)).toBe(true);
    connection.answer = { kind: "reply", reply: 7 };
    await clock.advanceAsync(retryMsMax, 5);
    expect(outcome.text).toBe("reply 7");
  });

  it("gives up when the next attempt would come after the deadline", async () => {
    const { clock, connection, run } = createPatient();
    connection.answer = { kind: "fails", code: "STORE_LOADING" };
    const outcome = watch(run(1_000));
    await clock.advanceAsync(1_000, 5);
    expect(outcome.text).toBe("STORE_LOADING");
    expect(connection.calls.length).toBeGreaterThan(2);
    expect(clock.timerCount).toBe(0);
  });

  it.each(["STORE_ACCESS_DENIED", "STORE_CLOSED", "STORE_PROTOCOL"] as const)(
    "does not repeat what will not pass: %s",
    async (code) => {
      const { connection, run } = createPatient();
      connection.answer = { kind: "fails", code };
      await expect(run(10_000)).rejects.toMatchObject({ code });
      expect(connection.calls).toHaveLength(1);
    },
  );

  it("gives each attempt a share of the time, and none more than the call has", async () => {
    const { clock, connection, run } = createPatient();
    const startMs = clock.monotonicMs();
    await run(10_000);
    await run(300);
    expect(connection.calls.map((call) => call.deadlineMs - startMs)).toEqual([attemptMsMax, 300]);
  });

  it("holds a bounded number of calls, and fails further ones at once", async () => {
    const { connection, run } = createPatient();
    connection.answer = { kind: "hangs" };
    const calls = Array.from({ length: patientCallsMax }, () => run(10_000));
    await expect(run(10_000)).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    connection.answer = { kind: "reply", reply: 1 };
    connection.release();
    await Promise.all(calls);
    await expect(run(10_000)).resolves.toBe(1);
  });

  it("ends its waits at wake(), so that a closed connection is noticed at once", async () => {
    const { clock, connection, patient, run } = createPatient();
    connection.answer = { kind: "fails", code: "STORE_UNAVAILABLE" };
    const outcome = watch(run(30_000));
    await settlePromises();
    connection.answer = { kind: "fails", code: "STORE_CLOSED" };
    patient.wake();
    await settlePromises();
    expect(outcome.text).toBe("STORE_CLOSED");
    expect(clock.timerCount).toBe(0);
  });
});
