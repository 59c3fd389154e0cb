import { describe, expect, it } from "vitest";
import {
  type SnapshotEvent,
  SnapshotHolder,
  snapshotAgeMsMax,
} from "../../../../src/fleet/loop/snapshot-holder.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { testFleetSnapshot } from "../../../support/fleet-reports.js";

function createBoard() {
  const clock = new FakeClock();
  const events: SnapshotEvent[] = [];
  const board = new SnapshotHolder({ clock, onEvent: (event) => events.push(event) });
  const take = (term: number, leaderId: string, version: number): boolean =>
    board.take(testFleetSnapshot({ term, leaderId, version }), clock.monotonicMs());
  return { clock, board, events, take };
}

describe("SnapshotHolder", () => {
  it("holds nothing before the first snapshot, and then the newest", () => {
    const { board, take } = createBoard();
    expect(board.current()).toBeUndefined();
    expect(board.ageMs).toBeUndefined();
    for (const version of [1, 2]) expect(take(1, "a", version)).toBe(true);
    expect(board.current()).toMatchObject({ term: 1, leaderId: "a", version: 2 });
  });

  it("says when what holds was made, however long ago that is", () => {
    const { clock, board, take } = createBoard();
    expect(board.held()).toBeUndefined();
    clock.advance(7);
    const madeAtMs = clock.monotonicMs();
    take(1, "a", 1);
    clock.advance(snapshotAgeMsMax - 1);
    expect(board.held()).toMatchObject({ atMs: madeAtMs, fleet: { snapshot: { version: 1 } } });
    clock.advance(1);
    expect(board.held()).toBeUndefined();
  });

  it.each([
    { older: "version", term: 2, leaderId: "b", version: 4 },
    { older: "leader of the same term", term: 2, leaderId: "a", version: 9 },
    { older: "term", term: 1, leaderId: "c", version: 9 },
  ])("never goes back to an older $older", ({ term, leaderId, version }) => {
    const { board, take } = createBoard();
    take(2, "b", 5);
    expect(take(term, leaderId, version)).toBe(false);
    expect(board.current()).toMatchObject({ term: 2, leaderId: "b", version: 5 });
    expect(board.olderCount).toBe(1);
  });

  it("hands nothing out that nobody has renewed for too long, and tells once", () => {
    const { clock, board, events, take } = createBoard();
    take(3, "a", 1);
    clock.advance(snapshotAgeMsMax - 1);
    expect(board.current()).toBeDefined();
    clock.advance(1);
    for (let i = 0; i < 3; i += 1) expect(board.current()).toBeUndefined();
    expect(board.verdict("orders")).toBeUndefined();
    take(3, "a", 2);
    expect(board.current()).toBeDefined();
    expect(events.map(({ kind }) => kind)).toEqual([
      "leaderChanged",
      "snapshotLost",
      "snapshotFound",
    ]);
  });

  it("knows limits and latencies of what holds no more, but no shares and no gates", () => {
    const { clock, board, take } = createBoard();
    expect(board.lastKnown()).toBeUndefined();
    take(3, "a", 1);
    const whole = board.lastKnown();
    expect(whole).toEqual(board.held()?.fleet);
    clock.advance(snapshotAgeMsMax);
    const known = board.lastKnown();
    for (const [name, { limit, facts }] of whole?.snapshot.services ?? []) {
      const left = { limit, facts, shares: new Map(), rejectRatio: 0, gate: "open" };
      expect(known?.snapshot.services.get(name)).toEqual(left);
    }
    expect(known?.snapshot.services.size).toBe(whole?.snapshot.services.size);
    expect(known?.verdicts.size).toBe(0);
  });

  it("says nothing of a snapshot that held for others long ago, but that it is found anew", () => {
    const { clock, board, events, take } = createBoard();
    clock.advance(snapshotAgeMsMax);
    board.take(testFleetSnapshot({ term: 3, leaderId: "a", version: 7 }), 0);
    expect(board.current()).toBeUndefined();
    expect(events).toEqual([]);
    take(4, "b", 1);
    expect(events.map(({ kind }) => kind)).toEqual(["leaderChanged", "snapshotFound"]);
  });

  it("hands nothing out of a term once it knows of a higher one", () => {
    const { board, take } = createBoard();
    take(3, "a", 1);
    board.noteSeen({ term: 3, leaderId: "a", version: 2 });
    expect(board.current()).toBeDefined();
    board.noteSeen({ term: 4, leaderId: "0", version: 1 });
    expect(board.current()).toBeUndefined();
    expect(take(3, "a", 3)).toBe(false);
    expect(take(4, "0", 1)).toBe(true);
    expect(board.current()).toMatchObject({ term: 4 });
  });

  it("tells those who listen of each new snapshot, until they stop", () => {
    const { board, take } = createBoard();
    const versions: (number | undefined)[] = [];
    const stop = board.onSnapshot(() => versions.push(board.current()?.version));
    take(1, "a", 1);
    take(1, "a", 2);
    take(1, "a", 1);
    stop();
    take(1, "a", 3);
    expect(versions).toEqual([1, 2]);
  });
});
