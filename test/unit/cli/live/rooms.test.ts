import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type {
  LetInRequest,
  SetRoomOverrideRequest,
} from "../../../../src/gen/headgate/admin/v1/admin_pb.js";
import { busyScript } from "../../../support/admin-script.js";
import { AdminServer } from "../../../support/admin-server.js";
import { CliFolder, captureCli } from "../../../support/cli.js";
import { FakeTerminal } from "../../../support/fake-terminal.js";
import { waitFor } from "../../../support/wait.js";

let server: AdminServer;
let folder: CliFolder;
const changes: SetRoomOverrideRequest[] = [];
const letIns: LetInRequest[] = [];

beforeAll(async () => {
  const { rooms } = busyScript;
  folder = await CliFolder.create();
  server = await AdminServer.start({
    ...busyScript,
    rooms: {
      ...rooms,
      setRoomOverride: (request) => {
        changes.push(request);
        return rooms.setRoomOverride(request);
      },
      letIn: (request) => {
        letIns.push(request);
        return rooms.letIn();
      },
    },
  });
});

afterAll(async () => {
  await server.close();
  await folder.remove();
});

function run(words: readonly string[], terminal = new FakeTerminal({ columns: 100 })) {
  const env = { NO_COLOR: "1", HEADGATE_ADMIN_URL: server.url };
  return captureCli(["rooms", ...words], { env, terminal });
}

describe("headgate rooms", () => {
  it("has a row for each room, by the replica that heard from the leader last", async () => {
    const { code, out } = await run([]);
    expect([code, out]).toEqual([
      0,
      `\
room  state            waiting      active    join  enter            wait    held
drop  open, pre-queue   12,345  490 of 500  12.5/s  2.4/s  1h15m to 1h37m  90.6 %
drop: the store does not answer 1 replica.`,
    ]);
  });

  it("is drawn again with --watch, until q", async () => {
    const terminal = new FakeTerminal({ columns: 100, rows: 5 });
    const running = run(["--watch", "--every", "100ms"], terminal);
    const drawn = () => terminal.written.split("drop: the store does not answer").length - 1;
    await waitFor("it is drawn twice", async () => drawn() >= 2);
    terminal.type("q");
    expect((await running).code).toBe(0);
    expect(terminal.isHeld).toBe(false);
    const wrong = await run(["--watch", "--every", "1ms"]);
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining("--every")]);
  });

  it("shows one room, and what each replica has counted", async () => {
    const { out } = await run(["show", "drop"]);
    for (const text of [
      /service +checkout/,
      /changes +500 active users, event friday open/,
      /waiting +12,345/,
      /entering +2.4\/s/,
      /leaving +3.0 % of those who wait per minute/,
      /session +3m/,
      /next event +in 10m/,
      /published +1s ago/,
      /ranges that held +90.6 %/,
      /refused by Envoys +25.0 %/,
      /headga +5,000 +900 +3 +0 +0 +0 +1 +silent/,
    ]) {
      expect(out).toMatch(text);
    }
  });

  it("prints counts as numbers, also those of a map", async () => {
    const { out } = await run(["show", "drop", "-o", "json"]);
    expect(JSON.parse(out).rooms[0]).toMatchObject({
      requests: { joined: 5_000, entered: 900 },
      waits: 900,
    });
  });

  it.each([
    [["pause", "drop"], { mode: "paused" }, "drop: paused"],
    [["resume", "drop"], { mode: "open" }, "drop: none, as the policy says"],
    [["drain", "drop"], { mode: "draining" }, "drop: draining"],
    [["set", "drop", "--active-users", "0"], { activeUsers: 0n }, "drop: 0 active users"],
    [
      ["set", "drop", "--new-users-per-minute", "1500"],
      { entriesPerMinute: 1_500n },
      "drop: 1,500 new users per minute",
    ],
    [["open", "drop", "friday"], { openEvent: "friday" }, "drop: event friday open"],
    [["close", "drop"], { openEvent: "" }, "drop: none, as the policy says"],
    [["reset", "drop"], { reset: true }, "drop: none, as the policy says"],
  ] as const)("sends %j", async (words, change, said) => {
    changes.length = 0;
    const { code, out } = await run([...words, "--reason", "because"]);
    expect([code, out]).toEqual([0, said]);
    expect(changes).toMatchObject([{ room: "drop", reason: "because", ...change }]);
    const { activeUsers, entriesPerMinute, openEvent } = changes[0] ?? {};
    const asked = [activeUsers, entriesPerMinute, openEvent].filter((one) => one !== undefined);
    expect(asked).toHaveLength("mode" in change || "reset" in change ? 0 : 1);
  });

  it.each([
    [["set", "drop", "--reason", "x"], 2, "set --active-users, --new-users-per-minute or both"],
    [
      ["set", "drop", "--active-users", "NaN", "--reason", "x"],
      2,
      "--active-users must be a whole number",
    ],
    [
      ["set", "drop", "--active-users", "1000001", "--reason", "x"],
      2,
      "--active-users must be a whole number",
    ],
    [["pause", "drop"], 2, "required option '--reason <TEXT>'"],
    [["pause", "nothing", "--reason", "x"], 1, "Unknown waiting room"],
    [["opne", "drop"], 2, "too many arguments"],
  ] as const)("takes no %j", async (words, code, said) => {
    const ran = await run(words);
    expect(ran.code).toBe(code);
    expect(ran.err).toContain(said);
  });

  it("asks before it changes something, and changes nothing without a yes", async () => {
    changes.length = 0;
    const terminal = new FakeTerminal({ columns: 100, answers: ["n"] });
    const { code, err } = await run(["pause", "drop", "--reason", "x"], terminal);
    expect([code, changes.length]).toEqual([1, 0]);
    expect(err).toContain("Nothing was changed.");
  });
});

describe("headgate rooms let-in and explain", () => {
  it("take a ticket from a file, without its line end", async () => {
    const file = await folder.write("ticket.txt", "c2VjcmV0\n");
    const words = ["let-in", "drop", "--ticket-file", file, "--reason", "case 42"];
    const { code, out } = await run(words);
    expect([code, out]).toEqual([0, "Number 1234 may enter with its next request."]);
    expect(letIns).toMatchObject([{ room: "drop", ticket: "c2VjcmV0", reason: "case 42" }]);
    const explained = await run(["explain", "drop", "--ticket-file", file]);
    expect(explained.out).toBe(
      `\
Number 1234 waits.
Joined 2026-11-21T12:00:00Z.
56 visitors ahead.
Estimated wait: 1m30s to 2m.`,
    );
  });

  it("take no ticket of a megabyte, and no empty one", async () => {
    const long = await folder.write("long.txt", "x".repeat(1_048_576));
    const tooLong = await run(["explain", "drop", "--ticket-file", long]);
    expect([tooLong.code, tooLong.err]).toEqual([1, expect.stringContaining("65536 bytes")]);
    const blank = await folder.write("blank.txt", " \n");
    const empty = await run(["explain", "drop", "--ticket-file", blank]);
    expect([empty.code, empty.err]).toEqual([2, expect.stringContaining("the ticket is empty")]);
  });

  it("want no ticket that is typed at a terminal", async () => {
    const { code, err } = await run(["explain", "drop"], new FakeTerminal({ answers: [] }));
    expect([code, err]).toEqual([2, expect.stringContaining("--ticket-file")]);
  });
});
