import { describe, expect, it } from "vitest";
import { HostWatch } from "../../../../src/app/admission/host-watch.js";
import type { HostReadingName, HostReadings } from "../../../../src/core/admission/host-reading.js";
import { isServiceError } from "../../../../src/core/base/errors.js";
import { parsePolicy } from "../../../../src/policy/parse.js";
import type { Policy } from "../../../../src/policy/policy.js";
import { servicesPolicy } from "../../../support/admission.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { containerTree, writeHostTree } from "../../../support/host-trees.js";
import { policyOf } from "../../../support/service-texts.js";
import { useStage } from "../../../support/stage.js";

const stage = useStage("test");

function parse(service: string): Policy {
  const parsed = parsePolicy([{ file: "a.yaml", text: policyOf(service) }]);
  if (parsed.kind === "problems") throw new Error(parsed.problems[0]?.message);
  return servicesPolicy(parsed.services);
}

const bySignal = "{name: a, concurrency: {law: signal, signal: {host: memory}}}";
const byLoad = "{name: a, admission: {load: {host: {cpu: 0.5}}}}";
const without = "{name: a, admission: {}}";

/** A container whose policy a test changes. */
class WatchRig {
  readonly clock = new FakeClock();
  readonly reported: HostReadings[] = [];
  readonly watch: HostWatch;
  #policy: Policy;
  #listener: () => void = () => {};

  constructor(service: string) {
    this.#policy = parse(service);
    this.watch = new HostWatch({
      clock: this.clock,
      policies: {
        current: () => this.#policy,
        onLoaded: (listener) => {
          this.#listener = listener;
          return () => {
            this.#listener = () => {};
          };
        },
      },
      root: writeHostTree(stage.folder, containerTree),
      eventLoop: { takeMs: () => 12, close: () => {} },
      onRead: (readings) => this.reported.push(readings),
    });
  }

  load(service: string): void {
    this.#policy = parse(service);
    this.#listener();
  }

  /** What was read, the code of why nothing was, or "waiting". */
  async read(name: HostReadingName): Promise<unknown> {
    let told: unknown = "waiting";
    this.watch
      .readerOf(name)
      .read(0)
      .then(
        (readings) => {
          told = readings;
        },
        (thrown: unknown) => {
          told = isServiceError(thrown) ? thrown.code : thrown;
        },
      );
    await settlePromises();
    return told;
  }
}

describe("HostWatch", () => {
  it.each([bySignal, byLoad])("reads the host for %s", (service) => {
    const { clock, reported } = new WatchRig(service);
    clock.advance(2_100);
    expect(reported).toHaveLength(3);
    expect(reported.at(-1)).toMatchObject({ cpu: 0, memory: 0.25, eventLoopDelay: 12 });
  });

  it("reads nothing where no policy asks for it", () => {
    const { clock, reported, watch } = new WatchRig(without);
    clock.advance(5_000);
    expect(reported).toEqual([]);
    expect(clock.timerCount).toBe(0);
    watch.close();
  });

  it("begins and ends with policies", () => {
    const rig = new WatchRig(without);
    rig.load(byLoad);
    rig.clock.advance(100);
    expect(rig.reported).toHaveLength(1);
    rig.load(bySignal);
    rig.clock.advance(1_000);
    expect(rig.reported).toHaveLength(2);
    rig.load(without);
    expect(rig.clock.timerCount).toBe(0);
    rig.load(byLoad);
    rig.watch.close();
    expect(rig.clock.timerCount).toBe(0);
  });

  it("makes a source wait for the first reading", async () => {
    const rig = new WatchRig(bySignal);
    expect(await rig.read("cpu")).toBe("waiting");
    rig.clock.advance(100);
    expect(await rig.read("cpu")).toEqual({ kind: "whole", reading: 0 });
    expect(await rig.read("memory")).toEqual({ kind: "whole", reading: 0.25 });
  });

  it("tells a source that the host has no such reading", async () => {
    const rig = new WatchRig(bySignal);
    writeHostTree(stage.folder, { "proc/loadavg": "" });
    rig.clock.advance(100);
    expect(await rig.read("runQueue")).toBe("SIGNAL_EMPTY");
  });
});
