import { describe, expect, it } from "vitest";
import { grpcStatuses } from "../../../../src/core/base/grpc-status.js";
import { unknownPeer } from "../../../../src/core/base/peer.js";
import { GrpcFailure } from "../../../../src/rpc/grpc/status.js";
import {
  ControlCounts,
  ControlStreams,
  controlStreamsMax,
} from "../../../../src/rpc/nodes/control-stream.js";
import { NodeRegistry } from "../../../../src/rpc/nodes/node-registry.js";
import { ControlRig, TestStream, testOwners } from "../../../support/control-rig.js";
import { FakeClock } from "../../../support/fake-clock.js";

const caller = { peer: unknownPeer };

/** Timers of a fake clock are slow by the ten thousand: this one never fires any. */
class StillClock extends FakeClock {
  override schedule(): () => void {
    return () => {};
  }
}

/** A clock that breaks when a test says so. */
class BrittleClock extends FakeClock {
  isBroken = false;

  override monotonicMs(): number {
    if (this.isBroken) throw new Error("a bug");
    return super.monotonicMs();
  }
}

function createStreams(): { readonly streams: ControlStreams; readonly counts: ControlCounts } {
  const clock = new StillClock();
  const counts = new ControlCounts();
  const nowMs = (): number => clock.monotonicMs();
  const registry = new NodeRegistry({ nowMs, ttlMs: 1, configuredShare: () => 1 });
  return { streams: new ControlStreams({ registry, owners: testOwners(), counts, clock }), counts };
}

describe("ControlStreams", () => {
  it("has so many streams open, and refuses one more", () => {
    const { streams, counts } = createStreams();
    const [first] = Array.from({ length: controlStreamsMax }, () =>
      streams.open("ads", new TestStream(), caller),
    );
    expect(() => streams.open("ads", new TestStream(), caller)).toThrow(GrpcFailure);
    expect(counts.faults.get("too_many_streams")).toBe(1);
    expect(counts.openStreams.get("ads")).toBe(controlStreamsMax);
    first?.end();
    expect(() => streams.open("rtds", new TestStream(), caller)).not.toThrow();
  });
});

describe("ControlStream", () => {
  it("ends once, whatever is said of its end", () => {
    const { streams, counts } = createStreams();
    const answers = new TestStream();
    const stream = streams.open("metrics", answers, caller);
    let overCount = 0;
    stream.onOver(() => {
      overCount += 1;
    });
    stream.fail("unreadable");
    stream.fail("silent");
    stream.end();
    streams.closeAll();
    expect(answers.status).toBe(grpcStatuses.invalidArgument);
    expect(overCount).toBe(1);
    expect(counts.faults.get("silent")).toBe(0);
    expect(counts.openStreams.get("metrics")).toBe(0);
  });

  it("says nothing more, and asks for nothing more, when it is over", () => {
    const { streams } = createStreams();
    const answers = new TestStream();
    const stream = streams.open("metrics", answers, caller);
    stream.end();
    expect(stream.send(new Uint8Array(1))).toBe(true);
    stream.next();
    expect(answers.sent).toEqual([]);
    expect(answers.nextCount).toBe(0);
  });

  it("ends with a fault of ours, and nothing else does", () => {
    const { streams } = createStreams();
    const answers = new TestStream();
    const other = new TestStream();
    const stream = streams.open("metrics", answers, caller);
    streams.open("metrics", other, caller);
    const bug = new Error("a bug");
    stream.guard(() => {
      throw bug;
    });
    stream.guard(() => {
      throw new Error("another one");
    });
    expect(answers.bug).toBe(bug);
    expect(other.status).toBeUndefined();
  });
});

describe("a message of the control port", () => {
  it("that meets a fault of ours fails its stream", () => {
    const clock = new BrittleClock();
    const rig = new ControlRig([], { clock });
    const stream = rig.open("StreamRuntime");
    clock.isBroken = true;
    stream.subscribe({ id: "edge-1" });
    expect(stream.bug).toMatchObject({ message: "a bug" });
    expect(stream.status).toBe(13);
  });
});
