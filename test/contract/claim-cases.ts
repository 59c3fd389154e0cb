import { expect, it } from "vitest";
import { ReplicaQuestions } from "../../src/fleet/claims/replica-questions.js";
import type { MemberStore } from "../../src/store/coordination/member-store.js";
import type { PermitClaim, PermitStore } from "../../src/store/coordination/permit-store.js";
import {
  answerBytesMax,
  answersBytesMax,
  type QuestionStore,
  questionsMax,
} from "../../src/store/coordination/question-store.js";
import {
  type SignalStore,
  type SignalTurn,
  sharedReadingsBytesMax,
} from "../../src/store/coordination/signal-store.js";
import { realClock, realRandom } from "../support/real-clock.js";
import { soon } from "../support/redis-store.js";
import { waitFor } from "../support/wait.js";

/** Longer than any test takes. */
const leaseMs = 60_000;

/** What counting replicas promises, in any store. */
export function describeMembers(open: () => MemberStore): void {
  it("counts those who joined, each once, and forgets at once who left", async () => {
    const store = open();
    const join = (replicaId: string): Promise<number> => store.join({ replicaId, leaseMs }, soon());
    expect([await join("a1"), await join("a1"), await join("b2")]).toEqual([1, 1, 2]);
    await store.leave("a1", soon());
    expect(await join("b2")).toBe(1);
  });

  it("forgets who fell silent when the lease is over", async () => {
    const store = open();
    const join = (replicaId: string): Promise<number> => {
      return store.join({ replicaId, leaseMs: 200 }, soon());
    };
    await join("a1");
    expect(await join("b2")).toBe(2);
    await waitFor("one is gone", async () => (await join("b2")) === 1);
  });
}

/** What polling for others promises, in any store. */
export function describeSignals(open: () => SignalStore): void {
  const turnOf = (replicaId: string, turnMs = leaseMs): SignalTurn => {
    return { source: "5a", replicaId, turnMs };
  };

  it("gives the turn to one, and what that one has told to the others", async () => {
    const store = open();
    const [one, other] = [turnOf("a1"), turnOf("b2")];
    expect(await store.take(one, soon())).toBeUndefined();
    // Nothing was told yet, so the other may poll too; what it tells is ignored.
    expect(await store.take(other, soon())).toBeUndefined();
    await store.tell(other, "2");
    expect(await store.take(other, soon())).toBeUndefined();
    await store.tell(one, "1");
    expect(await store.take(other, soon())).toBe("1");
    expect(await store.take(one, soon())).toBeUndefined();
    expect(await store.take(other, soon())).toBe("1");
    expect(await store.take({ ...other, source: "5b" }, soon())).toBeUndefined();
  });

  it("passes the turn on when it is released, or over, without what was told", async () => {
    const store = open();
    const [one, other] = [turnOf("a1"), turnOf("b2")];
    await store.take(one, soon());
    await store.tell(one, "1");
    await store.release(other);
    expect(await store.take(other, soon())).toBe("1");
    await store.release(one);
    expect(await store.take(other, soon())).toBeUndefined();
    expect(await store.take(one, soon())).toBeUndefined();
    await store.tell(other, "2");
    expect(await store.take(one, soon())).toBe("2");
    const brief = turnOf("b2", 50);
    await store.tell(brief, "3");
    await waitFor("the turn is over", async () => (await store.take(one, soon())) === undefined);
    expect(await store.take(other, soon())).toBeUndefined();
    await store.tell(one, "4");
    expect(await store.take(other, soon())).toBe("4");
  });

  it("keeps readings up to a bound", async () => {
    const store = open();
    const [one, other] = [turnOf("a1"), turnOf("b2")];
    await store.take(one, soon());
    await store.tell(one, "x".repeat(sharedReadingsBytesMax));
    expect(await store.take(other, soon())).toHaveLength(sharedReadingsBytesMax);
    await store.tell(one, "x".repeat(sharedReadingsBytesMax + 1));
    expect(await store.take(other, soon())).toBeUndefined();
  });
}

const nothingOf30 = {
  name: "orders",
  limit: 30,
  heldCount: 0,
  neededCount: 0,
  isLearned: false,
} as const satisfies PermitClaim;

/** Claims of replicas on one limit of 30, each under a higher number. */
function claimer(store: PermitStore) {
  let beat = 0;
  return async (
    replicaId: string,
    fields: Partial<PermitClaim> & { readonly number?: number; readonly leaseMs?: number } = {},
  ): Promise<number | undefined> => {
    beat += 1;
    const { number = beat, leaseMs: ms = leaseMs, ...claim } = fields;
    const [answer] = await store.claim(
      { replicaId, number, leaseMs: ms, claims: [{ ...nothingOf30, ...claim }] },
      soon(),
    );
    return answer?.grantedCount;
  };
}

/** What dividing permits promises, in any store. */
export function describePermits(open: () => PermitStore): void {
  it("divides by need, and what nobody needs evenly, to the last permit", async () => {
    const claim = claimer(open());
    expect(await claim("a1")).toBe(30);
    await claim("a1", { heldCount: 0, neededCount: 40 });
    expect(await claim("b2", { neededCount: 1 })).toBe(0);
    expect(await claim("a1", { heldCount: 30, neededCount: 40 })).toBe(29);
    expect(await claim("a1", { heldCount: 29, neededCount: 40 })).toBe(29);
    expect(await claim("b2", { neededCount: 1 })).toBe(1);
    expect(await claim("b2", { heldCount: 1, neededCount: 40 })).toBe(1);
    expect(await claim("a1", { heldCount: 29, neededCount: 40 })).toBe(15);
  });

  it("grants nothing that others hold, whatever they are asked to give back", async () => {
    const claim = claimer(open());
    expect(await claim("a1", { neededCount: 30 })).toBe(30);
    expect(await claim("b2", { neededCount: 30 })).toBe(0);
    expect(await claim("a1", { heldCount: 20, neededCount: 30 })).toBe(15);
    expect(await claim("b2", { neededCount: 30 })).toBe(10);
  });

  it("leaves aside a heartbeat that comes after a later one", async () => {
    const claim = claimer(open());
    expect(await claim("a1", { number: 5, neededCount: 30 })).toBe(30);
    expect(await claim("a1", { number: 4 })).toBeUndefined();
    expect(await claim("b2", { number: 1, neededCount: 30 })).toBe(0);
  });

  it("frees what one held who leaves, or whose lease is over", async () => {
    const store = open();
    const claim = claimer(store);
    expect(await claim("a1", { neededCount: 30 })).toBe(30);
    await store.leave({ replicaId: "a1", names: ["orders"] }, soon());
    expect(await claim("b2", { neededCount: 30, leaseMs: 100 })).toBe(30);
    await waitFor("the lease is over", async () => {
      return (await claim("c3", { neededCount: 30 })) === 30;
    });
  });

  it("answers each limit, in order", async () => {
    const store = open();
    const limits = [3, 1, 7];
    const claims = limits.map((limit) => {
      return { ...nothingOf30, name: `limit-${limit}`, limit };
    });
    const answers = await store.claim({ replicaId: "a1", number: 1, leaseMs, claims }, soon());
    expect(answers.map((answer) => answer?.grantedCount)).toEqual(limits);
  });

  describeLearned(open);
}

/** What it promises of limits that each replica learns by itself. */
function describeLearned(open: () => PermitStore): void {
  it("divides the least of what they have learned, and tells what others have in use", async () => {
    const store = open();
    let number = 0;
    const learned = async (replicaId: string, fields: Partial<PermitClaim>) => {
      number += 1;
      const claims = [{ ...nothingOf30, isLearned: true, ...fields }];
      const [answer] = await store.claim({ replicaId, number, leaseMs, claims }, soon());
      return answer;
    };
    await learned("a1", { limit: 30, heldCount: 8, neededCount: 6 });
    const second = await learned("b2", { limit: 12, heldCount: 4, neededCount: 40 });
    expect(second).toEqual({ grantedCount: 4, othersInUseCount: 6, limit: 12 });
    const first = await learned("a1", { limit: 30, heldCount: 6, neededCount: 6 });
    expect(first).toEqual({ grantedCount: 6, othersInUseCount: 4, limit: 12 });
    // Who learns more again is followed.
    await learned("b2", { limit: 20, heldCount: 4, neededCount: 40 });
    expect((await learned("a1", { limit: 30 }))?.limit).toBe(20);
    await store.leave({ replicaId: "b2", names: ["orders"] }, soon());
    expect(await learned("a1", { limit: 30 })).toEqual({
      grantedCount: 30,
      othersInUseCount: 0,
      limit: 30,
    });
  });
}

/** What questions among replicas promise, in any store. */
export function describeQuestions(open: () => QuestionStore): void {
  it("brings questions to all, and answers to who asked, each once and in order", async () => {
    const store = open();
    await store.ask({ id: "a1", text: "what\nis it" });
    await store.ask({ id: "b2", text: "and this" });
    await store.ask({ id: "a1", text: "what\nis it" });
    const waiting = [...(await store.waiting())].toSorted((a, b) => (a.id < b.id ? -1 : 1));
    expect(waiting).toEqual([
      { id: "a1", text: "what\nis it" },
      { id: "b2", text: "and this" },
    ]);
    const body = Buffer.from([0, 10, 255, 10]);
    await store.answer("a1", { replica: "one", body });
    await store.answer("a1", { replica: "other", body: Buffer.from("x") });
    expect(await store.take("b2")).toEqual([]);
    const answers = await store.take("a1");
    expect(answers.map(({ replica }) => replica)).toEqual(["one", "other"]);
    expect(body.equals(answers[0]?.body ?? Buffer.alloc(0))).toBe(true);
    expect(await store.take("a1")).toEqual([]);
    await store.end("a1");
    expect((await store.waiting()).map(({ id }) => id)).toEqual(["b2"]);
  });

  it("has room for so many questions, and says so", async () => {
    const store = open();
    for (let i = 0; i < questionsMax; i += 1) await store.ask({ id: `a${i}`, text: "q" });
    const more = store.ask({ id: "ff", text: "q" });
    await expect(more).rejects.toMatchObject({ code: "STORE_FULL" });
    await store.ask({ id: "a1", text: "q" });
    await store.end("a1");
    await store.ask({ id: "ff", text: "q" });
  });

  it("keeps the newest answers, up to a bound of bytes", async () => {
    const store = open();
    await store.ask({ id: "a1", text: "q" });
    const body = Buffer.alloc(answerBytesMax - 100, 7);
    const most = Math.floor(answersBytesMax / body.length);
    const names = Array.from({ length: most + 1 }, (_, i) => `r${i}`);
    for (const replica of names) await store.answer("a1", { replica, body });
    expect((await store.take("a1")).map(({ replica }) => replica)).toEqual(names.slice(1));
  });

  it("lets replicas answer each other, and nobody itself", async () => {
    const store = open();
    const parts = { store, clock: realClock, random: realRandom };
    const [one, other] = ["one", "other"].map((replica) => {
      return new ReplicaQuestions({ ...parts, replica });
    });
    for (const replica of [one, other]) {
      replica?.answer(() => ({ take: async () => Buffer.from("it is"), close: () => {} }));
    }
    const put = await one?.put({ method: "Any", request: Buffer.from("a"), caller: {} });
    const answers = await waitFor("it is answered", async () => {
      const taken = (await put?.take()) ?? [];
      return taken.length > 0 ? taken : undefined;
    });
    expect(answers.map(({ replica }) => replica)).toEqual(["other"]);
    await put?.close();
    for (const replica of [one, other]) replica?.close();
  });
}
