import { beforeEach, describe, expect, it } from "vitest";
import { sha256 } from "../../../../src/app/base/sha256.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import type { DeciderParts } from "../../../../src/decide/rate-limit/decider.js";
import { RespCounts } from "../../../../src/rpc/resp/resp-counts.js";
import { createRespSession, type RespSessionParts } from "../../../../src/rpc/resp/resp-session.js";
import { parseThrottle } from "../../../../src/rpc/resp/throttle-command.js";
import { MemoryLimitStore } from "../../../../src/store/memory.js";
import { createTestDecider } from "../../../support/decider.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { FaultyStore } from "../../../support/faulty-store.js";
import { noSwitches } from "../../../support/switches.js";

let clock: FakeClock;
let counts: RespCounts;

beforeEach(() => {
  clock = new FakeClock();
  counts = new RespCounts();
});

type Say = (...parts: readonly (string | Buffer)[]) => Promise<string>;

/** A session's replies to commands, each with its lines parted by `|`. */
function startSession(
  parts: Partial<RespSessionParts> = {},
  deciderParts: Partial<DeciderParts> = {},
): Say {
  const policies = { current: () => undefined };
  const counters = new DecisionCounters();
  const answer = createRespSession({
    decider: createTestDecider({ clock, counters, policies, ...deciderParts }),
    isShadow: false,
    digest: sha256,
    isPassword: undefined,
    counts,
    version: "1.2.3",
    onBug: (thrown) => {
      throw thrown;
    },
    ...parts,
  });
  return async (...words) => {
    const replied = answer(words.map((word) => Buffer.from(word)));
    await settlePromises();
    clock.runTurns();
    const { text, isLast } = await replied;
    return text.trimEnd().replaceAll("\r\n", "|") + (isLast ? " END" : "");
  };
}

const isPassword = (said: Buffer): boolean => said.toString() === "pässword";

function countOf(command: string, result: string): number {
  let found = 0;
  counts.read((count, counted, as) => {
    if (counted === command && as === result) found = count;
  });
  return found;
}

describe("CL.THROTTLE", () => {
  it("answers the five integers of redis-cell, by what the key has used", async () => {
    const say = startSession();
    expect(await say("CL.THROTTLE", "user", "1", "30", "60")).toBe("*5|:0|:2|:1|:-1|:2");
    expect(await say("cl.throttle", "user", "1", "30", "60", "1")).toBe("*5|:0|:2|:0|:-1|:4");
    expect(await say("Cl.Throttle", "user", "1", "30", "60")).toBe("*5|:1|:2|:0|:2|:4");
    expect(await say("CL.THROTTLE", "other", "1", "30", "60")).toBe("*5|:0|:2|:1|:-1|:2");
    clock.advance(2_000);
    expect(await say("CL.THROTTLE", "user", "1", "30", "60")).toBe("*5|:0|:2|:0|:-1|:4");
    expect([countOf("throttle", "allowed"), countOf("throttle", "limited")]).toEqual([4, 1]);
  });

  it("tells keys apart by their bytes, whatever they are", async () => {
    const say = startSession();
    const long = "a".repeat(300);
    const keys = [
      "a",
      "",
      "\ufeffa",
      "\0",
      "\ufffd",
      Buffer.of(0xff),
      Buffer.of(0xfe),
      long,
      `${long}b`,
      sha256(long),
      `#${sha256(long)}`,
    ];
    for (const key of keys) {
      expect([key, await say("CL.THROTTLE", key, "0", "1", "60")]).toEqual([
        key,
        "*5|:0|:1|:0|:-1|:60",
      ]);
    }
    for (const key of keys) {
      expect([key, await say("CL.THROTTLE", key, "0", "1", "60")]).toEqual([
        key,
        "*5|:1|:1|:0|:60|:60",
      ]);
    }
  });

  it.each([
    [["k", "-1", "1", "1"], "ERR max_burst must be an integer from 0 to 4294967294"],
    [["k", "4294967295", "1", "1"], "ERR max_burst must be an integer from 0 to 4294967294"],
    [["k", "1", "0", "1"], "ERR count must be an integer from 1 to 4294967295"],
    [["k", "1", "NaN", "1"], "ERR count must be an integer from 1 to 4294967295"],
    [["k", "1", "1.5", "1"], "ERR count must be an integer from 1 to 4294967295"],
    [["k", "1", "1e3", "1"], "ERR count must be an integer from 1 to 4294967295"],
    [["k", "1", "", "1"], "ERR count must be an integer from 1 to 4294967295"],
    [["k", "1", " 1", "1"], "ERR count must be an integer from 1 to 4294967295"],
    [["k", "1", "01", "1"], "ERR count must be an integer from 1 to 4294967295"],
    [["k", "1", "1", "0"], "ERR period must be an integer from 1 to 315360000"],
    [["k", "1", "1", "9".repeat(400)], "ERR period must be an integer from 1 to 315360000"],
    [["k", "1", "1", "1", "-1"], "ERR quantity must be an integer from 0 to 4294967295"],
    [["k", "1", "1", "1", "Infinity"], "ERR quantity must be an integer from 0 to 4294967295"],
    [
      ["k", "1", "1", "315360000"],
      "ERR max_burst + 1 at count per period must drain within ten years",
    ],
    [
      ["k", "1", "1"],
      "ERR wrong number of arguments: CL.THROTTLE key max_burst count period [quantity]",
    ],
    [
      ["k", "1", "1", "1", "1", "1"],
      "ERR wrong number of arguments: CL.THROTTLE key max_burst count period [quantity]",
    ],
    [[], "ERR wrong number of arguments: CL.THROTTLE key max_burst count period [quantity]"],
  ])("refuses %j", async (words, error) => {
    expect(await startSession()("CL.THROTTLE", ...words)).toBe(`-${error}`);
    expect(countOf("throttle", "error")).toBe(1);
  });

  it("keeps no long key as it is", () => {
    const numbers = ["1", "1", "1"].map((number) => Buffer.from(number));
    const parsed = parseThrottle([Buffer.from(""), Buffer.alloc(257, "a"), ...numbers], sha256);
    if (typeof parsed === "string") throw new Error(parsed);
    expect(parsed.key).toBe(`2t#${sha256("a".repeat(257))}`);
  });

  it("takes the largest numbers", async () => {
    const say = startSession();
    const max = "4294967295";
    expect(await say("CL.THROTTLE", "k", "4294967294", max, "1", max)).toBe(
      `*5|:0|:${max}|:0|:-1|:1`,
    );
    expect(await say("CL.THROTTLE", "k", "0", "1", "315360000")).toMatch(/^\*5\|:1\|:1\|:0\|/);
  });

  it("limits nobody in shadow mode", async () => {
    const say = startSession({ isShadow: true });
    await say("CL.THROTTLE", "k", "0", "1", "60");
    expect(await say("CL.THROTTLE", "k", "0", "1", "60")).toBe("*5|:0|:1|:0|:-1|:60");
  });

  it.each([
    ["local", "*5|:0|:4|:1|:-1|:20"],
    ["allow", "*5|:0|:4|:4|:-1|:0"],
    ["deny", "*5|:1|:4|:0|:1|:1"],
    ["error", "-ERR STORE_UNAVAILABLE The store is unavailable."],
  ] as const)("answers by the failure mode %s when the store fails", async (mode, reply) => {
    const store = new FaultyStore(new MemoryLimitStore({ clock }), clock);
    store.fault = { kind: "reject", code: "STORE_UNAVAILABLE" };
    const switches = { ...noSwitches, defaults: { ...noSwitches.defaults, onStoreFailure: mode } };
    const say = startSession({}, { store, switches, replicaCount: () => 2 });
    expect(await say("CL.THROTTLE", "k", "3", "6", "60")).toBe(reply);
  });
});

describe("a session", () => {
  it.each([
    [["PING"], "+PONG"],
    [["ping", "hello"], "$5|hello"],
    [["SELECT", "0"], "+OK"],
    [["SELECT", "1"], "-ERR DB index is out of range; there is only 0"],
    [["CLIENT", "SETINFO", "LIB-NAME", "x"], "+OK"],
    [["client", "setname", "x"], "+OK"],
    [["CLIENT", "KILL", "x"], "-ERR unknown subcommand; CLIENT has SETINFO and SETNAME"],
    [["COMMAND", "COUNT"], ":9"],
    [["COMMAND", "DOCS"], "*0"],
    [["COMMAND"], "*1|*6|$11|cl.throttle|:-5|*2|+write|+fast|:1|:1|:1"],
    [["INFO"], "$45|# Server|headgate_version:1.2.3|loading:0"],
    [["QUIT"], "+OK END"],
    [["AUTH", "x"], "-ERR AUTH called, but no password is set"],
    [["HELLO", "4"], "-NOPROTO unsupported protocol version"],
    [["HELLO", "3", "SETNAME"], "-ERR syntax error in HELLO"],
    [["HELLO", "3", "NOISE", "x"], "-ERR syntax error in HELLO"],
  ])("answers %j", async (words, reply) => {
    expect(await startSession()(...words)).toBe(reply);
  });

  it.each([["GET", "secret"], ["EVAL", "return 1"], ["x".repeat(10_000)], [""]])(
    "answers %s with what there is, and nothing of it",
    async (...words) => {
      expect(await startSession()(...words)).toBe(
        "-ERR unknown command; this is Headgate, which answers CL.THROTTLE, PING, HELLO, AUTH, " +
          "CLIENT, COMMAND, INFO, SELECT 0 and QUIT",
      );
      expect(countOf("other", "error")).toBe(1);
    },
  );

  it("speaks version 3 to those who ask for it", async () => {
    const say = startSession();
    const fields = "$6|server|$8|headgate|$7|version|$5|1.2.3|$5|proto|:";
    expect(await say("HELLO")).toContain(`*14|${fields}2`);
    expect(await say("HELLO", "3", "SETNAME", "x")).toContain(`%7|${fields}3`);
    expect(await say("COMMAND", "DOCS")).toBe("%0");
    expect(await say("HELLO")).toContain(`%7|${fields}3`);
    expect(await say("HELLO", "2")).toContain(`*14|${fields}2`);
  });

  it("asks for the password first", async () => {
    const say = startSession({ isPassword });
    for (const words of [["CL.THROTTLE", "k", "0", "1", "60"], ["PING"], ["HELLO", "3"], ["GET"]]) {
      expect(await say(...words)).toBe("-NOAUTH Authentication required.");
    }
    expect(await say("AUTH", "pässword")).toBe("+OK");
    expect(await say("PING")).toBe("+PONG");
  });

  it.each([
    [["AUTH", "default", "pässword"], "+OK"],
    [["HELLO", "2", "AUTH", "default", "pässword", "SETNAME", "x"], "*14"],
    [["AUTH", "wrong"], "-WRONGPASS invalid username-password pair END"],
    [["AUTH", ""], "-WRONGPASS invalid username-password pair END"],
    [["AUTH", "root", "pässword"], "-WRONGPASS invalid username-password pair END"],
    [["HELLO", "3", "AUTH", "default", "x"], "-WRONGPASS invalid username-password pair END"],
    [["AUTH"], "-ERR wrong number of arguments: AUTH [username] password"],
    [["AUTH", "a", "b", "c"], "-ERR wrong number of arguments: AUTH [username] password"],
    [["HELLO", "3", "AUTH", "default"], "-ERR syntax error in HELLO"],
  ])("where a password is set, answers %j", async (words, reply) => {
    expect((await startSession({ isPassword })(...words)).split("|")[0]).toBe(reply);
  });
});
