import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, describe, expect, it } from "vitest";
import {
  type DeleteOverrideRequest,
  type ListOverridesRequest,
  type Override,
  OverrideSchema,
  type ResetKeyRequest,
  type SetOverrideRequest,
} from "../../../../src/gen/headgate/admin/v1/admin_pb.js";
import { AdminServer } from "../../../support/admin-server.js";
import { captureCli } from "../../../support/cli.js";
import { FakeTerminal } from "../../../support/fake-terminal.js";

let server: AdminServer | undefined;

afterEach(async () => {
  await server?.close();
  server = undefined;
});

/** An admin port that keeps overrides as the real one does: by id, with versions. */
class OverridePort {
  readonly overrides = new Map<string, Override>();
  readonly sets: SetOverrideRequest[] = [];
  readonly deletes: DeleteOverrideRequest[] = [];
  readonly resets: ResetKeyRequest[] = [];
  readonly lists: ListOverridesRequest[] = [];

  async start(): Promise<void> {
    server = await AdminServer.start({
      limits: {
        listOverrides: (request) => {
          this.lists.push(request);
          const { pageToken } = request;
          // One a page.
          const all = [...this.overrides.values()];
          const at = Number(pageToken);
          const next = at + 1 < all.length ? String(at + 1) : "";
          return { overrides: all.slice(at, at + 1), nextPageToken: next };
        },
        setOverride: (request) => {
          this.sets.push(request);
          const wanted = create(OverrideSchema, request.override);
          const version = this.overrides.get(wanted.id)?.version ?? 0n;
          if (version !== request.expectedVersion) {
            throw new ConnectError(`the override has version ${version} now`, Code.Aborted);
          }
          const override = { ...wanted, author: "ann", version: version + 1n };
          this.overrides.set(wanted.id, override);
          return { override };
        },
        deleteOverride: (request) => {
          this.deletes.push(request);
          this.overrides.delete(request.id);
          return {};
        },
        resetKey: (request) => {
          this.resets.push(request);
          return { resetCount: 2, carriedLimitsLeft: request.key?.limitName !== "pace" };
        },
      },
    });
  }

  run(words: readonly string[], terminal = new FakeTerminal()) {
    const env = { NO_COLOR: "1", HEADGATE_ADMIN_URL: server?.url };
    return captureCli(["keys", ...words], { env, terminal });
  }
}

async function start(): Promise<OverridePort> {
  const port = new OverridePort();
  await port.start();
  return port;
}

const ann = ["shop", "plan=free,user=ann"] as const;
const why = ["--reason", "launch week"] as const;

describe("headgate keys override", () => {
  it("gives a multiplier, and says what holds now", async () => {
    const port = await start();
    const run = await port.run(["override", ...ann, "--times", "2.5x", ...why]);
    expect(run.code).toBe(0);
    expect(run.out).toContain("shop plan=free,user=ann");
    expect(run.out).toContain("times 2.5 until it is removed, by ann: launch week");
    expect(port.sets[0]).toMatchObject({
      expectedVersion: 0n,
      override: {
        domain: "shop",
        entries: [
          { key: "plan", value: "free" },
          { key: "user", value: "ann" },
        ],
        isPrefix: false,
        effect: { case: "multiplier", value: 2.5 },
        reason: "launch week",
      },
    });
    expect(port.sets[0]?.override?.id).toMatch(/^o-[0-9a-f]{16}$/);
  });

  it("gives an amount below a prefix until a time", async () => {
    const port = await start();
    const words = ["--prefix", "--limit", "pace", "--hits", "50", "--burst", "80"];
    const end = ["--until", "2026-11-27T12:00:00Z"];
    const { code, out } = await port.run([
      "override",
      "shop",
      "plan=free",
      ...words,
      ...end,
      ...why,
    ]);
    expect(code).toBe(0);
    expect(out).toContain("shop plan=free, and all below (pace)");
    expect(out).toContain("50 hits, burst 80 until 2026-11-27T12:00:00Z");
    expect(port.sets[0]?.override).toMatchObject({
      isPrefix: true,
      limitName: "pace",
      effect: { case: "amount", value: { hits: 50n, burst: 80n } },
      expiresAt: { seconds: 1_795_780_800n },
    });
  });

  it("replaces only the one whose version was named", async () => {
    const port = await start();
    await port.run(["freeze", "shop", "user=bob", ...why]);
    await port.run(["override", ...ann, "--times", "2x", ...why]);
    const again = ["override", ...ann, "--times", "3x", ...why];
    const blind = await port.run(again);
    expect(blind.code).toBe(1);
    expect(blind.err).toContain("times 2 until it is removed, by ann: launch week");
    expect(blind.err).toContain("--expected-version 1");
    expect((await port.run([...again, "--expected-version", "1"])).code).toBe(0);
    const late = await port.run([...again, "--expected-version", "1"]);
    expect(late.code).toBe(1);
    expect(late.err).toContain("has version 2 now");
    expect(port.overrides.size).toBe(2);
  });

  it("gives the same keys the same id, so that of two givers one learns of the other", async () => {
    const port = await start();
    await port.run(["override", ...ann, "--times", "2x", ...why]);
    const id = port.sets[0]?.override?.id;
    port.overrides.clear();
    await port.run(["freeze", ...ann, ...why]);
    await port.run(["freeze", ...ann, "--prefix", ...why]);
    expect(port.sets[1]?.override?.id).toBe(id);
    expect(port.sets[2]?.override?.id).not.toBe(id);
  });

  it("is taken away again", async () => {
    const port = await start();
    await port.run(["override", ...ann, "--times", "2x", ...why]);
    const { code, out } = await port.run(["override", ...ann, "--remove", "--reason", "over"]);
    expect([code, out]).toEqual([
      0,
      "Removed from shop plan=free,user=ann: the policy's own limits apply again.",
    ]);
    expect(port.deletes).toMatchObject([{ domain: "shop", expectedVersion: 1n, reason: "over" }]);
    const none = await port.run(["override", ...ann, "--remove", ...why]);
    expect(none.code).toBe(1);
    expect(none.err).toContain("There is no override for shop plan=free,user=ann");
  });

  it.each([
    [[], "--hits 200, or --times 2x"],
    [["--hits", "1", "--times", "2x"], "--hits 200, or --times 2x"],
    [["--times", "2x", "--burst", "3"], "--burst needs --hits"],
    [["--times", "0"], "--times must be above 0"],
    [["--times", "1000001"], "at most 1000000"],
    [["--hits", "-1"], "--hits must be a whole number"],
    [["--hits", "4294967296"], "from 1 to 4294967295"],
    [["--hits", "1", "--for", "3 days"], "--for must be a duration, such as 3d"],
    [["--hits", "1", "--until", "someday"], "--until must be a time"],
    [["--hits", "1", "--until", "2026-11-27T12:00:00Z", "--for", "3d"], "use either"],
    [["--hits", "1", "--expected-version", "x"], "--expected-version must be a version"],
  ])("answers %o with 2, and asks nobody", async (words, hint) => {
    const port = await start();
    const { code, err } = await port.run(["override", ...ann, ...words, ...why]);
    expect(code).toBe(2);
    expect(err).toContain(hint);
    expect(port.sets).toEqual([]);
  });

  it("needs a reason", async () => {
    const { code, err } = await (await start()).run(["override", ...ann, "--times", "2x"]);
    expect(code).toBe(2);
    expect(err).toContain("--reason");
  });
});

describe("confirm()", () => {
  it.each([
    ["y", 0, 1],
    ["YES", 0, 1],
    ["n", 1, 0],
    ["", 1, 0],
  ])("takes %o as an answer", async (answer, exitCode, setCount) => {
    const port = await start();
    const terminal = new FakeTerminal({ answers: [answer] });
    const { code, err } = await port.run(["freeze", ...ann, ...why], terminal);
    expect(code).toBe(exitCode);
    expect(terminal.questions).toEqual([
      "Give shop plan=free,user=ann: frozen until it is removed? [y/N] ",
    ]);
    expect(port.sets).toHaveLength(setCount);
    if (exitCode === 1) expect(err).toContain("Nothing was changed.");
  });

  it("is not asked for with --yes", async () => {
    const port = await start();
    const terminal = new FakeTerminal({ answers: ["n"] });
    expect((await port.run(["freeze", ...ann, ...why, "--yes"], terminal)).code).toBe(0);
    expect(terminal.questions).toEqual([]);
  });
});

describe("headgate keys unfreeze", () => {
  it("ends a freeze, and nothing else", async () => {
    const port = await start();
    await port.run(["override", ...ann, "--times", "2x", ...why]);
    const other = await port.run(["unfreeze", ...ann, ...why]);
    expect(other.code).toBe(1);
    expect(other.err).toContain("This is not a freeze");
    await port.run(["freeze", "shop", "user=bob", ...why]);
    expect((await port.run(["unfreeze", "shop", "user=bob", ...why])).code).toBe(0);
    expect([...port.overrides.values()].map(({ effect }) => effect.case)).toEqual(["multiplier"]);
  });
});

describe("headgate keys overrides", () => {
  it("asks for those that are wanted, page by page, and says how many there are", async () => {
    const port = await start();
    await port.run(["freeze", "shop", "plan=free,user=bob", ...why]);
    await port.run(["override", ...ann, "--times", "2x", ...why]);
    port.lists.splice(0);
    const words = ["shop", "--begins-with", "plan=free", "--rule", "plan.user", "--frozen"];
    const { code, out } = await port.run(["overrides", ...words]);
    expect(code).toBe(0);
    expect(out).toContain("shop plan=free,user=bob");
    expect(out.trimEnd().split("\n").at(-1)).toBe("2 overrides");
    const beginsWith = [{ key: "plan", value: "free" }];
    const wanted = { domain: "shop", beginsWith, ruleLabel: "plan.user", frozenOnly: true };
    expect(port.lists).toMatchObject([
      { ...wanted, pageToken: "" },
      { ...wanted, pageToken: "1" },
    ]);
  });

  it("says of none that there are none, or none of those that were wanted", async () => {
    const port = await start();
    expect((await port.run(["overrides"])).out).toBe("There are no overrides.");
    const narrow = await port.run(["overrides", "--frozen"]);
    expect(narrow.out).toBe("There are no such overrides.");
    const wrong = await port.run(["overrides", "--begins-with", "=free"]);
    expect(wrong.code).toBe(2);
    expect(wrong.err).toContain("has an entry without a key");
  });

  it("looks for the one that is given or taken away among those that begin so", async () => {
    const port = await start();
    await port.run(["override", ...ann, "--times", "2x", ...why]);
    expect(port.lists[0]).toMatchObject({
      domain: "shop",
      beginsWith: [{ key: "plan" }, { key: "user", value: "ann" }],
    });
  });
});

describe("headgate keys reset", () => {
  it("empties a key after a question", async () => {
    const port = await start();
    const terminal = new FakeTerminal({ answers: ["yes"] });
    const { code, out } = await port.run(["reset", ...ann, "--limit", "pace", ...why], terminal);
    expect([code, out]).toEqual([0, "Emptied 2 buckets."]);
    expect(terminal.questions).toEqual(["Reset shop plan=free,user=ann? [y/N] "]);
    expect(port.resets).toMatchObject([{ key: { limitName: "pace" }, reason: "launch week" }]);
    expect((await port.run(["reset", ...ann, "--yes", ...why])).out).toBe(
      "Emptied 2 buckets.\nLimits that requests carry themselves are not changed.",
    );
  });
});
