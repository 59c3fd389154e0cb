import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CodelSettings } from "../../../../src/core/admission/codel.js";
import { type Priority, priorities } from "../../../../src/core/admission/priority.js";
import {
  type QueueOrder,
  type QueuePlace,
  type QueueRefusal,
  type QueueSettings,
  RequestQueue,
} from "../../../../src/core/admission/request-queue.js";
import { propertyRuns } from "../../../support/seeds.js";

const anyPosition = Number.POSITIVE_INFINITY;

function settings(changes: Partial<QueueSettings> = {}): QueueSettings {
  return { sizeMax: 4, waitMsMax: 2_000, order: "fifo", codel: undefined, ...changes };
}

/** A room whose requests are known by a word. */
class Rig {
  readonly room: RequestQueue<string>;
  readonly places = new Map<string, QueuePlace<string>>();

  constructor(changes: Partial<QueueSettings> = {}) {
    this.room = new RequestQueue(settings(changes));
  }

  /** Whether it got a place, and who was dismissed: `true`, or `true; low queueFull`. */
  enter(payload: string, nowMs: number, { priority = "normal", remainingMs }: Entering = {}) {
    const { place, dismissed } = this.room.enter({ payload, priority, remainingMs }, nowMs);
    if (place !== undefined) this.places.set(payload, place);
    return reported(String(place !== undefined), dismissed);
  }

  /** Who is let in, and who was dismissed before. */
  next(nowMs: number, positionMax = anyPosition): string {
    const { place, dismissed } = this.room.next(nowMs, positionMax);
    return reported(place?.payload ?? "nobody", dismissed);
  }

  expire(nowMs: number): string {
    return reported("", this.room.expire(nowMs));
  }

  /** Lets all in, in their order. */
  drain(nowMs: number): readonly string[] {
    const order: string[] = [];
    while (this.room.waitingCount > 0) order.push(this.next(nowMs));
    return order;
  }

  place(payload: string): QueuePlace<string> {
    const place = this.places.get(payload);
    if (place === undefined) throw new Error("it has no place");
    return place;
  }
}

interface Entering {
  readonly priority?: Priority;
  readonly remainingMs?: number | undefined;
}

function reported(first: string, dismissed: readonly QueueRefusal<string>[]): string {
  return [first, ...dismissed.map(({ place, cause }) => `${place.payload} ${cause}`)].join("; ");
}

describe("RequestQueue", () => {
  it("has nobody at first", () => {
    const rig = new Rig();
    expect(rig.next(0)).toBe("nobody");
    expect(rig.expire(0)).toBe("");
    expect([rig.room.waitingCount, rig.room.nextExpiryMs]).toEqual([0, undefined]);
  });

  it("says of a place when it began, when it ends and why, and how many were before", () => {
    const rig = new Rig();
    rig.enter("a", 100);
    rig.enter("b", 200, { priority: "high", remainingMs: 300 });
    rig.enter("c", 200, { remainingMs: 9_000 });
    const common = { enteredMs: 200 };
    expect(rig.place("a")).toMatchObject({ position: 1, expiresMs: 2_100, enteredMs: 100 });
    expect(rig.place("b")).toMatchObject({
      ...common,
      position: 2,
      expiresMs: 500,
      expiryCause: "deadline",
    });
    expect(rig.place("c")).toMatchObject({
      ...common,
      position: 3,
      expiresMs: 2_200,
      expiryCause: "queueTimeout",
    });
    expect(rig.room.nextExpiryMs).toBe(500);
  });

  it("lets nobody in whose time is over, and says what ended it", () => {
    const rig = new Rig();
    rig.enter("patient", 0);
    rig.enter("hasty", 0, { remainingMs: 50 });
    rig.enter("late", 0, { remainingMs: -5 });
    expect(rig.expire(49.9)).toBe("; late deadline");
    expect(rig.next(50)).toBe("patient; hasty deadline");
    rig.enter("lazy", 60);
    expect(rig.expire(2_059)).toBe("");
    expect(rig.next(2_060)).toBe("nobody; lazy queueTimeout");
  });

  it("makes room by those whose time is over before it refuses anybody", () => {
    const rig = new Rig({ sizeMax: 1 });
    rig.enter("a", 0);
    expect(rig.enter("b", 1_999)).toBe("false");
    expect(rig.enter("b", 2_000)).toBe("true; a queueTimeout");
  });

  it("lets a request leave by itself, once", () => {
    const rig = new Rig();
    rig.enter("a", 0);
    rig.enter("b", 0);
    expect(rig.room.leave(rig.place("a"))).toBe(true);
    expect(rig.room.leave(rig.place("a"))).toBe(false);
    expect(rig.next(1)).toBe("b");
    expect(rig.room.leave(rig.place("b"))).toBe(false);
    expect([rig.room.waitingCount, rig.room.nextExpiryMs]).toEqual([0, undefined]);
  });

  it("dismisses who came at a position that is not believed in any more", () => {
    const rig = new Rig();
    for (const name of ["a", "b", "c", "d"]) rig.enter(name, 0);
    expect(rig.next(1)).toBe("a");
    expect(rig.next(1, 2)).toBe("b");
    expect(rig.next(1, 2)).toBe("nobody; c queueFull; d queueFull");
  });

  it("holds as many as it may, also after it was made smaller", () => {
    const rig = new Rig({ sizeMax: 3 });
    for (const name of ["a", "b", "c"]) rig.enter(name, 0);
    rig.room.configure(settings({ sizeMax: 1 }));
    expect(rig.room.waitingCount).toBe(3);
    expect(rig.enter("d", 0)).toBe("false");
    expect(rig.drain(1)).toEqual(["a", "b", "c"]);
    expect(rig.enter("e", 1)).toBe("true");
    expect(rig.enter("f", 1)).toBe("false");
  });
});

describe("RequestQueue that is closed", () => {
  it("takes nobody in, and lets in who waits in it still", () => {
    const rig = new Rig();
    rig.enter("a", 0);
    rig.room.configure(settings({ sizeMax: 0 }));
    expect(rig.enter("b", 1)).toBe("false");
    expect(rig.next(2)).toBe("a");
    expect(rig.enter("c", 3)).toBe("false");
  });
});

describe("RequestQueue, first in first out", () => {
  it("keeps the order of arrival, whatever the class, and takes nobody when it is full", () => {
    const rig = new Rig();
    rig.enter("a", 0, { priority: "low" });
    rig.enter("b", 1, { priority: "critical" });
    rig.enter("c", 2);
    rig.enter("d", 3);
    expect(rig.enter("e", 4, { priority: "critical" })).toBe("false");
    expect(rig.drain(5)).toEqual(["a", "b", "c", "d"]);
  });
});

describe("RequestQueue, by priority", () => {
  it("lets in the highest class first, and within it the oldest", () => {
    const rig = new Rig({ order: "priority", sizeMax: 10 });
    for (const name of ["normal", "low", "critical", "high"] as const) {
      rig.enter(`${name} 1`, 0, { priority: name });
      rig.enter(`${name} 2`, 0, { priority: name });
    }
    expect(rig.room.countOf("high")).toBe(2);
    const order = priorities.flatMap((name) => [`${name} 1`, `${name} 2`]);
    expect(rig.drain(1)).toEqual(order);
  });

  it("counts as position only who goes first", () => {
    const rig = new Rig({ order: "priority", sizeMax: 10 });
    rig.enter("a", 0, { priority: "low" });
    rig.enter("b", 0, { priority: "normal" });
    rig.enter("c", 0, { priority: "low" });
    rig.enter("d", 0, { priority: "critical" });
    rig.enter("e", 0, { priority: "normal" });
    const positions = ["a", "b", "c", "d", "e"].map((name) => rig.place(name).position);
    expect(positions).toEqual([1, 1, 3, 1, 3]);
  });

  it("gives up one of the lowest class below, when it is full: the one that would go last", () => {
    const rig = new Rig({ order: "priority", sizeMax: 3 });
    rig.enter("normal", 0, { priority: "normal" });
    rig.enter("low 1", 0, { priority: "low" });
    rig.enter("low 2", 1, { priority: "low" });
    expect(rig.enter("high", 2, { priority: "high" })).toBe("true; low 2 queueFull");
    expect(rig.enter("low 3", 2, { priority: "low" })).toBe("false");
    expect(rig.enter("normal 2", 2, { priority: "normal" })).toBe("true; low 1 queueFull");
    expect(rig.enter("normal 3", 2, { priority: "normal" })).toBe("false");
    expect(rig.enter("critical", 2, { priority: "critical" })).toBe("true; normal queueFull");
    expect(rig.drain(3)).toEqual(["critical", "high", "normal 2"]);
  });

  it("lets in the newest of a class that has lost one, until nobody of it waits", () => {
    const rig = new Rig({ order: "priority", sizeMax: 4 });
    for (const name of ["normal 1", "normal 2"]) rig.enter(name, 0);
    for (const name of ["high 1", "high 2"]) rig.enter(name, 0, { priority: "high" });
    expect(rig.enter("normal 3", 1)).toBe("false");
    expect(rig.drain(2)).toEqual(["high 1", "high 2", "normal 2", "normal 1"]);
    for (const name of ["normal 4", "normal 5"]) rig.enter(name, 3);
    expect(rig.drain(4)).toEqual(["normal 4", "normal 5"]);
  });

  it("counts one that timed out as lost, and nobody who left by itself", () => {
    const rig = new Rig({ order: "priority" });
    const names = ["a", "b", "hasty", "left"];
    for (const name of names) rig.enter(name, 0, name === "hasty" ? { remainingMs: 10 } : {});
    rig.room.leave(rig.place("left"));
    expect(rig.next(1)).toBe("a");
    rig.enter("c", 2);
    expect(rig.expire(10)).toBe("; hasty deadline");
    expect(rig.drain(11)).toEqual(["c", "b"]);
  });

  it("keeps to the oldest for a law that bounds positions", () => {
    const rig = new Rig({ order: "priority", sizeMax: 2 });
    for (const name of ["a", "b"]) rig.enter(name, 0);
    expect(rig.enter("c", 0)).toBe("false");
    expect(rig.room.countAhead("normal", 2)).toBe(2);
    expect([rig.next(1, 2), rig.next(1, 2)]).toEqual(["a", "b"]);
  });

  it("counts who goes before a newcomer", () => {
    const rig = new Rig({ order: "priority", sizeMax: 4 });
    rig.enter("critical", 0, { priority: "critical" });
    for (const name of ["a", "b", "c"]) rig.enter(name, 0);
    const counts = (): readonly number[] =>
      priorities.map((name) => rig.room.countAhead(name, anyPosition));
    expect(counts()).toEqual([1, 1, 4, 4]);
    rig.enter("d", 0);
    expect(counts()).toEqual([1, 1, 1, 4]);
  });
});

describe("RequestQueue, newest first under overload", () => {
  const newestFirst = { order: "newestFirstUnderOverload", sizeMax: 6 } as const;

  it("is fair while less than half of it is taken", () => {
    const rig = new Rig(newestFirst);
    rig.enter("a", 0);
    rig.enter("b", 1);
    expect(rig.room.countAhead("critical", anyPosition)).toBe(2);
    expect(rig.drain(2)).toEqual(["a", "b"]);
  });

  it("turns to the newest once half of it is taken, until it is empty", () => {
    const rig = new Rig(newestFirst);
    for (const name of ["a", "b", "c"]) rig.enter(name, 0);
    expect(rig.room.countAhead("low", anyPosition)).toBe(0);
    expect(rig.next(1)).toBe("c");
    rig.enter("d", 2);
    expect(rig.drain(3)).toEqual(["d", "b", "a"]);
    rig.enter("e", 4);
    rig.enter("f", 4);
    expect(rig.drain(5)).toEqual(["e", "f"]);
  });

  it("gives up the oldest when it is full", () => {
    const rig = new Rig(newestFirst);
    for (const name of ["a", "b", "c", "d", "e", "f"]) rig.enter(name, 0);
    expect(rig.enter("g", 1)).toBe("true; a queueFull");
    expect(rig.room.waitingCount).toBe(6);
    expect(rig.drain(2)).toEqual(["g", "f", "e", "d", "c", "b"]);
  });

  it("turns to the newest when one has timed out", () => {
    const rig = new Rig({ ...newestFirst, sizeMax: 100 });
    rig.enter("a", 0);
    rig.enter("hasty", 0, { remainingMs: 10 });
    rig.enter("b", 0);
    expect(rig.expire(10)).toBe("; hasty deadline");
    expect(rig.drain(11)).toEqual(["b", "a"]);
  });

  it("dismisses everything older than one that times out, once it is overloaded", () => {
    const rig = new Rig(newestFirst);
    rig.enter("a", 0);
    rig.enter("b", 0);
    rig.enter("hasty", 0, { remainingMs: 10 });
    rig.enter("c", 0);
    expect(rig.expire(10)).toBe("; b queueTimeout; a queueTimeout; hasty deadline");
    expect(rig.drain(11)).toEqual(["c"]);
  });

  it("dismisses nobody older where order is another", () => {
    const rig = new Rig({ sizeMax: 2 });
    rig.enter("a", 0);
    rig.enter("hasty", 0, { remainingMs: 10 });
    expect(rig.expire(10)).toBe("; hasty deadline");
    expect(rig.drain(11)).toEqual(["a"]);
  });

  it("is not overloaded any more by one that timed out and left it empty", () => {
    const rig = new Rig({ ...newestFirst, sizeMax: 100 });
    rig.enter("hasty", 0, { remainingMs: 10 });
    rig.expire(10);
    for (const name of ["a", "b"]) rig.enter(name, 20);
    expect(rig.drain(21)).toEqual(["a", "b"]);
  });
});

describe("RequestQueue with CoDel", () => {
  const codel = { targetMs: 100, intervalMs: 1_000 };

  /** Enters one each 10 ms and lets in one each 10 ms, 200 ms later. */
  function standing(rig: Rig, priority: Priority, untilMs: number): readonly string[] {
    const dropped: string[] = [];
    for (let nowMs = 0; nowMs < untilMs; nowMs += 10) {
      rig.enter(`at ${nowMs}`, nowMs, { priority });
      if (nowMs < 200) continue;
      const [, ...rest] = rig.next(nowMs).split("; ");
      dropped.push(...rest);
    }
    return dropped;
  }

  it("drops of a queue that stands, as having waited too long", () => {
    const rig = new Rig({ sizeMax: 100, codel });
    expect(standing(rig, "normal", 2_300)).toEqual([
      "at 1000 queueTimeout",
      "at 2010 queueTimeout",
    ]);
  });

  it("drops nothing without it", () => {
    expect(standing(new Rig({ sizeMax: 100 }), "normal", 2_300)).toEqual([]);
  });

  it("spares critical requests", () => {
    expect(standing(new Rig({ sizeMax: 100, codel }), "critical", 2_300)).toEqual([]);
  });

  it("begins anew with a room that was empty, however it became so", () => {
    const rig = new Rig({ sizeMax: 100, codel });
    expect(standing(rig, "normal", 1_200)).toEqual([]);
    for (const place of rig.places.values()) rig.room.leave(place);
    for (const name of ["a", "b", "c"]) rig.enter(name, 1_200);
    expect(rig.next(1_310)).toBe("a");
  });

  it("keeps what it has learnt with the same settings, and learns anew with others", () => {
    const nextAfter = (changed: CodelSettings): string => {
      const rig = new Rig({ sizeMax: 100, codel });
      expect(standing(rig, "normal", 1_200)).toEqual([]);
      rig.room.configure(settings({ sizeMax: 90, codel: changed }));
      return rig.next(1_200);
    };
    expect(nextAfter({ ...codel })).toBe("at 1010; at 1000 queueTimeout");
    expect(nextAfter({ ...codel, intervalMs: 1_001 })).toBe("at 1000");
    expect(nextAfter({ ...codel, targetMs: 99 })).toBe("at 1000");
  });
});

/** One step of a random history. */
type Step =
  | { readonly kind: "enter"; readonly priority: Priority; readonly remainingMs?: number }
  | { readonly kind: "next" | "expire" | "leave"; readonly pick: number };

describe("RequestQueue, any history", () => {
  const step: fc.Arbitrary<Step & { readonly afterMs: number }> = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant("enter" as const),
        priority: fc.constantFrom(...priorities),
        remainingMs: fc.nat(60),
        afterMs: fc.nat(10),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constantFrom("next" as const, "expire" as const, "leave" as const),
        pick: fc.nat(20),
        afterMs: fc.nat(10),
      }),
    },
  );
  const orders: readonly QueueOrder[] = ["priority", "fifo", "newestFirstUnderOverload"];

  it("decides on everybody exactly once, in time, and never holds more than it may", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...orders),
        fc.boolean(),
        fc.array(step, { maxLength: 150, size: "max" }),
        (order, hasCodel, steps) => {
          const sizeMax = 5;
          const codel = hasCodel ? { targetMs: 5, intervalMs: 20 } : undefined;
          const room = new RequestQueue<number>({ sizeMax, waitMsMax: 40, order, codel });
          const waiting = new Set<QueuePlace<number>>();
          const faults: string[] = [];
          const hold = (isHeld: boolean, what: string): void => {
            if (!isHeld) faults.push(what);
          };
          const gone = (place: QueuePlace<number>): void => {
            hold(waiting.delete(place), "was decided on once already");
          };
          let nowMs = 0;
          steps.forEach((one, payload) => {
            nowMs += one.afterMs;
            const dismissed: QueueRefusal<number>[] = [];
            if (one.kind === "enter") {
              const answer = room.enter(
                { payload, priority: one.priority, remainingMs: one.remainingMs },
                nowMs,
              );
              if (answer.place !== undefined) waiting.add(answer.place);
              else hold(room.waitingCount === sizeMax, "refused with room left");
              dismissed.push(...answer.dismissed);
            } else if (one.kind === "next") {
              const answer = room.next(nowMs, anyPosition);
              dismissed.push(...answer.dismissed);
              if (answer.place !== undefined) {
                hold(answer.place.expiresMs > nowMs, "let in too late");
                gone(answer.place);
              }
            } else if (one.kind === "expire") {
              dismissed.push(...room.expire(nowMs));
              hold((room.nextExpiryMs ?? Number.POSITIVE_INFINITY) > nowMs, "kept too long");
            } else {
              const place = [...waiting][one.pick];
              if (place !== undefined && room.leave(place)) gone(place);
            }
            for (const { place } of dismissed) gone(place);
            hold(room.waitingCount === waiting.size, "counts others than those who wait");
            hold(room.waitingCount <= sizeMax, "holds more than it may");
            const byClass = priorities.map((priority) => room.countOf(priority));
            const sum = byClass.reduce((all, count) => all + count, 0);
            hold(sum === waiting.size, "counts others by class than those who wait");
          });
          expect(faults).toEqual([]);
        },
      ),
      propertyRuns(100),
    );
  });

  it("never refuses a critical request by priority while one of a lower class waits", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...priorities), { maxLength: 60, size: "max" }),
        (classes) => {
          const room = new RequestQueue<number>(settings({ order: "priority" }));
          classes.forEach((priority, payload) => {
            const lowerCount = room.waitingCount - room.countOf("critical");
            const { place, dismissed } = room.enter(
              { payload, priority, remainingMs: undefined },
              0,
            );
            if (priority !== "critical") return;
            if (lowerCount > 0) expect(place).toBeDefined();
            expect(dismissed.every((one) => one.place.priority !== "critical")).toBe(true);
          });
        },
      ),
      propertyRuns(100),
    );
  });
});
