import { describe, expect, it } from "vitest";
import { firstAnswerMsMax, SignalSources } from "../../../../src/app/admission/signal-sources.js";
import type { LogEvent } from "../../../../src/app/base/logger.js";
import type { SignalUpdate } from "../../../../src/core/concurrency/signal-update.js";
import { parsePolicy } from "../../../../src/policy/parse.js";
import type { Policy } from "../../../../src/policy/policy.js";
import { RedisNumbers } from "../../../../src/store/redis/coordination/redis-numbers.js";
import { servicesPolicy } from "../../../support/admission.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { FakeConnection } from "../../../support/fake-connection.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { policyOf } from "../../../support/service-texts.js";

function parse(...services: readonly string[]): Policy {
  const parsed = parsePolicy([{ file: "a.yaml", text: policyOf(...services) }]);
  if (parsed.kind === "problems") throw new Error(parsed.problems[0]?.message);
  return servicesPolicy(parsed.services);
}

function service(name: string, signal: string, more = ""): string {
  return `{name: ${name}, admission: {}, concurrency: {law: signal, signal: {${signal}}${more}}}`;
}

/** Sources of a policy that a test changes, over a connection in its hand. */
class SourcesRig {
  readonly clock = new FakeClock();
  readonly connection = new FakeConnection();
  readonly reported: [string, SignalUpdate["rest"]][] = [];
  readonly lines: (LogEvent & { level: string })[] = [];
  readonly sources: SignalSources;
  #policy: Policy;
  #listener: () => void = () => {};

  constructor(...services: readonly string[]) {
    this.#policy = parse(...services);
    this.connection.answer = { kind: "reply", reply: Buffer.from("n1:7") };
    const note =
      (level: string) =>
      (event: LogEvent): void => {
        this.lines.push({ ...event, level });
      };
    this.sources = new SignalSources({
      clock: this.clock,
      random: new FakeRandom(),
      logger: {
        debug: note("debug"),
        info: note("info"),
        warn: note("warn"),
        error: note("error"),
      },
      policies: {
        current: () => this.#policy,
        onLoaded: (listener) => {
          this.#listener = listener;
          return () => {
            this.#listener = () => {};
          };
        },
      },
      choice: {},
      store: new RedisNumbers(this.connection),
      onUpdate: (name, { rest }) => this.reported.push([name, rest]),
    });
  }

  load(...services: readonly string[]): void {
    this.#policy = parse(...services);
    this.#listener();
  }

  get names(): readonly string[] {
    return [...this.sources.polled()].map((one) => one.service);
  }
}

describe("SignalSources", () => {
  it("ask for what the active policy names, and for nobody who lets everybody in", async () => {
    const rig = new SourcesRig(
      service("a", "fixed: 5"),
      service("b", "redis: lag"),
      service("c", "redis: lag, preset: off"),
      "{name: d, admission: {}}",
    );
    await rig.sources.settled();
    expect(rig.reported).toEqual([
      ["a", 5],
      ["b", 7],
    ]);
    expect(rig.names).toEqual(["a", "b"]);
  });

  it("go on with a source that a new policy leaves as it was, and with no other", async () => {
    const per = ", per: {header: x-a, names: [k]}";
    const rig = new SourcesRig(service("a", "fixed: 5", per), service("b", "redis: lag"));
    await rig.sources.settled();
    const [before] = rig.sources.polled();
    rig.load(
      service("a", "fixed: 5, target: 9, thresholds: [{name: k, target: 1, critical: 2}]", per),
      service("b", "redis: other"),
      service("c", "fixed: 1"),
    );
    await rig.sources.settled();
    const [after] = rig.sources.polled();
    expect(after?.poller).toBe(before?.poller);
    expect(rig.names).toEqual(["a", "b", "c"]);
    expect(rig.connection.calls.map(({ keys }) => keys)).toEqual([["lag"], ["other"]]);
    rig.load(service("c", "fixed: 1"));
    await rig.clock.advanceAsync(60_000, 1_000);
    expect(rig.names).toEqual(["c"]);
    expect(rig.connection.calls).toHaveLength(2);
  });

  it("let no source that hangs delay another, nor the start for long", async () => {
    const rig = new SourcesRig(service("b", "fixed: 5"));
    rig.connection.answer = { kind: "hangs" };
    rig.load(service("slow", "redis: lag, every: 20s, timeout: 15s"), service("b", "fixed: 5"));
    let isSettled = false;
    const settled = rig.sources.settled().then(() => {
      isSettled = true;
    });
    await settlePromises();
    expect([rig.reported, isSettled]).toEqual([[["b", 5]], false]);
    await rig.clock.advanceAsync(firstAnswerMsMax);
    await settled;
    await rig.clock.advanceAsync(5_000, 500);
    expect(rig.reported).toEqual([
      ["b", 5],
      ["b", 5],
    ]);
  });

  it("say at change that a source fails, that it is missed, and that it is back", async () => {
    const rig = new SourcesRig(service("b", "redis: secret-key, whenMissing: min"));
    rig.connection.answer = { kind: "fails", code: "STORE_UNAVAILABLE" };
    await rig.clock.advanceAsync(60_000, 1_000);
    rig.connection.answer = { kind: "reply", reply: Buffer.from("n1:7") };
    await rig.clock.advanceAsync(10_000, 1_000);
    const common = { service: "b", source: "redis" };
    expect(rig.lines).toMatchObject([
      { level: "warn", event: "signalFailing", ...common, code: "STORE_UNAVAILABLE" },
      { level: "warn", event: "signalMissing", ...common, whenMissing: "min" },
      { level: "info", event: "signalFound", ...common },
    ]);
    expect(JSON.stringify(rig.lines)).not.toContain("secret");
    expect(rig.reported.slice(0, 3)).toEqual([
      ["b", 7],
      ["b", "min"],
      ["b", 7],
    ]);
  });

  it("ask nobody once they are closed", async () => {
    const rig = new SourcesRig(service("b", "redis: lag"));
    await rig.sources.settled();
    rig.sources.close();
    rig.load(service("c", "redis: lag"));
    await rig.clock.advanceAsync(60_000, 1_000);
    expect([rig.connection.calls.length, rig.clock.timerCount]).toEqual([1, 0]);
  });
});
