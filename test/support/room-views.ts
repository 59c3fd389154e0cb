import type { RoomOverride, RoomStatus } from "../../src/core/waiting-room/room-line.js";
import {
  type RoomControls,
  type RoomView,
  roomWaitBoundsSeconds,
  type TicketView,
} from "../../src/decide/waiting-room/room-view.js";
import { testRoom } from "./waiting-rooms.js";

/** A busy room's status, but for what a test names. */
export function testStatus(fields: Partial<RoomStatus> = {}): RoomStatus {
  return {
    lineId: 7,
    second: 100,
    nextNumber: 1_500,
    calledPlace: 1_000,
    waitingCount: 400,
    liveByBlock: [400],
    activeCount: 90,
    activeCountMax: 100,
    entriesPerSecond: 0.5,
    entriesMeasuredCount: 200,
    abandonPerSecond: 0.001,
    sessionSeconds: 200,
    rangeFactor: 1.2,
    rejectRatio: 0,
    liveAtFront: new Uint8Array(),
    shufflesNext: false,
    shuffles: [],
    phase: "none",
    opensSecond: undefined,
    mode: "open",
    ...fields,
  };
}

/** A busy room as an operator sees it, but for what a test names. */
export function testRoomView(
  fields: Partial<RoomView> & { readonly status?: RoomStatus | undefined } = {},
): RoomView {
  const { status = testStatus(), ...view } = fields;
  return {
    policy: testRoom(),
    line: { status, isReachable: true, second: () => status.second + 1 },
    override: undefined,
    leaderId: "replica-1",
    isLeader: true,
    phase: "none",
    estimate: { lowSeconds: 540, middleSeconds: 600, highSeconds: 660 },
    counts: new Map([
      ["joined", 1_500],
      ["entered", 1_000],
    ]),
    waits: {
      endedCount: 10,
      inRangeCount: 9,
      counts: [...roomWaitBoundsSeconds.map((bound) => (bound === 600 ? 9 : 0)), 1],
      expectedSeconds: 6_000,
      actualSeconds: 6_300,
    },
    gateRejectRatio: 0.25,
    ...view,
  };
}

/** Rooms of a test, and what operators have done with them. */
export class TestRooms implements RoomControls {
  views: readonly RoomView[];
  readonly overrides: (readonly [room: string, override: RoomOverride | undefined])[] = [];
  readonly letIns: string[] = [];
  /** What another replica has set, of which this one has not heard yet. */
  setElsewhere: RoomOverride | undefined;
  letInOutcome: "entered" | "gone" | "forged" | "full" = "entered";
  /** By the text of the ticket. */
  readonly tickets = new Map<string, TicketView>();

  constructor(...views: readonly RoomView[]) {
    this.views = views;
  }

  rooms(): readonly RoomView[] {
    return this.views;
  }

  room(name: string): RoomView | undefined {
    return this.views.find(({ policy }) => policy.name === name);
  }

  async refresh(room: string): Promise<void> {
    this.views = this.views.map((view) => {
      const isSet = view.policy.name === room && this.setElsewhere !== undefined;
      return isSet ? { ...view, override: this.setElsewhere } : view;
    });
    this.setElsewhere = undefined;
  }

  async override(room: string, override: RoomOverride | undefined): Promise<void> {
    this.overrides.push([room, override]);
    this.views = this.views.map((view) => {
      return view.policy.name === room ? { ...view, override } : view;
    });
  }

  async letIn(_room: string, ticket: string): Promise<"entered" | "gone" | "forged" | "full"> {
    this.letIns.push(ticket);
    return this.letInOutcome;
  }

  async explain(room: string, ticket: string): Promise<TicketView | undefined> {
    const view = this.tickets.get(ticket);
    return view?.room === room ? view : undefined;
  }
}
