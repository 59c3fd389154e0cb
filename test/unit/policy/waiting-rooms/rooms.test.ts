import { describe, expect, it } from "vitest";
import { hitsMax } from "../../../../src/core/limits/limit.js";
import { type ParsedPolicy, parsePolicy } from "../../../../src/policy/parse.js";
import { addRoomNeeds, type RequestNeeds } from "../../../../src/policy/request-needs.js";
import { roomWaitMsMax } from "../../../../src/policy/services/admission-blocks.js";
import { formatDuration } from "../../../../src/policy/text/duration.js";
import {
  activeUsersMax,
  entriesPerMinuteMax,
} from "../../../../src/policy/waiting-rooms/room-capacity.js";
import { eventsMax, preQueueMsMax } from "../../../../src/policy/waiting-rooms/room-events.js";
import {
  missedRefreshesMax,
  refreshBounds,
  roomItemsMax,
  sessionBounds,
  waitingMax,
} from "../../../../src/policy/waiting-rooms/room-form.js";
import { roomsMax } from "../../../../src/policy/waiting-rooms/room-list.js";
import {
  languagesMax,
  pageTextCharsMax,
  templateCharsMax,
} from "../../../../src/policy/waiting-rooms/room-page.js";
import type { RoomPolicy } from "../../../../src/policy/waiting-rooms/room-policy.js";
import { sessionsMax } from "../../../../src/store/coordination/room-store.js";

/** A policy of rooms, each written as the inside of braces, before a service with two hosts. */
function parse(...rooms: readonly string[]): ParsedPolicy {
  const text = [
    "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: a}\nspec:",
    "  services:",
    "    - {name: shop, hosts: [shop.example, pay.shop.example], admission: {}}",
    "    - {name: bare}",
    "  waitingRooms:",
    ...rooms.map((room) => `    - {${room}}`),
  ].join("\n");
  return parsePolicy([{ file: "a.yaml", text }]);
}

function idsOf(...rooms: readonly string[]): readonly string[] {
  const parsed = parse(...rooms);
  return parsed.kind === "problems" ? parsed.problems.map(({ id }) => id) : [];
}

const lobby = "name: lobby, service: shop";

function ids(more: string): readonly string[] {
  return idsOf(`${lobby}, ${more}`);
}

function roomOf(more: string): RoomPolicy {
  const parsed = parse(`${lobby}${more}`);
  const [first] = parsed.kind === "policy" ? parsed.waitingRooms : [];
  if (first === undefined) throw new Error(`a wrong room: ${JSON.stringify(parsed)}`);
  return first;
}

function list(count: number, one: (i: number) => string): string {
  return Array.from({ length: count }, (_, i) => one(i)).join(", ");
}

describe("readRooms()", () => {
  it("completes a room that says nothing", () => {
    expect(roomOf("")).toEqual({
      name: "lobby",
      service: "shop",
      match: { hosts: [], paths: [], methods: [] },
      visitors: "navigations",
      activeUsersMax: "auto",
      entriesPerMinuteMax: "auto",
      sessionMs: 600_000,
      renews: true,
      order: "fifo",
      queueAll: false,
      waitingMax: 1_000_000,
      refreshMs: 20_000,
      missedRefreshesMax: 3,
      events: [],
      estimatedWait: undefined,
      gate: undefined,
      joinLimit: undefined,
      bypass: { headers: [], sources: [], priorities: [] },
      page: { status: 200, template: undefined, texts: new Map() },
      cookie: {
        name: "headgate-lobby",
        domain: undefined,
        path: "/",
        sameSite: "lax",
        isSecure: true,
        addressBits: undefined,
      },
      endpointPath: "/.waiting-room/lobby",
      onStoreFailure: "keep",
    });
  });

  it("has no rooms where the policy says nothing of them", () => {
    const text = "domain: a\ndescriptors: []\n";
    const parsed = parsePolicy([{ file: "a.yaml", text }]);
    expect(parsed).toMatchObject({ kind: "policy", waitingRooms: [] });
  });

  it("takes as many active users as the store has sessions", () => {
    expect(activeUsersMax).toBe(sessionsMax);
  });

  it("sorts events by their starts, and gives each what it says alone", () => {
    const { events } = roomOf(
      ", events: [{name: b, start: 2026-12-01T00:00:00+01:00, end: 2026-12-02T00:00:00Z}, " +
        "{name: a, start: 2026-11-01T00:00:00.25Z, end: 2026-11-02T00:00:00Z, shuffle: false, " +
        "preQueue: 1h, capacity: {activeUsers: 7}}]",
    );
    expect(events).toEqual([
      {
        name: "a",
        // 2026-11-01T00:00:00.250Z to 2026-11-02T00:00:00Z
        startsAtMs: 1_793_491_200_250,
        endsAtMs: 1_793_577_600_000,
        preQueueMs: 3_600_000,
        shuffles: false,
        activeUsersMax: 7,
        entriesPerMinuteMax: undefined,
      },
      {
        name: "b",
        // 2026-11-30T23:00:00Z to 2026-12-02T00:00:00Z
        startsAtMs: 1_796_079_600_000,
        endsAtMs: 1_796_169_600_000,
        preQueueMs: 0,
        shuffles: true,
        activeUsersMax: undefined,
        entriesPerMinuteMax: undefined,
      },
    ]);
  });

  it("writes languages as they are best written, and keeps texts by their names", () => {
    const { texts } = roomOf(", page: {texts: {PT-br: {full: Cheio}, sv: {leave: Lämna}}}").page;
    expect([...texts]).toEqual([
      ["pt-BR", new Map([["full", "Cheio"]])],
      ["sv", new Map([["leave", "Lämna"]])],
    ]);
  });

  it("reads who is told apart in front of joining", () => {
    const limit = { requests: 5, periodSeconds: 60, burst: 5 };
    const byAddress = { ...limit, per: { kind: "remoteAddress" } };
    expect(roomOf(", joinLimit: {requests: 5}").joinLimit).toEqual(byAddress);
    const byHeader = { ...limit, burst: 9, per: { kind: "header", header: "x-user" } };
    const written = ", joinLimit: {requests: 5, per: 1m, burst: 9, by: {header: x-user}}";
    expect(roomOf(written).joinLimit).toEqual(byHeader);
  });

  const event = "start: 2026-11-01T00:00:00Z, end: 2026-11-02T00:00:00Z";
  const wrongTime = (time: string): string => `events: [{name: a, start: ${time}, end: ${time}}]`;

  it.each([
    [`capacity: {activeUsers: ${activeUsersMax}}`, []],
    [`capacity: {activeUsers: ${activeUsersMax + 1}}`, ["HG141"]],
    ["capacity: {activeUsers: auto}", []],
    ["capacity: {activeUsers: all}", ["HG133"]],
    ["capacity: {activeUsers: 1.5}", ["HG140"]],
    ["capacity: {activeUsers: []}", ["HG124"]],
    ["capacity: {activeUsers: }", ["HG124"]],
    [`capacity: {newUsersPerMinute: ${entriesPerMinuteMax}}`, []],
    [`capacity: {newUsersPerMinute: ${entriesPerMinuteMax + 1}}`, ["HG141"]],
    [`session: {length: ${formatDuration(sessionBounds.maxMs)}}`, []],
    ["session: {length: 25h}", ["HG141"]],
    ["session: {length: 9s}", ["HG141"]],
    ["session: {length: 10s}, refresh: 10s", []],
    ["session: {length: 10s}", ["HG240"]],
    ["session: {length: 10s}, refresh: 11s", ["HG240"]],
    [`refresh: ${formatDuration(refreshBounds.maxMs)}`, []],
    ["refresh: 5m1s", ["HG141"]],
    ["refresh: 999ms", ["HG141"]],
    ["refresh: 1001ms", ["HG141"]],
    [`maxWaiting: ${waitingMax}`, []],
    [`maxWaiting: ${waitingMax + 1}`, ["HG141"]],
    [`missedRefreshes: ${missedRefreshesMax}`, []],
    [`missedRefreshes: ${missedRefreshesMax + 1}`, ["HG141"]],
    [`events: [{name: a, ${event}, preQueue: ${formatDuration(preQueueMsMax)}}]`, []],
    [`events: [{name: a, ${event}, preQueue: 8d}]`, ["HG141"]],
    [`events: [{name: a, ${event}, capacity: {activeUsers: auto}}]`, []],
    [`events: [{name: A, ${event}}]`, ["HG226"]],
    ["events: []", []],
    ["events: {}", ["HG124"]],
    ["events: [sale]", ["HG124"]],
    [wrongTime("2026-11-01T00:00:00Z"), ["HG240"]],
    [wrongTime("2026-11-01"), ["HG273", "HG273"]],
    [wrongTime("2026-11-31T00:00:00Z"), ["HG273", "HG273"]],
    [wrongTime("'2026-11-01T00:00:00'"), ["HG273", "HG273"]],
    [wrongTime(`'${"9".repeat(40)}'`), ["HG273", "HG273"]],
    [wrongTime(`'${"9".repeat(41)}'`), ["HG131", "HG131"]],
    ["estimatedWait: {max: 10x}", []],
    [`estimatedWait: {max: ${formatDuration(roomWaitMsMax)}}`, []],
    ["estimatedWait: {max: 25h}", ["HG141"]],
    ["estimatedWait: {max: 999ms}", ["HG141"]],
    ["estimatedWait: {}", ["HG125"]],
    ["estimatedWait: {max: 1m, dryRun: true}", ["HG120"]],
    ["gate: {}", ["HG207"]],
    ["gate: {}, estimatedWait: {max: 1m}", ["HG207"]],
    ["gate: {}, estimatedWait: {sigmoid: {midpoint: 1m, slope: 1}}", []],
    ["gate: {openBelow: 0.9}, estimatedWait: {sigmoid: {midpoint: 1m, slope: 1}}", ["HG206"]],
    [`joinLimit: {requests: ${hitsMax}, burst: ${hitsMax}, per: 1d}`, []],
    ["joinLimit: {requests: 1, per: 1d, burst: 3650}", []],
    ["joinLimit: {requests: 1, per: 1d, burst: 3651}", ["HG144"]],
    ["joinLimit: {requests: 1, per: 25h}", ["HG141"]],
    ["joinLimit: {}", ["HG125"]],
    ["joinLimit: {requests: 1, by: {header: X-User}}", ["HG223"]],
    ["bypass: {headers: [{values: [a]}]}", ["HG125"]],
    ["bypass: {headers: [{name: x, values: ['å']}]}", ["HG132"]],
    ["bypass: {sources: [10.0.0.0/8, '::/0']}", []],
    ["bypass: {sources: [shop.example]}", ["HG224"]],
    ["cookie: {name: 'a=b'}", ["HG132"]],
    ["cookie: {name: 'a;b'}", ["HG132"]],
    [`cookie: {name: ${"a".repeat(129)}}`, ["HG131"]],
    ["cookie: {path: '/a;b'}", ["HG225"]],
    ["cookie: {path: '/a/../b'}", ["HG225"]],
    ["cookie: {domain: Shop.Example}", []],
    ["cookie: {domain: example}", []],
    ["cookie: {domain: pay.shop.example}", ["HG279"]],
    ["cookie: {domain: op.example}", ["HG279"]],
    ["cookie: {sameSite: none}", []],
    ["cookie: {name: __Host-room}", []],
    ["cookie: {name: __Secure-room, secure: false}", ["HG279"]],
    ["cookie: {name: __Secure-room}", []],
    ["cookie: {name: __host-room, path: /a}, match: {paths: [/a]}, endpoint: /a/b", ["HG279"]],
    ["endpoint: /a/%2e%2e/b", ["HG225"]],
    ["endpoint: queue", ["HG225"]],
    ["endpoint: /", ["HG278"]],
    ["endpoint: /a, match: {paths: ['/*']}", []],
    ["endpoint: /a, match: {paths: [/a]}", ["HG278"]],
    ["endpoint: /a, match: {paths: ['/a/*']}", ["HG278"]],
    ["endpoint: /a, match: {paths: [/a/b/c]}", ["HG278"]],
    ["endpoint: /a, match: {paths: [/ab]}", []],
    ["match: {methods: [GET, GET]}", []],
    ["match: {methods: [TRACE]}", ["HG133"]],
    ["match: {paths: ['/a?b']}", ["HG225"]],
    ["toString: 1", ["HG120"]],
    ["__proto__: {}", ["HG120"]],
  ])("answers %s with %j", (more, expected) => {
    expect(ids(more)).toEqual(expected);
  });

  it("takes so many of each, and no more", () => {
    const bounded: readonly (readonly [number, (count: number) => string])[] = [
      [roomItemsMax, (count) => `match: {hosts: [${list(count, (i) => `h${i}.example`)}]}`],
      [roomItemsMax, (count) => `match: {paths: [${list(count, (i) => `/p${i}`)}]}`],
      [roomItemsMax, (count) => `bypass: {sources: [${list(count, (i) => `10.0.0.${i}`)}]}`],
      [roomItemsMax, (count) => `bypass: {headers: [${list(count, (i) => `{name: x-${i}}`)}]}`],
      [
        roomItemsMax,
        (count) => `bypass: {headers: [{name: x, values: [${list(count, (i) => `v${i}`)}]}]}`,
      ],
      [
        eventsMax,
        (count) =>
          `events: [${list(
            count,
            (i) =>
              `{name: e${i}, start: ${2000 + i}-01-01T00:00:00Z, end: ${2000 + i}-02-01T00:00:00Z}`,
          )}]`,
      ],
      [
        languagesMax,
        (count) =>
          `page: {texts: {${list(
            count,
            (i) =>
              `a${"abcdefghijklmnopqrstuvwxyz"[i % 26]}${"xyz"[Math.floor(i / 26)]}: {full: a}`,
          )}}}`,
      ],
    ];
    for (const [max, written] of bounded) {
      expect(ids(written(max))).toEqual([]);
      expect(ids(written(max + 1))).toEqual(["HG160"]);
    }
    const rooms = (count: number): readonly string[] =>
      Array.from(
        { length: count },
        (_, i) => `name: r${i}, service: shop, match: {paths: [/${i}]}`,
      );
    expect(idsOf(...rooms(roomsMax))).toEqual([]);
    expect(idsOf(...rooms(roomsMax + 1))).toEqual(["HG160"]);
  });

  it("takes a policy of rooms alone where another file has the service", () => {
    const head = "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: a}\nspec:\n";
    const rooms = `${head}  waitingRooms: [{${lobby}, capacity: {activeUsers: 1}}]\n`;
    const services = `${head}  services: [{name: shop}]\n`;
    const files = [rooms, services].map((text, i) => ({ file: `${i}.yaml`, text }));
    expect(parsePolicy(files).kind).toBe("policy");
    expect(parsePolicy(files.slice(0, 1))).toMatchObject({
      kind: "problems",
      problems: [{ id: "HG271" }],
    });
  });
});

describe("the page of a waiting room", () => {
  const template = (text: string): readonly string[] =>
    ids(`page: {template: ${JSON.stringify(text)}}`);

  it.each([
    ["{{position}}", []],
    ["<script>alert('{{ahead}}')</script>", []],
    ["{{estimate}}{{estimate}}", []],
    ["{{message}}", []],
    ["<p>position</p>", ["HG276"]],
    ["{{title}}", ["HG276"]],
    ["{{ticket}}", ["HG275"]],
    ["{{position}}{{toString}}{{hasOwnProperty}}", ["HG275", "HG275"]],
    ["{{Position}}", ["HG275"]],
    ["{{position}}\u0000", ["HG132"]],
    ["{{position}}\u2028\u00e5\u{1d4b3}", []],
    ["{{position}}\ud800", ["HG132"]],
  ])("answers the template %j with %j", (text, expected) => {
    expect(template(text)).toEqual(expected);
  });

  it("bounds templates and texts", () => {
    const padded = (length: number): string => "{{ahead}}".padEnd(length, "x");
    expect(template(padded(templateCharsMax))).toEqual([]);
    expect(template(padded(templateCharsMax + 1))).toEqual(["HG131"]);
    const text = (length: number): string => `page: {texts: {en: {full: ${"x".repeat(length)}}}}`;
    expect(ids(text(pageTextCharsMax))).toEqual([]);
    expect(ids(text(pageTextCharsMax + 1))).toEqual(["HG131"]);
  });

  it("reports a few of many wrong fields", () => {
    expect(template("{{}}".repeat(templateCharsMax / 4))).toHaveLength(8);
  });

  it.each([
    ["{en: {full: '{{ahead}}'}}", []],
    ["{en: {full: '{{title}}'}}", ["HG275"]],
    ["{en: {}}", []],
    ["{}", ["HG160"]],
    ["[]", ["HG124"]],
    ["{en: }", ["HG124"]],
    ["{en: {constructor: a}}", ["HG120"]],
    ["{constructor: {full: a}}", ["HG277"]],
    ["{__proto__: {full: a}}", ["HG277"]],
    ["{e: {full: a}}", ["HG277"]],
    ["{en-: {full: a}}", ["HG277"]],
    ["{en_US: {full: a}}", ["HG277"]],
    ["{zh-Hant-TW: {full: a}}", []],
    ["{en-a: {full: a}}", ["HG277"]],
    ["{EN: {full: a}, en: {full: b}}", ["HG277"]],
  ])("answers the texts %s with %j", (texts, expected) => {
    expect(ids(`page: {texts: ${texts}}`)).toEqual(expected);
  });
});

describe("RoomList", () => {
  const room = (name: string, match: string, more = ""): string =>
    `name: ${name}, service: shop, match: {${match}}${more}`;

  it.each([
    ["", "", true],
    ["paths: [/a]", "", false],
    ["", "paths: [/a]", true],
    ["paths: ['/a/*']", "paths: [/a/b, '/a/c/*', /a, '/a/*']", true],
    ["paths: ['/a/*']", "paths: [/a/b, /ab]", false],
    ["paths: ['/a/*']", "paths: ['/ab/*']", false],
    ["paths: [/a]", "paths: ['/a/*']", false],
    ["paths: ['/*']", "", true],
    ["paths: ['/a/*', '/b/*']", "paths: [/a/x, /b/x]", true],
    ["hosts: [shop.example]", "", false],
    ["hosts: [shop.example]", "hosts: [pay.shop.example]", false],
    ["hosts: [shop.example, pay.shop.example]", "hosts: [pay.shop.example]", true],
    ["methods: [GET]", "methods: [GET, POST]", false],
    ["methods: [GET, POST]", "methods: [POST]", true],
    ["methods: [GET, POST]", "methods: [POST], hosts: [shop.example]", true],
  ])("knows whether %j leaves nothing of %j", (wide, narrow, isIdle) => {
    expect(idsOf(room("a", wide), room("b", narrow))).toEqual(isIdle ? ["HG272"] : []);
  });

  it("lets rooms of different services or hosts have the same cookie and endpoint", () => {
    const own = ", cookie: {name: q}, endpoint: /q";
    const other = "name: b, service: bare, capacity: {activeUsers: 1}";
    expect(idsOf(room("a", "", own), `${other}${own}`)).toEqual([]);
    const byHost = room("b", "hosts: [pay.shop.example]", own);
    expect(idsOf(room("a", "hosts: [shop.example]", own), byHost)).toEqual([]);
    expect(idsOf(room("a", "paths: [/a]", own), byHost)).toEqual(["HG279", "HG278"]);
  });

  it("wants a limit to take a capacity from, unless everybody passes", () => {
    const bare = "name: a, service: bare";
    expect(idsOf(bare)).toEqual(["HG280"]);
    expect(idsOf(`${bare}, order: passthrough`)).toEqual([]);
    expect(idsOf(`${bare}, capacity: {activeUsers: 3}`)).toEqual([]);
    const event = "{name: e, start: 2026-11-01T00:00:00Z, end: 2026-11-02T00:00:00Z, ";
    const events = `${bare}, capacity: {activeUsers: 3}, events: [${event}`;
    expect(idsOf(`${events}capacity: {activeUsers: auto}}]`)).toEqual(["HG280"]);
    expect(idsOf(`${events}capacity: {newUsersPerMinute: auto}}]`)).toEqual([]);
  });

  it("warns of headers that anybody can send, strange hosts, and classes that most have", () => {
    const parsed = parse(
      "name: a, service: shop, match: {hosts: [old.example]}, " +
        "bypass: {headers: [{name: x-a}, {name: x-b, values: [a]}], priorities: [high, normal]}",
    );
    const warnings = parsed.kind === "policy" ? parsed.warnings.problems : [];
    expect(warnings.map(({ id }) => id)).toEqual(["HG282", "HG283", "HG281"]);
  });
});

describe("addRoomNeeds()", () => {
  function needsOf(more: string): RequestNeeds {
    const needs = { headers: new Set<string>(), attributes: new Set<string>() };
    addRoomNeeds(roomOf(more), needs);
    return needs;
  }

  it("names the headers of navigations, and no attribute where nobody asks for one", () => {
    const { headers, attributes } = needsOf("");
    for (const name of ["cookie", "accept", "accept-language", "sec-fetch-mode", ":path"]) {
      expect(headers).toContain(name);
    }
    expect([...attributes]).toEqual([]);
  });

  it.each([
    [", bypass: {sources: [10.0.0.0/8]}"],
    [", joinLimit: {requests: 1}"],
    [", cookie: {addressBits: {}}"],
  ])("names the caller's address for %s", (more) => {
    expect([...needsOf(more).attributes]).toEqual(["source.address"]);
  });

  it("names headers that bypass or tell callers apart", () => {
    const { headers, attributes } = needsOf(
      ", bypass: {headers: [{name: x-staff, values: [a]}]}, " +
        "joinLimit: {requests: 1, by: {header: x-user}}",
    );
    expect(headers).toContain("x-staff");
    expect(headers).toContain("x-user");
    expect([...attributes]).toEqual([]);
  });
});
