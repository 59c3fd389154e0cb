import { describe, expect, it } from "vitest";
import type { Logger } from "../../../../src/app/base/logger.js";
import {
  journalConnectionsMax,
  newsAfterMs,
  RedisJournal,
} from "../../../../src/app/store/redis-journal.js";
import type { ErrorCode } from "../../../../src/core/base/errors.js";
import type { RedisEvent, RedisPeer } from "../../../../src/store/redis/redis-connection.js";
import { FakeClock } from "../../../support/fake-clock.js";

interface Line {
  readonly level: string;
  readonly fields: object;
}

function createJournal() {
  const lines: Line[] = [];
  const write = (level: string) => (fields: object) => void lines.push({ level, fields });
  const logger: Logger = {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
  };
  const clock = new FakeClock();
  const journal = new RedisJournal({ logger, clock });
  return { journal, lines, clock };
}

function failed(code: ErrorCode, role: RedisPeer = "decision"): RedisEvent {
  return { kind: "redisFailed", role, code, message: "words" };
}

const connected: RedisEvent = { kind: "redisConnected", role: "decision" };
const lost: RedisEvent = { kind: "redisLost", role: "decision" };
const retrying: RedisEvent = { kind: "redisRetrying", role: "decision", attempt: 1, delayMs: 5 };

describe("RedisJournal", () => {
  it("counts the connections for decisions, those that are open and all that ever were", () => {
    const { journal } = createJournal();
    journal.note(connected, "a:1");
    journal.note(connected, "b:1");
    journal.note({ ...connected, role: "sentinel" }, "a:1");
    journal.note(lost, "a:1");
    journal.note(retrying, "a:1");
    expect(journal.counts).toEqual({ activeCount: 1, openedCount: 2 });
    journal.note(connected, "a:1");
    expect(journal.counts).toEqual({ activeCount: 2, openedCount: 3 });
  });

  it("warns once of each cause while an outage lasts, and of the same again after it", () => {
    const { journal, lines, clock } = createJournal();
    const outage = [
      lost,
      retrying,
      failed("STORE_UNAVAILABLE"),
      failed("STORE_TLS_FAILED"),
      failed("STORE_UNAVAILABLE"),
      failed("STORE_TLS_FAILED"),
      lost,
    ];
    for (const event of [...outage, connected]) journal.note(event, "a:1");
    clock.advance(newsAfterMs);
    for (const event of outage) journal.note(event, "a:1");
    const levels = ["warn", "debug", "warn", "warn", "debug", "debug", "debug"];
    expect(lines.map(({ level }) => level)).toEqual([...levels, "info", ...levels]);
  });

  it("says nothing new of a connection that comes and goes for the same cause", () => {
    const { journal, lines, clock } = createJournal();
    const flap = [connected, failed("STORE_READ_ONLY"), lost, retrying];
    for (let i = 0; i < 20; i += 1) {
      for (const event of flap) journal.note(event, "a:1");
      clock.advance(newsAfterMs / 20);
    }
    expect(lines.slice(0, 2).map(({ level }) => level)).toEqual(["info", "warn"]);
    expect(new Set(lines.slice(2).map(({ level }) => level))).toEqual(new Set(["debug"]));
  });

  it("says what to do next, and where", () => {
    const { journal, lines } = createJournal();
    journal.note(failed("STORE_UNAUTHENTICATED"), "a:1");
    expect(lines).toMatchObject([
      {
        fields: {
          event: "redisFailed",
          address: "a:1",
          role: "decision",
          code: "STORE_UNAUTHENTICATED",
          remedy: expect.stringContaining("REDIS_AUTH"),
        },
      },
    ]);
  });

  it("tells connections apart by address and by what they are for", () => {
    const { journal, lines } = createJournal();
    journal.note(failed("STORE_UNAVAILABLE"), "a:1");
    journal.note(failed("STORE_UNAVAILABLE"), "b:1");
    journal.note(failed("STORE_UNAVAILABLE", "sentinel"), "a:1");
    expect(lines.map(({ level }) => level)).toEqual(["warn", "warn", "warn"]);
  });

  it("knows whether any server is left to decide", () => {
    const { journal } = createJournal();
    const states = [];
    for (const [event, address] of [
      [{ kind: "redisConnected", role: "fleet" }, "a:1"],
      [connected, "a:1"],
      [connected, "b:1"],
      [failed("STORE_UNAVAILABLE", "sentinel"), "a:1"],
      [lost, "a:1"],
      [{ kind: "redisClosed", role: "decision" }, "b:1"],
    ] as const) {
      journal.note(event, address);
      states.push(journal.isAway);
    }
    expect(states).toEqual([true, false, false, false, false, true]);
  });

  it("forgets what it said when there is too much of it", () => {
    const { journal, lines } = createJournal();
    for (let i = 0; i < journalConnectionsMax; i += 1) journal.note(lost, `a:${i}`);
    lines.length = 0;
    for (const place of [`a:${journalConnectionsMax}`, `a:${journalConnectionsMax}`, "a:1"])
      journal.note(lost, place);
    expect(lines.map(({ level }) => level)).toEqual(["warn", "debug", "warn"]);
  });
});
