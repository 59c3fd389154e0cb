import { placeOf } from "../../src/core/waiting-room/places.js";
import { decodePublishedRoom } from "../../src/core/waiting-room/published-room.js";
import {
  calledBit,
  type LineEntry,
  type LineShuffle,
} from "../../src/core/waiting-room/room-line.js";
import { lostAfterSeconds, type RoomRules } from "../../src/core/waiting-room/room-rules.js";
import { RoomLines } from "../../src/fleet/waiting-room/room-lines.js";
import type { StoreRoomLine } from "../../src/fleet/waiting-room/store-room-line.js";
import { MemoryRooms } from "../../src/store/coordination/memory-rooms.js";
import type {
  RoomStep,
  RoomStepAnswer,
  RoomTurn,
  RoomTurnAnswer,
} from "../../src/store/coordination/room-store.js";
import { FakeRandom } from "../support/fake-random.js";
import type { LinkWeather } from "../support/lossy-link.js";
import { RoomLink, type RoomWatcher } from "../support/room-link.js";
import { SimulatedClock, SimulatedTime } from "../support/simulated-time.js";

/** A fleet, a room, and who comes. */
export interface RoomScenario {
  readonly rules: RoomRules;
  readonly replicaCount: number;
  readonly arrivalsPerSecond: number;
  /** Mean of exponential visits, in seconds. */
  readonly visitSeconds: number;
  /** Visitors who go away while they wait, and those of all who tell when they go. */
  readonly leavingRatio: number;
  readonly tellingRatio: number;
  /** What goes wrong in the first `stormSeconds`. */
  readonly stormSeconds: number;
  readonly hasFaults: boolean;
}

interface Replica {
  readonly lines: RoomLines;
  readonly link: RoomLink;
  readonly clock: SimulatedClock;
}

/** How a visitor stands. */
type Standing =
  | { readonly kind: "outside" | "left" }
  | { readonly kind: "waiting"; readonly number: number }
  | {
      readonly kind: "inside";
      readonly number: number;
      readonly session: number;
      readonly usedSecond: number;
    };

interface Visitor {
  standing: Standing;
  joinedMs: number | undefined;
}

/** What the store has for a number. */
interface Ticket {
  seenSecond: number;
  isCalled: boolean;
  calledMs: number | undefined;
  hasLeft: boolean;
}

const roomName = "sale";

/** When the first visitor comes: the store has answered then, if it does. */
const firstArrivalMs = 100;

/** How often visitors' sessions are counted. */
const countMs = 500;

/** A scenario that runs, and everything that may not happen in it. */
export class RoomRun implements RoomWatcher {
  readonly time = new SimulatedTime();
  readonly violations: string[] = [];
  readonly visitors: Visitor[] = [];
  readonly counts = { entered: 0, full: 0, failed: 0, lost: 0, leaders: 0, shuffles: 0, spares: 0 };
  /** Seconds from the call to the entrance, of visitors who came at once; and from joining. */
  readonly comingSeconds: number[] = [];
  readonly waitSeconds: number[] = [];
  /** All that leaders have shuffled. */
  readonly shuffles: LineShuffle[] = [];
  /** Who was called, in that order, and in which second of the simulation. */
  readonly called: { readonly number: number; readonly second: number }[] = [];
  readonly weather: LinkWeather = { delayMs: 2, lostRatio: 0, isOut: false };
  readonly #scenario: RoomScenario;
  readonly #random: FakeRandom;
  readonly #clock = new SimulatedClock(this.time, 0);
  readonly #rooms = new MemoryRooms(this.#clock);
  readonly #replicas: Replica[] = [];
  readonly #tickets = new Map<number, Ticket>();
  /** Those of visitors who were not called and have not left. */
  readonly #waiting = new Map<number, Ticket>();
  /** The place that was called last, in the order of the line. */
  #lastPlace = -1;
  #arrives = true;

  constructor(scenario: RoomScenario, seed: number) {
    this.#scenario = scenario;
    this.#random = new FakeRandom(seed);
    for (let i = 0; i < scenario.replicaCount; i += 1) this.addReplica();
    this.#clock.schedule(firstArrivalMs, () => this.#arrive());
    this.#clock.schedule(countMs, () => this.#count());
    if (scenario.hasFaults) this.#clock.schedule(1_000, () => this.#strike());
  }

  /** Runs the storm, and then until nobody is left, at most so long. */
  async run(restSeconds: number): Promise<void> {
    await this.time.runUntil(this.#scenario.stormSeconds * 1_000);
    this.#arrives = false;
    Object.assign(this.weather, { delayMs: 2, lostRatio: 0, isOut: false });
    const endMs = this.time.nowMs + restSeconds * 1_000;
    while (this.time.nowMs < endMs && this.#isAnybodyThere()) {
      await this.time.runUntil(this.time.nowMs + 5_000);
    }
    if (this.#isAnybodyThere()) this.#violate("somebody waits for ever");
  }

  /** The leader dies, as far as there is one. */
  killLeader(): void {
    const alive = this.#replicas.filter(({ link }) => !link.isDead);
    this.#kill(alive.find(({ lines }) => lines.line(roomName)?.isLeader));
  }

  addReplica(): void {
    const clock = new SimulatedClock(this.time, Math.floor(this.#random.next() * 1e6));
    const random = new FakeRandom(Math.floor(this.#random.next() * 2 ** 31));
    const link = new RoomLink({
      ...{ inner: this.#rooms, clock, random, weather: this.weather, watcher: this },
    });
    const onEvent = ({ kind }: { readonly kind: string }): void => {
      if (kind === "leaderElected") this.counts.leaders += 1;
    };
    const lines = new RoomLines({
      ...{ store: link, clock, random, turnTimeoutMs: 500 },
      load: () => undefined,
      onEvent,
    });
    lines.change([this.#scenario.rules]);
    this.#replicas.push({ lines, link, clock });
  }

  turned(turn: RoomTurn, answer: RoomTurnAnswer): void {
    const second = Math.floor(answer.second);
    for (const [i, number] of turn.visits.entries()) {
      const ticket = this.#tickets.get(number);
      if (ticket === undefined) continue;
      const entry = answer.entries[i];
      if (entry?.kind === "gone") this.#checkGone(number, ticket, second);
      else ticket.seenSecond = second;
    }
    for (const { number } of turn.leaves) this.#leaveTicket(number);
    for (let i = 0; i < answer.joinedCount; i += 1) {
      const number = answer.firstNumber + i;
      const blank = { isCalled: false, calledMs: undefined, hasLeft: false };
      const ticket: Ticket = { seenSecond: second, ...blank };
      this.#tickets.set(number, ticket);
      this.#waiting.set(number, ticket);
      if (i < answer.enteredSessions.length) {
        this.counts.spares += 1;
        this.#callTicket(number, number, second);
      }
    }
  }

  async applied(step: RoomStep, answer: RoomStepAnswer): Promise<void> {
    if (answer.kind !== "applied") return;
    for (const run of decodePublishedRoom(step.published.toString())?.status.shuffles ?? []) {
      if (this.shuffles.some(({ from, seed }) => from === run.from && seed === run.seed)) continue;
      this.shuffles.push(run);
      this.counts.shuffles += 1;
    }
    const head = await this.#look();
    for (const { number, place, session } of step.calls) {
      const [word] = await this.#rooms.readLine(roomName, { from: number, count: 1 });
      if (word !== calledBit + session) continue;
      if (placeOf(number, this.shuffles) !== place) this.#violate(`${number} is not at ${place}`);
      this.#callTicket(number, place, head.second);
    }
    this.#checkPassed(head.calledPlace, head.second);
  }

  #look() {
    const nobody = { replicaId: "", leaseMs: 0, freshLineId: 0, freshSecret: Buffer.alloc(0) };
    const waits = { endedCount: 0, heldCount: 0 };
    return this.#rooms.beat({ room: roomName, ...nobody, waits });
  }

  #callTicket(number: number, place: number, second: number): void {
    const ticket = this.#tickets.get(number);
    if (ticket === undefined) return;
    if (ticket.isCalled) this.#violate(`${number} is called twice`);
    if (place <= this.#lastPlace) this.#violate(`${number} is called behind its place`);
    this.#lastPlace = place;
    ticket.isCalled = true;
    this.#waiting.delete(number);
    ticket.calledMs = this.time.nowMs;
    this.called.push({ number, second: this.time.nowMs / 1_000 });
    this.#checkPassed(place, second);
  }

  /** Nobody who is present is passed over. */
  #checkPassed(calledPlace: number, second: number): void {
    const lostSeconds = lostAfterSeconds(this.#scenario.rules);
    for (const [number, ticket] of this.#waiting) {
      if (second - ticket.seenSecond >= lostSeconds) continue;
      if (placeOf(number, this.shuffles) < calledPlace) this.#violate(`${number} is passed over`);
    }
  }

  #checkGone(number: number, ticket: Ticket, second: number): void {
    const lostSeconds = lostAfterSeconds(this.#scenario.rules);
    const isLate = ticket.hasLeft || second - ticket.seenSecond > lostSeconds;
    this.#leaveTicket(number);
    if (!isLate && !ticket.isCalled) this.#violate(`${number} has lost its place`);
  }

  #leaveTicket(number: number): void {
    this.#waiting.delete(number);
    const ticket = this.#tickets.get(number);
    if (ticket !== undefined) ticket.hasLeft = true;
  }

  // Visitors.

  #arrive(): void {
    if (!this.#arrives) return;
    const gapMs = (-Math.log(1 - this.#random.next()) / this.#scenario.arrivalsPerSecond) * 1_000;
    this.#clock.schedule(gapMs, () => this.#arrive());
    const visitor: Visitor = { standing: { kind: "outside" }, joinedMs: undefined };
    this.visitors.push(visitor);
    this.#join(visitor);
    if (this.#random.next() >= this.#scenario.leavingRatio) return;
    this.#clock.schedule(this.#random.next() * 60_000, () => {
      if (visitor.standing.kind === "waiting") this.#goAway(visitor);
    });
  }

  #join(visitor: Visitor): void {
    this.#line()?.join((answer) => {
      if (answer.kind !== "joined") {
        this.counts[answer.kind] += 1;
        visitor.standing = { kind: "left" };
        return;
      }
      visitor.joinedMs ??= this.time.nowMs;
      const { number, session, second } = answer;
      if (session !== undefined) {
        this.#enter(visitor, { kind: "entered", session, usedSecond: second }, number);
        return;
      }
      visitor.standing = { kind: "waiting", number };
      this.#refresh(visitor, number);
    });
  }

  #refresh(visitor: Visitor, number: number): void {
    const { refreshMs } = this.#scenario.rules;
    this.#clock.schedule(refreshMs * (0.8 + 0.2 * this.#random.next()), () => {
      if (visitor.standing.kind !== "waiting" || visitor.standing.number !== number) return;
      this.#refresh(visitor, number);
      const tabs = this.#random.next() < 0.1 ? 2 : 1;
      for (let i = 0; i < tabs; i += 1) this.#visit(visitor, number);
    });
  }

  #visit(visitor: Visitor, number: number): void {
    this.#line()?.visit(number, (answer) => {
      if (answer.kind === "failed" || answer.entry.kind === "waiting") return;
      const { standing } = visitor;
      if (standing.kind === "inside" && answer.entry.kind === "entered") {
        const isSame = standing.session === answer.entry.session;
        if (standing.number === number && !isSame) this.#violate(`${number} has two sessions`);
      }
      if (standing.kind !== "waiting" || standing.number !== number) return;
      if (answer.entry.kind === "entered") this.#enter(visitor, answer.entry, number);
      else {
        this.counts.lost += 1;
        visitor.standing = { kind: "left" };
      }
    });
  }

  #enter(visitor: Visitor, entry: LineEntry & { kind: "entered" }, number: number): void {
    this.counts.entered += 1;
    const { session, usedSecond } = entry;
    const inside = { kind: "inside", number, session, usedSecond } as const;
    visitor.standing = inside;
    this.waitSeconds.push((this.time.nowMs - (visitor.joinedMs ?? 0)) / 1_000);
    const calledMs = this.#tickets.get(number)?.calledMs ?? this.time.nowMs;
    this.comingSeconds.push((this.time.nowMs - calledMs) / 1_000);
    const visitMs = -Math.log(1 - this.#random.next()) * this.#scenario.visitSeconds * 1_000;
    this.#use(visitor, this.time.nowMs + visitMs);
  }

  /** Makes requests until the visit ends; then tells, or is not heard of any more. */
  #use(visitor: Visitor, endMs: number): void {
    const pauseMs = this.#random.next() * 5_000;
    this.#clock.schedule(Math.min(pauseMs, endMs - this.time.nowMs), () => {
      const { standing } = visitor;
      if (standing.kind !== "inside") return;
      if (this.time.nowMs >= endMs) {
        if (this.#random.next() < this.#scenario.tellingRatio) this.#goAway(visitor);
        return;
      }
      this.#use(visitor, endMs);
      const line = this.#line();
      const ageSeconds = (line?.second() ?? 0) - standing.usedSecond;
      if (ageSeconds > this.#sessionSeconds / 4 && ageSeconds <= this.#sessionSeconds) {
        this.#renew(visitor, standing, line);
      }
    });
  }

  #renew(
    visitor: Visitor,
    standing: Standing & { kind: "inside" },
    line: StoreRoomLine | undefined,
  ): void {
    line?.renew(standing, (exists) => {
      if (visitor.standing.kind !== "inside" || exists === "failed") return;
      const { number } = standing;
      if (!exists) this.#violate(`the session of ${number} is gone although it was in use`);
      const usedSecond = Math.floor(line.second() ?? 0);
      visitor.standing = { ...visitor.standing, usedSecond };
    });
  }

  #goAway(visitor: Visitor): void {
    const { standing } = visitor;
    visitor.standing = { kind: "left" };
    if (this.#random.next() >= this.#scenario.tellingRatio) return;
    if (standing.kind === "waiting") this.#line()?.leave({ number: standing.number });
    if (standing.kind === "inside") this.#line()?.leave(standing);
  }

  /** Sessions that a replica in touch with the store would let pass. */
  #count(): void {
    this.#clock.schedule(countMs, () => this.#count());
    const seconds = this.#replicas.flatMap(({ link, lines }) => {
      const line = lines.line(roomName);
      return !link.isDead && line?.isReachable ? [line.second() ?? 0] : [];
    });
    const second = Math.min(...seconds);
    let active = 0;
    for (const visitor of this.visitors) {
      const { standing } = visitor;
      if (standing.kind !== "inside") continue;
      if (second - standing.usedSecond <= this.#sessionSeconds) active += 1;
      else if (second < Number.POSITIVE_INFINITY) visitor.standing = { kind: "left" };
    }
    const { activeUsersMax } = this.#scenario.rules;
    if (active > Number(activeUsersMax)) this.#violate(`${active} sessions at a time`);
  }

  get #sessionSeconds(): number {
    return this.#scenario.rules.sessionMs / 1_000;
  }

  #line(): StoreRoomLine | undefined {
    const alive = this.#replicas.filter(({ link }) => !link.isDead);
    return alive[Math.floor(this.#random.next() * alive.length)]?.lines.line(roomName);
  }

  #isAnybodyThere(): boolean {
    return this.visitors.some(({ standing: { kind } }) => kind === "waiting" || kind === "inside");
  }

  // What goes wrong.

  #strike(): void {
    if (!this.#arrives) return;
    this.#clock.schedule(this.#random.next() * 15_000, () => this.#strike());
    const draw = this.#random.next();
    const alive = this.#replicas.filter(({ link }) => !link.isDead);
    if (draw < 0.2 && alive.length > 1) {
      if (this.#random.next() < 0.7) this.killLeader();
      else this.#kill(alive[0]);
    } else if (draw < 0.35 && alive.length < 5) this.addReplica();
    else if (draw < 0.45 && alive.length > 1) void this.#retire(alive[0]);
    else if (draw < 0.6) this.#during(this.#random.next() * 25_000, { isOut: true });
    else if (draw < 0.8) {
      this.#during(this.#random.next() * 20_000, { lostRatio: this.#random.next() * 0.6 });
    } else this.#during(this.#random.next() * 20_000, { delayMs: this.#random.next() * 400 });
  }

  #during(spanMs: number, change: Partial<LinkWeather>): void {
    Object.assign(this.weather, change);
    this.#clock.schedule(spanMs, () => {
      Object.assign(this.weather, { delayMs: 2, lostRatio: 0, isOut: false });
    });
  }

  #kill(replica: Replica | undefined): void {
    if (replica === undefined) return;
    replica.link.isDead = true;
    replica.clock.stop();
  }

  async #retire(replica: Replica | undefined): Promise<void> {
    if (replica === undefined) return;
    await replica.lines.stop();
    replica.link.isDead = true;
  }

  #violate(what: string): void {
    if (this.violations.length < 20) {
      this.violations.push(`${(this.time.nowMs / 1_000).toFixed(1)} s: ${what}`);
    }
  }
}
