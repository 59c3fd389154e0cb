import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { bandsOf, FleetHistory, historySeconds } from "../../../../src/console/data/history.js";
import { judgeFleet } from "../../../../src/console/data/verdict.js";
import {
  GetHistoryResponseSchema,
  ReplicaHistorySchema,
  type RoomHistorySchema,
} from "../../../../src/gen/headgate/admin/v1/admin_pb.js";

const startMs = 1_767_600_000_000;

/** What a replica tells of some seconds, each with this many calls that passed. */
function told(replica: string, firstSecond: number, admitted: readonly number[]) {
  return create(ReplicaHistorySchema, {
    replica,
    start: timestampFromMs(startMs + 1_000 * firstSecond),
    admitted: [...admitted],
    overLimit: admitted.map(() => 1),
    latencyMsP99: admitted.map((_, i) => i),
    degraded: admitted.map(() => false),
    envoys: admitted.map(() => 2),
  });
}

function answer(replicas: ReturnType<typeof told>[], silentReplicas = 0) {
  return create(GetHistoryResponseSchema, { replicas, silentReplicas });
}

describe("the past of a fleet", () => {
  it("is the sum of what replicas told, up to the second that all of them have", () => {
    const history = new FleetHistory();
    history.add(answer([told("a", 1, [10, 10, 10]), told("b", 1, [5, 5])]), startMs + 3_000);
    expect(history.end).toBe(startMs / 1_000 + 2);
    const seconds = history.timeline();
    // Of a fleet that has just begun no more than a minute is shown.
    expect(seconds).toHaveLength(60);
    expect(seconds.at(-1)?.point).toMatchObject({
      admitted: 15,
      overLimit: 2,
      latencyMsP99: 1,
      envoys: 4,
    });
    history.add(answer([told("b", 3, [7])]), startMs + 4_000);
    expect(history.timeline().at(-1)?.point?.admitted).toBe(17);
    expect(history.replicas).toEqual(["a", "b"]);
  });

  it("goes on without a replica that is gone, and says that it was missing", () => {
    const history = new FleetHistory();
    history.add(answer([told("a", 1, [1]), told("b", 1, [1])]), startMs + 1_000);
    for (let second = 2; second <= 8; second += 1) {
      history.add(answer([told("a", second, [1])], second < 5 ? 1 : 0), startMs + second * 1_000);
    }
    expect(history.end).toBe(startMs / 1_000 + 8);
    expect(history.replicas).toEqual(["a"]);
    const [band, ...others] = bandsOf(history.timeline());
    expect(others).toEqual([]);
    const first = startMs / 1_000;
    expect(band).toEqual({ kind: "missing", from: first + 1, to: first + 4 });
  });

  it("keeps no more than is shown", () => {
    const history = new FleetHistory();
    const long = Array.from({ length: 2_000 }, () => 1);
    history.add(answer([told("a", 0, long)]), startMs + 2_000_000);
    expect(history.timeline().every(({ point }) => point?.admitted === 1)).toBe(true);
    expect(history.timeline()[0]?.second).toBe(startMs / 1_000 + 1_999 - historySeconds + 1);
  });
});

describe("the verdict on a fleet", () => {
  const calm = (passed: number, overLimit: number) => {
    const history = new FleetHistory();
    const one = told("a", 1, [passed]);
    one.overLimit = [overLimit];
    history.add(answer([one]), startMs + 1_000);
    return { seconds: history.timeline(), silentReplicas: 0, isDegraded: false, overloaded: [] };
  };

  it("says the worst that is true", () => {
    const facts = calm(90, 10);
    const tone = (more: object): string => {
      const { tone: own, headline } = judgeFleet({ ...facts, ...more });
      return `${own}: ${headline}`;
    };
    expect(tone({})).toBe("notice: Refusing 10 %");
    expect(tone({ silentReplicas: 1 })).toBe("warn: 1 replica not answering");
    const overloaded = [
      { name: "orders", shedRatio: 0.2, overflowPerSecond: 0 },
      { name: "search", shedRatio: 0.4, overflowPerSecond: 7 },
    ];
    expect(tone({ silentReplicas: 1, overloaded })).toBe(
      "bad: search and 1 other service overloaded: 40 % shed",
    );
    expect(tone({ overloaded, isDegraded: true })).toBe("bad: The store does not answer");
    const byBreakers = [{ name: "carts", shedRatio: 0, overflowPerSecond: 190 }];
    expect(tone({ overloaded: byBreakers })).toBe("bad: carts overloaded: Envoys refuse 190/s");
  });

  it("says that it is not us where nothing is wrong, and where nobody asks", () => {
    expect(judgeFleet(calm(100, 0)).headline).toBe("All healthy");
    expect(judgeFleet(calm(0, 0)).headline).toBe("Healthy, no traffic");
  });
});

describe("roomTimeline()", () => {
  it("has the line of all replicas, and adds up waits", () => {
    const history = new FleetHistory();
    const start = timestampFromMs(1_000_000_000);
    const line = { name: "drop", start, active: [9], activeMax: [10], arrivals: [1.5] };
    const replica = (name: string, room: MessageInitShape<typeof RoomHistorySchema>) => {
      return { replica: name, start, admitted: [0], rooms: [{ ...line, ...room }] };
    };
    const answer = create(GetHistoryResponseSchema, {
      replicas: [
        replica("a", { waiting: [400], waits: [2], expectedSeconds: [60], actualSeconds: [70] }),
        replica("b", {
          ...{ waiting: [410], waits: [1], waitsInRange: [1] },
          ...{ expectedSeconds: [30], actualSeconds: [20] },
        }),
      ],
    });
    history.add(answer, 1_000_000_000);
    expect(history.roomTimeline("drop").at(-1)).toEqual({
      second: 1_000_000,
      silent: 0,
      point: {
        waiting: 410,
        active: 9,
        activeMax: 10,
        arrivals: 1.5,
        entries: 0,
        abandoned: 0,
        estimateLow: 0,
        estimateHigh: 0,
        waits: 3,
        waitsInRange: 1,
        expectedSeconds: 90,
        actualSeconds: 90,
      },
    });
    expect(history.roomTimeline("other").every(({ point }) => point === undefined)).toBe(true);
  });
});
