import { createHash, createHmac } from "node:crypto";
import type { Refusal } from "../../src/core/admission/exchange-messages.js";
import type { GateSettings } from "../../src/core/admission/gate.js";
import type {
  JoinAnswer,
  LineEntry,
  RoomLine,
  RoomStatus,
  SessionKey,
  VisitAnswer,
} from "../../src/core/waiting-room/room-line.js";
import type { TicketKey } from "../../src/core/waiting-room/ticket.js";
import { DecisionCounters } from "../../src/decide/rate-limit/counters.js";
import type { Decider } from "../../src/decide/rate-limit/decider.js";
import { RoomAdmission } from "../../src/decide/waiting-room/room-admission.js";
import type {
  RoomAccess,
  RoomDoor,
  RoomDoorParts,
} from "../../src/decide/waiting-room/room-door.js";
import type { RoomOutcome } from "../../src/decide/waiting-room/room-view.js";
import { type Policy, PolicyBuilder } from "../../src/policy/policy.js";
import type { RoomPolicy } from "../../src/policy/waiting-rooms/room-policy.js";
import {
  AdmissionRig,
  AskingRequest,
  requestOf,
  type TestRequest,
  testService,
} from "./admission.js";
import { createTestDecider } from "./decider.js";
import { type FakeClock, settlePromises } from "./fake-clock.js";
import { testRoom } from "./waiting-rooms.js";

/** The room "sale" of the service "orders", but for the fields that a test names. */
export function saleRoom(fields: Partial<RoomPolicy> = {}): RoomPolicy {
  const { cookie } = testRoom();
  return testRoom({
    name: "sale",
    cookie: { ...cookie, name: "headgate-sale" },
    endpointPath: "/.waiting-room/sale",
    ...fields,
  });
}

/** What a leader of a quiet room publishes, but for the fields that a test names. */
export function testStatus(fields: Partial<RoomStatus> = {}): RoomStatus {
  return {
    lineId: 7,
    second: 100,
    nextNumber: 0,
    calledPlace: 0,
    waitingCount: 0,
    liveByBlock: [],
    liveAtFront: new Uint8Array(0),
    activeCount: 0,
    activeCountMax: 100,
    entriesPerSecond: 1,
    entriesMeasuredCount: 1_000,
    abandonPerSecond: 0,
    sessionSeconds: undefined,
    rangeFactor: 1,
    rejectRatio: 0,
    shuffles: [],
    phase: "none",
    opensSecond: undefined,
    shufflesNext: false,
    mode: "open",
    ...fields,
  };
}

/** A line whose answers a test decides. It answers in the turn after, as the real one does. */
export class ScriptedLine implements RoomLine {
  status: RoomStatus | undefined = testStatus();
  isReachable = true;
  nowSecond: number | undefined = 100;
  /** Sessions that are spare for those who join. */
  spareCount = 0;
  isFull = false;
  isFailing = false;
  nextNumber = 0;
  /** What visits find; those that are not here still wait. */
  readonly entries = new Map<number, LineEntry>();
  readonly visited: number[] = [];
  readonly left: { readonly number: number; readonly session?: number }[] = [];
  readonly renewed: SessionKey[] = [];
  readonly heldWaits: boolean[] = [];
  readonly #turns: (() => void)[] = [];

  second(): number | undefined {
    return this.nowSecond;
  }

  join(done: (answer: JoinAnswer) => void): void {
    this.#turns.push(() => {
      if (this.isFailing) return done({ kind: "failed" });
      if (this.isFull) return done({ kind: "full" });
      const number = this.nextNumber;
      this.nextNumber += 1;
      const session = this.spareCount > 0 ? 1_000 + number : undefined;
      this.spareCount = Math.max(0, this.spareCount - 1);
      const { lineId = 7 } = this.status ?? {};
      done({ kind: "joined", lineId, number, second: this.nowSecond ?? 0, session });
    });
  }

  visit(number: number, done: (answer: VisitAnswer) => void): void {
    this.visited.push(number);
    this.#turns.push(() => {
      if (this.isFailing) return done({ kind: "failed" });
      const entry = this.entries.get(number) ?? { kind: "waiting" };
      done({ kind: "known", entry, second: this.nowSecond ?? 0 });
    });
  }

  letIn(number: number, done: (answer: VisitAnswer) => void): void {
    this.visit(number, done);
  }

  leave(place: { readonly number: number; readonly session?: number }): void {
    this.left.push(place);
  }

  renew(key: SessionKey, done: (exists: boolean | "failed") => void): void {
    this.renewed.push(key);
    this.#turns.push(() => {
      if (this.isFailing) return done("failed");
      done(this.entries.get(key.number)?.kind !== "gone");
    });
  }

  noteWait(isHeld: boolean): void {
    this.heldWaits.push(isHeld);
  }

  runTurns(): void {
    for (let turn = this.#turns.shift(); turn !== undefined; turn = this.#turns.shift()) turn();
  }
}

/** A key of a secret, as the program makes them. */
export function testKey(secret: string, id = 1): TicketKey {
  return {
    id,
    mac: (bytes) => createHmac("sha256", secret).update(bytes).digest(),
  };
}

/** A browser that goes to a page. */
export const navigation = {
  accept: "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8",
  "sec-fetch-mode": "navigate",
} as const;

/** Rooms in a test's hand, in front of admission to the service "orders". */
export class RoomRig {
  readonly line = new ScriptedLine();
  readonly admission: AdmissionRig;
  readonly rooms: RoomAdmission;
  readonly counters = new DecisionCounters();
  /** What limits in front of joining are asked of. */
  readonly decider: Decider;
  keys: readonly TicketKey[] = [testKey("first")];
  /** What chance says. */
  draw = 0.5;
  /** What an operator has changed about the gates of rooms. */
  gateSettings: GateSettings | undefined;

  /** @param accessAt to lines over a store, which go by the rig's clock; default: a scripted one */
  constructor(
    rooms: readonly RoomPolicy[] = [saleRoom()],
    admission: Parameters<typeof testService>[0] = undefined,
    accessAt?: (clock: FakeClock) => RoomDoorParts["access"],
  ) {
    this.admission = new AdmissionRig(roomsPolicy(rooms, admission));
    const { clock } = this.admission;
    const scripted = (): RoomAccess => ({ line: this.line, keys: () => this.keys });
    const policies = { current: () => this.admission.policy };
    this.decider = createTestDecider({ clock, policies, counters: this.counters });
    this.rooms = new RoomAdmission({
      policies,
      inner: this.admission.admission,
      decider: this.decider,
      access: accessAt?.(clock) ?? scripted,
      gateSettings: (_, own) => this.gateSettings ?? own,
      draw: () => this.draw,
      nowMs: () => clock.epochUs() / 1_000,
      hash: (text) => createHash("sha256").update(text).digest("base64"),
    });
  }

  /** The door of the room "sale". */
  get door(): RoomDoor {
    const door = this.rooms.doors.get("sale");
    if (door === undefined) throw new Error("no room");
    return door;
  }

  /** How many requests became something. */
  count(outcome: RoomOutcome): number {
    return this.door.counts.outcomes.get(outcome) ?? 0;
  }

  /** Asks, and lets the line answer. */
  ask(request: TestRequest = {}): RoomAsking {
    const visit = this.begin(request);
    this.admission.clock.runTurns();
    this.line.runTurns();
    return visit;
  }

  begin(request: TestRequest = {}): RoomAsking {
    const visit = new RoomAsking();
    const answer = this.rooms.begin(requestOf(request), visit);
    visit.isBegun = true;
    if (answer.kind !== "refused") visit.ticket = answer.ticket;
    if (answer.kind !== "asking") visit.decided(answer);
    return visit;
  }

  /** So many join from one address, whatever else they say: fifty every `stepMs` milliseconds. */
  async flood(count: number, stepMs: number): Promise<void> {
    for (let i = 0; i < count; i += 50) {
      for (let k = i; k < i + 50; k += 1) {
        this.begin({
          headers: { ...navigation, cookie: `headgate-sale=${k}`, "x-forwarded-for": `${k}` },
          attributes: { "source.address": `192.0.2.7:${k % 65_536}` },
        });
      }
      this.admission.clock.advance(stepMs);
      await this.settle();
    }
  }

  /** Lets the store of rate limits answer, and then the line. */
  async settle(): Promise<void> {
    this.admission.clock.runTurns();
    await settlePromises();
    this.line.runTurns();
  }

  /** A browser goes to a page, with a cookie where it has one. */
  browse(cookie?: string, headers: Readonly<Record<string, string>> = {}): RoomAsking {
    const cookies = cookie === undefined ? {} : { cookie: `other=1; ${cookie}` };
    return this.ask({ headers: { ...navigation, ...cookies, ...headers } });
  }

  /** Asks an endpoint of the room. */
  call(endpoint: string, cookie?: string, method = "GET"): RoomAsking {
    const path = `/.waiting-room/sale/${endpoint}`;
    const cookies = cookie === undefined ? {} : { cookie };
    return this.ask({ headers: { ":method": method, ":path": path, ...cookies } });
  }
}

/** A request at a room, and what it was told. */
export class RoomAsking extends AskingRequest {
  /** What became of it: `admitted`, or the page that it was shown. */
  get shown(): string {
    return this.verdict.replace("waiting_room_", "");
  }

  get page(): Refusal {
    const [refusal] = this.refusals;
    if (refusal === undefined) throw new Error(`not kept: ${this.verdict}`);
    return refusal;
  }

  /** The `name=value` of the cookie that it was given; undefined: none. */
  get cookie(): string | undefined {
    const set = this.refusals[0]?.headers ?? this.terms[0]?.responseSetHeaders ?? [];
    return set.find(({ name }) => name === "set-cookie")?.value.split(";")[0];
  }

  header(name: string): string | undefined {
    return this.page.headers.find((header) => header.name === name)?.value;
  }

  get json(): Readonly<Record<string, unknown>> {
    return JSON.parse(this.page.body);
  }
}

/** A policy of rooms before the service "orders". */
export function roomsPolicy(
  rooms: readonly RoomPolicy[],
  admission: Parameters<typeof testService>[0] = undefined,
): Policy {
  const builder = new PolicyBuilder("v1");
  builder.addServices([testService(admission)]);
  builder.addWaitingRooms(rooms);
  return builder.finish();
}
