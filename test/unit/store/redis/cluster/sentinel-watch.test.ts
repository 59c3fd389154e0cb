import { describe, expect, it } from "vitest";
import { type ErrorCode, ServiceError } from "../../../../../src/core/base/errors.js";
import {
  askMsMax,
  calmLookMs,
  doubtLookMs,
  findMsMax,
  SentinelWatch,
} from "../../../../../src/store/redis/cluster/sentinel-watch.js";
import { FakeClock } from "../../../../support/fake-clock.js";

/** What one sentinel says at the moment. */
type Says =
  | { readonly kind: "primary"; readonly port: number; readonly epoch?: number }
  | { readonly kind: "unknownName" }
  | { readonly kind: "nonsense" }
  | { readonly kind: "fails"; readonly code: ErrorCode };

interface Rig {
  readonly clock: FakeClock;
  readonly watch: SentinelWatch;
  /** May be changed at any time. */
  readonly says: Says[];
  /** When the first sentinel was asked. */
  readonly looksMs: number[];
  readonly moves: { count: number };
}

function createRig(...says: Says[]): Rig {
  const clock = new FakeClock();
  const looksMs: number[] = [];
  const moves = { count: 0 };
  const ask = async (index: number, words: readonly string[], deadlineMs: number) => {
    expect(deadlineMs - clock.monotonicMs()).toBe(askMsMax);
    const [question, name] = words;
    expect(name).toBe("gate");
    if (index === 0 && question === "master") looksMs.push(clock.monotonicMs());
    const said = says[index];
    if (said?.kind === "fails") throw new ServiceError(said.code);
    if (said?.kind !== "primary") {
      const answer = said?.kind === "nonsense" ? [Buffer.from("host")] : undefined;
      return question === "master" ? undefined : answer;
    }
    if (question === "get-master-addr-by-name") {
      return [Buffer.from("host"), Buffer.from(String(said.port))];
    }
    if (said.epoch === undefined) throw new ServiceError("STORE_ACCESS_DENIED");
    return ["name", "gate", "config-epoch", String(said.epoch)].map((text) => Buffer.from(text));
  };
  const watch = new SentinelWatch({
    primaryName: "gate",
    sentinels: says.map((_, index) => (words, deadlineMs) => ask(index, words, deadlineMs)),
    clock,
    onMoved: () => {
      moves.count += 1;
    },
  });
  return { clock, watch, says, looksMs, moves };
}

/** The port that it names, or the code of why it names none. */
async function found({ clock, watch }: Rig, withinMs = 0): Promise<number | string> {
  const outcome = watch.find().then(
    ({ port }) => port,
    (error: ServiceError) => `${error.code} ${error.message}`,
  );
  await clock.advanceAsync(withinMs, 5);
  return outcome;
}

describe("SentinelWatch", () => {
  it.each<[string, readonly Says[], number]>([
    ["the only one", [{ kind: "primary", port: 1, epoch: 7 }], 1],
    [
      "the highest epoch, not the most voices",
      [
        { kind: "primary", port: 1, epoch: 9 },
        { kind: "primary", port: 1, epoch: 9 },
        { kind: "primary", port: 2, epoch: 10 },
      ],
      2,
    ],
    [
      "of equal epochs the first",
      [
        { kind: "primary", port: 3, epoch: 1 },
        { kind: "primary", port: 2, epoch: 1 },
      ],
      3,
    ],
    [
      "an address whose epoch we may not ask, after all others",
      [
        { kind: "primary", port: 3 },
        { kind: "primary", port: 2, epoch: 1 },
      ],
      2,
    ],
    ["an address alone, where no epoch may be asked", [{ kind: "primary", port: 3 }], 3],
    [
      "who answers, among those who do not",
      [
        { kind: "fails", code: "STORE_UNAVAILABLE" },
        { kind: "unknownName" },
        { kind: "primary", port: 4, epoch: 0 },
      ],
      4,
    ],
  ])("believes %s", async (_, says, port) => {
    expect(await found(createRig(...says), 5)).toBe(port);
  });

  it.each<[string, readonly Says[], RegExp]>([
    [
      "a refusal before a sentinel that is away",
      [
        { kind: "fails", code: "STORE_UNAVAILABLE" },
        { kind: "fails", code: "STORE_UNAUTHENTICATED" },
      ],
      /^STORE_UNAUTHENTICATED .*REDIS_SENTINEL_AUTH/,
    ],
    ["an unknown name", [{ kind: "unknownName" }], /^STORE_UNAVAILABLE .*no primary of this name/],
    ["an answer that is none", [{ kind: "nonsense" }], /^STORE_PROTOCOL/],
    // A call to the store did not time out: none was made.
    ["a slow sentinel", [{ kind: "fails", code: "STORE_TIMEOUT" }], /^STORE_UNAVAILABLE/],
  ])("says why it knows nothing: %s", async (_, says, words) => {
    expect(await found(createRig(...says), findMsMax)).toMatch(words);
  });

  it("lets the first who ask wait for an answer, and no longer than it says", async () => {
    const rig = createRig({ kind: "fails", code: "STORE_UNAVAILABLE" });
    const early = found(rig, findMsMax - 50);
    rig.says[0] = { kind: "primary", port: 1, epoch: 1 };
    await rig.clock.advanceAsync(doubtLookMs, 5);
    expect(await early).toBe(1);
    expect(rig.moves.count).toBe(0);
  });

  it("looks once a second while all is well, and tells of a move", async () => {
    const rig = createRig({ kind: "primary", port: 1, epoch: 1 });
    await rig.clock.advanceAsync(3 * calmLookMs + 500, 5);
    const distances = rig.looksMs.slice(1).map((atMs, i) => atMs - (rig.looksMs[i] ?? 0));
    expect(distances).toEqual([calmLookMs, calmLookMs, calmLookMs]);
    rig.says[0] = { kind: "primary", port: 2, epoch: 2 };
    await rig.clock.advanceAsync(calmLookMs, 5);
    expect(rig.moves.count).toBe(1);
    expect(await found(rig)).toBe(2);
  });

  it("looks at once when in doubt, and never more often than it says", async () => {
    const rig = createRig({ kind: "primary", port: 1, epoch: 1 });
    await rig.clock.advanceAsync(500, 5);
    rig.looksMs.length = 0;
    for (let i = 0; i < 100; i += 1) {
      rig.watch.doubt();
      await rig.clock.advanceAsync(10, 5);
    }
    expect(rig.looksMs.length).toBeGreaterThan(5);
    expect(rig.looksMs.length).toBeLessThanOrEqual(1 + 1_000 / doubtLookMs);
  });

  it("keeps the last address while no sentinel answers, and goes on looking", async () => {
    const rig = createRig({ kind: "primary", port: 1, epoch: 1 });
    await rig.clock.advanceAsync(10, 5);
    rig.says[0] = { kind: "fails", code: "STORE_UNAVAILABLE" };
    await rig.clock.advanceAsync(3 * calmLookMs, 5);
    expect(await found(rig)).toBe(1);
    rig.says[0] = { kind: "primary", port: 5, epoch: 1 };
    await rig.clock.advanceAsync(2 * doubtLookMs, 5);
    expect(await found(rig)).toBe(5);
  });

  it("ends its looks and its waits at close()", async () => {
    const rig = createRig({ kind: "fails", code: "STORE_UNAVAILABLE" });
    await rig.clock.advanceAsync(doubtLookMs, 5);
    const waiting = found(rig);
    rig.watch.close();
    expect(await waiting).toMatch(/^STORE_UNAVAILABLE/);
    expect(await found(rig)).toMatch(/^STORE_UNAVAILABLE/);
    await rig.clock.advanceAsync(calmLookMs, 5);
    expect(rig.clock.timerCount).toBe(0);
  });
});
