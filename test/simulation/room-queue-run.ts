import { rangeHeld, waitRange } from "../../src/core/waiting-room/estimate.js";
import { aheadOf, placeOf } from "../../src/core/waiting-room/places.js";
import { RoomLeader } from "../../src/core/waiting-room/room-leader.js";
import type { RoomStatus } from "../../src/core/waiting-room/room-line.js";
import { lostAfterSeconds, type RoomRules } from "../../src/core/waiting-room/room-rules.js";
import type { AnnouncedWait } from "../../src/core/waiting-room/ticket.js";
import { MemoryRooms } from "../../src/store/coordination/memory-rooms.js";
import type {
  RoomHead,
  RoomTurn,
  RoomTurnAnswer,
} from "../../src/store/coordination/room-store.js";
import { FakeRandom } from "../support/fake-random.js";

/** A room as a queue: sessions are its servers. */
export interface RoomQueueScenario {
  readonly rules: RoomRules;
  readonly arrivalsPerSecond: number;
  /** Draws the length of a visit, in seconds. */
  readonly visitSeconds: (random: FakeRandom) => number;
  /** Mean patience of those who wait, in seconds; undefined: they stay. */
  readonly patienceSeconds?: number;
}

interface Visitor {
  readonly number: number;
  readonly joinedSecond: number;
  readonly announced: AnnouncedWait | undefined;
  readonly leavesSecond: number;
  session: number | undefined;
}

/** A wait that ended in an entrance. */
export interface EndedWait {
  readonly announced: AnnouncedWait;
  readonly trueSeconds: number;
}

/** A room in steps of a second: one leader, a store that answers at once. */
export class RoomQueueRun {
  second = 0;
  status: RoomStatus | undefined;
  readonly queueCounts: number[] = [];
  readonly waits: EndedWait[] = [];
  /** Of all who entered, those who did not wait among them. */
  readonly waitSeconds: number[] = [];
  turnedAwayCount = 0;
  readonly #scenario: RoomQueueScenario;
  readonly #random: FakeRandom;
  readonly #rooms: MemoryRooms;
  readonly #visitors = new Map<number, Visitor>();
  /** What visitors do in which second. */
  readonly #agenda = new Map<number, (() => void)[]>();
  #turn: Pick<RoomTurn, "visits" | "leaves"> & {
    visits: number[];
    leaves: RoomTurn["leaves"][number][];
  } = { visits: [], leaves: [] };
  #leader: RoomLeader | undefined;
  #counts = { endedCount: 0, heldCount: 0 };
  #nextArrival = 0;

  constructor(scenario: RoomQueueScenario, seed: number) {
    this.#scenario = scenario;
    this.#random = new FakeRandom(seed);
    this.#rooms = new MemoryRooms({ epochUs: () => this.second * 1e6 });
  }

  async span(seconds: number): Promise<void> {
    const end = this.second + seconds;
    for (; this.second < end; this.second += 1) {
      await this.#lead();
      await this.#live();
    }
  }

  /** Forgets what was counted. */
  forget(): void {
    this.queueCounts.length = 0;
    this.waits.length = 0;
    this.waitSeconds.length = 0;
  }

  async #lead(): Promise<void> {
    const { rules } = this.#scenario;
    const head = await this.#beat();
    this.#leader ??= new RoomLeader(head, undefined, bounds);
    const leader = this.#leader;
    const seed = Math.floor(this.#random.next() * 2 ** 32);
    const input = { rules, head, load: undefined, seed };
    const reads = leader.reads(head);
    for (const range of reads.line) {
      leader.readLine(range, await this.#rooms.readLine(rules.name, range), input);
    }
    for (const range of reads.sessions) {
      leader.readSessions(range, await this.#rooms.readSessions(rules.name, range));
    }
    const { published, ...decision } = leader.decide(input);
    const whose = { room: rules.name, term: head.term, replicaId: "a", lineId: head.lineId };
    const afterSecond = head.published?.second;
    await this.#rooms.apply({ ...whose, afterSecond, ...decision, published: Buffer.alloc(0) });
    this.status = published.status;
    this.queueCounts.push(published.status.waitingCount);
  }

  #beat(): Promise<RoomHead> {
    const waits = this.#counts;
    this.#counts = { endedCount: 0, heldCount: 0 };
    const fresh = { freshLineId: 1, freshSecret: Buffer.alloc(32) };
    const { name: room } = this.#scenario.rules;
    return this.#rooms.beat({ room, replicaId: "a", leaseMs: 3_000, ...fresh, waits });
  }

  async #live(): Promise<void> {
    for (const act of this.#agenda.get(this.second) ?? []) act();
    this.#agenda.delete(this.second);
    const { visits, leaves } = this.#turn;
    this.#turn = { visits: [], leaves: [] };
    for (let from = 0; from < visits.length; from += 256) {
      const part = visits.slice(from, from + 256);
      const { entries } = await this.#send({ visits: part });
      for (const [i, entry] of entries.entries()) {
        const visitor = this.#visitors.get(part[i] ?? 0);
        if (visitor === undefined) continue;
        if (entry.kind === "entered") this.#enter(visitor, entry.session);
        else if (entry.kind === "waiting") this.#visitLater(visitor, this.#refreshSeconds);
      }
    }
    for (const leave of leaves) await this.#send({ leaves: [leave] });
    for (; this.#nextArrival < this.second + 1; this.#nextArrival += this.#gap())
      await this.#join();
  }

  #gap(): number {
    return -Math.log(1 - this.#random.next()) / this.#scenario.arrivalsPerSecond;
  }

  get #refreshSeconds(): number {
    return this.#scenario.rules.refreshMs / 1_000;
  }

  async #join(): Promise<void> {
    if (this.#random.next() < (this.status?.rejectRatio ?? 0)) {
      this.turnedAwayCount += 1;
      return;
    }
    const {
      joinedCount,
      firstNumber: number,
      enteredSessions,
    } = await this.#send({ joinCount: 1 });
    if (joinedCount === 0) {
      this.turnedAwayCount += 1;
      return;
    }
    const { patienceSeconds = Number.POSITIVE_INFINITY } = this.#scenario;
    const leavesSecond = this.second - patienceSeconds * Math.log(1 - this.#random.next());
    const announced = this.#announce(number);
    const visitor: Visitor = {
      ...{ number, joinedSecond: this.second, announced, leavesSecond, session: undefined },
    };
    this.#visitors.set(number, visitor);
    const [session] = enteredSessions;
    if (session !== undefined) this.#enter(visitor, session);
    else this.#visitLater(visitor, 1 + Math.floor(this.#random.next() * this.#refreshSeconds));
  }

  #announce(number: number): AnnouncedWait | undefined {
    const { status } = this;
    if (status === undefined) return undefined;
    const ahead = aheadOf(placeOf(number, status.shuffles), status);
    const range = waitRange(ahead, status, this.#refreshSeconds);
    return range && { ...range, rangeFactor: status.rangeFactor };
  }

  #visitLater(visitor: Visitor, seconds: number): void {
    this.#at(this.second + seconds, () => {
      if (this.second < visitor.leavesSecond) this.#turn.visits.push(visitor.number);
      else {
        this.#turn.leaves.push({ number: visitor.number });
        this.#visitors.delete(visitor.number);
      }
    });
  }

  #enter(visitor: Visitor, session: number): void {
    visitor.session = session;
    const trueSeconds = this.second - visitor.joinedSecond;
    this.waitSeconds.push(trueSeconds);
    const { announced, number } = visitor;
    if (announced !== undefined && trueSeconds > 0) {
      this.waits.push({ announced, trueSeconds });
      this.#counts.endedCount += 1;
      const { rangeFactor } = this.status ?? { rangeFactor: 1 };
      if (rangeHeld(announced, trueSeconds, rangeFactor)) this.#counts.heldCount += 1;
    }
    const seconds = this.#scenario.visitSeconds(this.#random);
    const renewEach = Math.max(1, Math.floor(this.#scenario.rules.sessionMs / 4_000));
    const endSecond = this.second + Math.max(1, Math.round(seconds));
    for (let at = this.second + renewEach; at < endSecond; at += renewEach) {
      this.#at(at, () => void this.#send({ renewals: [{ session, number }] }));
    }
    this.#at(endSecond, () => {
      this.#turn.leaves.push({ number, session });
      this.#visitors.delete(number);
    });
  }

  #at(second: number, act: () => void): void {
    const acts = this.#agenda.get(second) ?? [];
    acts.push(act);
    this.#agenda.set(second, acts);
  }

  #send(turn: Partial<RoomTurn>): Promise<RoomTurnAnswer> {
    const { rules } = this.#scenario;
    const whose = { room: rules.name, lineId: 1, lostAfterSeconds: lostAfterSeconds(rules) };
    const empty = { joinCount: 0, visits: [], renewals: [], letIns: [], leaves: [] };
    return this.#rooms.turn({ ...whose, ...empty, spanMax: rules.waitingMax, ...turn });
  }
}

const bounds = { lineWordsMax: 262_144, sessionsReadMax: 65_536, stepEntriesMax: 4_096 };
