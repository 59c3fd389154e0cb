import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import { type AdminClients, adminClients } from "../support/admin.js";
import { type CliRun, captureCli } from "../support/cli.js";
import { ConsolePage, phone } from "../support/console-page.js";
import { RoomEdge, type Visitor } from "../support/room-edge.js";
import { startBrowser, wide } from "../support/site.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("file");
const often = { everyMs: 200, withinMs: 30_000 };

const tokens = {
  operator: "0123456789abcdef-operator",
  reader: "0123456789abcdef-reader",
  /** Of a domain that the room's service does not have. */
  other: "0123456789abcdef-other",
} as const;

/** One visitor at a time, who may stay for ten minutes. */
const room = `
  capacity: {activeUsers: 1}
  session: {length: 10m}
  refresh: 1s
  missedRefreshes: 100
  estimatedWait: {sigmoid: {midpoint: 10h, slope: 0.001}}
  gate: {openBelow: 0.4, closeAbove: 0.8}
  events:
    - {name: drop, start: 2126-11-27T09:00:00Z, end: 2126-11-28T09:00:00Z}
`;

let edge: RoomEdge;
let inside: Visitor;
let browser: Browser;

beforeAll(async () => {
  const access = join(stage.folder, "access");
  const hash = (token: string): string => createHash("sha256").update(token).digest("hex");
  const lines = [
    `operator * token-sha256:${hash(tokens.operator)} olga`,
    `reader * token-sha256:${hash(tokens.reader)} rita`,
    `operator other token-sha256:${hash(tokens.other)} otto`,
  ];
  await writeFile(access, `${lines.join("\n")}\n`);
  browser = await startBrowser(stage);
  edge = await RoomEdge.start(stage, {
    rooms: { sale: { room } },
    env: {
      HEADGATE_ADMIN_ADDR: "127.0.0.1:0",
      HEADGATE_ADMIN_ACCESS: access,
      HEADGATE_ADMIN_CALLS_PER_SECOND: "500",
      HEADGATE_REPLICAS: "2",
    },
  });
  inside = edge.visitor(stage);
  await waitFor("a session is spare", async () => (await inside.go()) === "in", often);
});

function portOf(replica = 0): number {
  return edge.headgates[replica]?.portOf("admin") ?? 0;
}

function clientsOf(who: keyof typeof tokens = "operator", replica = 0): AdminClients {
  return adminClients(portOf(replica), { token: tokens[who] });
}

function envOf(who: keyof typeof tokens = "operator") {
  return {
    HEADGATE_ADMIN_URL: `http://127.0.0.1:${portOf()}`,
    HEADGATE_ADMIN_TOKEN: tokens[who],
    NO_COLOR: "1",
  };
}

function run(line: string, who?: keyof typeof tokens): Promise<CliRun> {
  const words = line.match(/"[^"]*"|\S+/g) ?? [];
  return captureCli(["rooms", ...words.map((word) => word.replaceAll('"', ""))], {
    env: envOf(who),
  });
}

/** The program as a process of its own, with this on its standard input. */
function runWithInput(
  line: string,
  input: string,
): Promise<{ code: number; out: string; err: string }> {
  const args = ["dist/cli/main.js", "rooms", ...line.split(" ")];
  const env = { ...envOf(), PATH: process.env["PATH"] ?? "" };
  return new Promise((resolve) => {
    const child = execFile(process.execPath, args, { env }, (error, out, err) => {
      resolve({ code: typeof error?.code === "number" ? error.code : 0, out, err });
    });
    // It may read no more than it takes.
    child.stdin?.on("error", () => {}).end(input);
  });
}

/** A visitor who waits, and the value of its cookie. */
async function joined(): Promise<{ readonly visitor: Visitor; readonly ticket: string }> {
  const visitor = edge.visitor(stage);
  expect(await visitor.go()).toBe("waiting");
  return { visitor, ticket: visitor.cookies.get("headgate-sale") ?? "" };
}

/** The room at a replica, once it is so. */
async function seen(
  what: string,
  test: (room: Awaited<ReturnType<AdminClients["rooms"]["listRooms"]>>["rooms"][number]) => boolean,
  replica = 0,
) {
  const { rooms } = clientsOf("reader", replica);
  return waitFor(
    what,
    async () => (await rooms.listRooms({ room: "sale", thisReplica: true })).rooms.find(test),
    often,
  );
}

describe("headgate rooms at a running Headgate", () => {
  it("shows the line that all replicas share, and what each has counted", async () => {
    await joined();
    await seen("one waits", ({ line }) => line?.waiting === 1n);
    await seen("the other replica knows it", ({ line }) => line?.waiting === 1n, 1);
    const { code, out } = await run("list");
    expect([code, out]).toEqual([0, expect.stringMatching(/^room .*\nsale +open +1 +1 of 1 /)]);
    const shown = await run("show sale -o json", "reader");
    const { rooms } = JSON.parse(shown.out);
    expect(rooms).toHaveLength(2);
    const joins = rooms.map((one: { requests: { joined: number } }) => one.requests.joined);
    expect(joins.reduce((a: number, b: number) => a + b, 0)).toBeGreaterThanOrEqual(1);
    expect(new Set(rooms.map(({ leader }: { leader: string }) => leader)).size).toBe(1);
    const history = await clientsOf().fleet.getHistory({ room: "sale" });
    const kept = history.replicas.flatMap((one) => one.rooms.flatMap(({ waiting }) => waiting));
    expect(Math.max(...kept)).toBeGreaterThanOrEqual(1);
  });

  it("pauses and widens the room on all replicas, and takes all back, with an audit", async () => {
    const { visitor } = await joined();
    expect((await run('pause sale --reason "payments are down"')).out).toBe("sale: paused");
    const set = await run("set sale --active-users 20 --reason backends");
    expect(set.out).toBe("sale: paused, 20 active users");
    await seen("the other replica is paused", ({ mode }) => mode === "paused", 1);
    const wider = await seen("the room is wider", ({ line }) => line?.activeMax === 20n, 1);
    expect(wider.override).toMatchObject({ mode: "paused", activeUsers: 20n });
    expect(await visitor.go()).toBe("paused");
    expect((await run("resume sale --reason again")).out).toBe("sale: 20 active users");
    await waitFor("the visitor enters", async () => (await visitor.go()) === "in", often);
    await visitor.leave();
    expect((await run("open sale drop --reason early")).out).toBe(
      "sale: 20 active users, event drop open",
    );
    await seen("the event is open", ({ phase }) => phase === "open", 1);
    expect((await run("reset sale --reason over")).out).toBe("sale: none, as the policy says");
    await seen("the room is as before", ({ line, phase }) => {
      return line?.activeMax === 1n && phase === "none";
    });
    const { entries } = await clientsOf().fleet.listAudit({ action: "SetRoomOverride" });
    expect(entries.map(({ author, subject, reason }) => [author, subject, reason])).toEqual([
      ["olga", "sale", "over"],
      ["olga", "sale", "early"],
      ["olga", "sale", "again"],
      ["olga", "sale", "backends"],
      ["olga", "sale", "payments are down"],
    ]);
    expect(entries[0]).toMatchObject({
      before: '{"mode":"open","activeUsersMax":20,"openedEvent":"drop"}',
      after: "",
    });
  });

  it("lets nobody join while it drains", async () => {
    await run("drain sale --reason maintenance");
    await seen("the room drains", ({ mode }) => mode === "draining", 1);
    await seen("the room drains", ({ mode }) => mode === "draining");
    const late = edge.visitor(stage);
    expect(["in", "waiting"]).not.toContain(await late.go());
    await run("reset sale --reason done");
    await seen("it is open again", ({ mode }) => mode === "open");
    await seen("it is open again", ({ mode }) => mode === "open", 1);
  });

  it("changes when Envoys refuse", async () => {
    const { fleet } = clientsOf();
    const service = "room:sale";
    const { thresholds } = await fleet.getGateThresholds({ service });
    expect(thresholds).toMatchObject({ service, openBelow: 0.4, closeAbove: 0.8, version: 0n });
    const ratios = { openBelow: 0.2, closeAbove: 0.6 };
    await fleet.setGateThresholds({ service, ...ratios, reason: "sooner" });
    await waitFor("the other replica knows it", async () => {
      const other = await clientsOf("reader", 1).fleet.getGateThresholds({ service });
      return other.thresholds?.closeAbove === 0.6;
    });
    const nothing = fleet.getGateThresholds({ service: "room:nothing" });
    await expect(nothing).rejects.toThrow("unknown service with a gate");
  });
});

describe("the ticket of a visitor", () => {
  it("is explained, and admits its visitor ahead of the line, and is written nowhere", async () => {
    const first = await joined();
    const { visitor, ticket } = await joined();
    await waitFor("its place is counted", async () => {
      const { ahead } = await clientsOf("reader").rooms.explainTicket({ room: "sale", ticket });
      return (ahead ?? 0n) >= 1n;
    });
    const explained = await runWithInput("explain sale", `${ticket}\n`);
    expect([explained.code, explained.out]).toEqual([
      0,
      expect.stringMatching(/^Number \d+ waits\.\nJoined .*\n\d+ visitors? ahead\./),
    ]);
    const file = join(stage.folder, "ticket.txt");
    await writeFile(file, ticket);
    const words = `let-in sale --ticket-file ${file} --reason "support case 42"`;
    await waitFor("an extra session is there", async () => (await run(words)).code === 0, often);
    expect(await visitor.go()).toBe("in");
    expect(await first.visitor.go()).toBe("waiting");
    const { entries } = await clientsOf().fleet.listAudit({ action: "LetIn" });
    expect(entries[0]).toMatchObject({
      author: "olga",
      subject: "sale",
      reason: "support case 42",
    });
    expect(entries[0]?.after).toMatch(/^\{"number":\d+\}$/);
    for (const { output } of edge.headgates) expect(output).not.toContain(ticket);
    await visitor.leave();
    await first.visitor.leave();
  });

  it("is refused where it is none, forged, of another room, or a megabyte long", async () => {
    const { ticket } = await joined();
    const flipped = `${ticket.slice(0, -2)}${ticket.endsWith("AA") ? "BB" : "AA"}`;
    const { rooms } = clientsOf();
    for (const bad of [flipped, "x", "\u0000", `${ticket}=`, "A".repeat(4_096)]) {
      const asked = rooms.explainTicket({ room: "sale", ticket: bad });
      await expect(asked).rejects.toThrow("ticket: it is not a ticket of this room");
      const let_ = rooms.letIn({ room: "sale", ticket: bad, reason: "x" });
      await expect(let_).rejects.toThrow("ticket: it is not a ticket of this room");
    }
    const huge = rooms.explainTicket({ room: "sale", ticket: "A".repeat(1_048_576) });
    await expect(huge).rejects.toThrow(/resource_exhausted/);
    const long = rooms.explainTicket({ room: "sale", ticket: "A".repeat(4_097) });
    await expect(long).rejects.toThrow("ticket: it has more than 4096 characters");
    const tooLong = await runWithInput("explain sale", "A".repeat(1_048_576));
    expect([tooLong.code, tooLong.err]).toEqual([1, expect.stringContaining("65536 bytes")]);
  });
});

describe("who may do what", () => {
  it("is what the access list says", async () => {
    const { ticket } = await joined();
    const change = { room: "sale", mode: "paused", reason: "x" };
    for (const [who, problem] of [
      ["reader", "permission_denied"],
      ["other", "not_found"],
    ] as const) {
      const { rooms } = clientsOf(who);
      await expect(rooms.setRoomOverride(change)).rejects.toThrow(problem);
      const letIn = rooms.letIn({ room: "sale", ticket, reason: "x" });
      await expect(letIn).rejects.toThrow(problem);
    }
    expect((await clientsOf("reader").rooms.listRooms({})).rooms).toHaveLength(2);
    expect((await clientsOf("other").rooms.listRooms({})).rooms).toEqual([]);
    const own = clientsOf("other").rooms.explainTicket({ room: "sale", ticket });
    await expect(own).rejects.toThrow("unknown waiting room");
    expect((await run("pause sale --reason x", "reader")).code).toBe(1);
  });

  it("bounds what comes from outside", async () => {
    const send = async (method: string, body: string): Promise<string> => {
      const answer = await fetch(
        `http://127.0.0.1:${portOf()}/headgate.admin.v1.RoomService/${method}`,
        {
          method: "POST",
          headers: {
            "content-type": "application/json",
            authorization: `Bearer ${tokens.operator}`,
          },
          body,
        },
      );
      return `${answer.status} ${await answer.text()}`;
    };
    for (const activeUsers of ['"NaN"', "-1", "1.5", '"1e400"', "1000001"]) {
      const body = `{"room": "sale", "reason": "x", "activeUsers": ${activeUsers}}`;
      expect(await send("SetRoomOverride", body), activeUsers).toMatch(/^400 .*invalid_argument/);
    }
    expect(await send("ListRooms", '{"room": "nothing"}')).toMatch(/^404 .*unknown waiting room/);
    expect(await send("ListRooms", '{"rooms": "sale"}')).toMatch(/^400 /);
    expect(await send("SetRoomOverride", `{"room": "${"x".repeat(300_000)}"}`)).toMatch(
      /resource_exhausted/,
    );
  });
});

describe.each(["light", "dark"] as const)("the console's rooms, %s", (theme) => {
  it("are shown at any width, and run by operators alone", async () => {
    const origin = `http://127.0.0.1:${portOf()}`;
    const console = await ConsolePage.open(browser, origin, theme);
    await console.signIn(tokens.operator);
    const { visitor, ticket } = await joined();
    await console.show("#/rooms");
    await console.see(/sale/);
    await console.see(/of 1 active/);
    const looks = async (name: string) => {
      const wrong = [...(await console.judge())];
      for (const [size, viewport] of Object.entries({ wide, phone })) {
        await console.page.setViewportSize(viewport);
        await console.picture(`${name}-${theme}-${size}`);
        if ((await console.overflow()) > 0) wrong.push(`${name} is wider than the ${size} window`);
      }
      await console.page.setViewportSize(wide);
      return wrong;
    };
    expect(await looks("rooms")).toEqual([]);
    await console.page.keyboard.press("g");
    await console.page.keyboard.press("w");
    await console.page.click("main a.card");
    await console.see("Estimates against waits");
    await console.page.fill("main input[type=password]", ticket);
    await console.page.click("text=Explain");
    await console.see(/Number\s*[\d,]+ waits/);
    expect(await looks("room")).toEqual([]);
    await console.page.click("text=Mode …");
    await console.page.fill("dialog input", "a test");
    await console.see("headgate rooms pause sale --reason 'a test'");
    await console.page.click("dialog button[type=submit]");
    await console.see("Changed. It applies on all replicas");
    await console.page.click("text=Done");
    await console.see(/Set by an operator:\s*paused/);
    await console.page.click("text=Reset …");
    await console.page.fill("dialog input", "a test");
    await console.page.click("dialog button[type=submit]");
    await console.see("Changed. It applies on all replicas");
    await console.page.click("text=Done");
    for (const replica of [0, 1]) {
      await seen("it is open again", ({ mode }) => mode === "open", replica);
    }
    await visitor.leave();
    expect(console.troubles).toEqual([]);
    const reading = await ConsolePage.open(browser, origin, theme);
    await reading.signIn(tokens.reader);
    await reading.show("#/room/sale");
    await reading.see("Estimates against waits");
    expect(await reading.page.locator("text=Mode …").count()).toBe(0);
    expect(await reading.page.locator("text=Let in …").count()).toBe(0);
    await reading.show("#/room/nothing");
    await reading.see("no waiting room of this name");
    expect(reading.troubles).toEqual([]);
    for (const context of browser.contexts()) await context.close();
  });
});
