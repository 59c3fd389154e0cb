import type { EstimatedWaitSettings } from "../../core/admission/estimated-wait.js";
import type { GateSettings } from "../../core/admission/gate.js";
import type { Priority } from "../../core/admission/priority.js";

/** A number that a policy writes, or what Headgate measures. */
export type NumberOrAuto = number | "auto";

/** Which requests a room stands before. Empty lists stand for all. */
export interface RoomMatch {
  /** Values of `:authority`, in lower case, without ports. */
  readonly hosts: readonly string[];
  /** See `matchesPath`; a path that servers may read differently counts as matched. */
  readonly paths: readonly string[];
  /** In upper case. */
  readonly methods: readonly string[];
}

/** How the next place to enter is chosen. */
export type RoomOrder = "fifo" | "random" | "reject" | "passthrough";

/** An announced opening, such as the start of a sale. */
export interface RoomEvent {
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly startsAtMs: number;
  readonly endsAtMs: number;
  /** How long before the start visitors may come and wait; 0: not. */
  readonly preQueueMs: number;
  /** Whether those who came before the start get places by chance. */
  readonly shuffles: boolean;
  /** While it is open; undefined: those of the room. */
  readonly activeUsersMax: NumberOrAuto | undefined;
  readonly entriesPerMinuteMax: NumberOrAuto | undefined;
}

/** Who does not wait. */
export interface RoomBypass {
  /** A header that has one of the values; with no values: that is there. */
  readonly headers: readonly { readonly name: string; readonly values: readonly string[] }[];
  /** CIDR blocks of callers' addresses. */
  readonly sources: readonly string[];
  readonly priorities: readonly Priority[];
}

/** What a visitor sees. */
export interface RoomPage {
  /** 200 or 503. */
  readonly status: number;
  /** HTML with `{{...}}` fields; undefined: the built-in page. */
  readonly template: string | undefined;
  /** Texts by language, which replace those of the built-in page; by the names of its texts. */
  readonly texts: ReadonlyMap<string, ReadonlyMap<string, string>>;
}

/** The cookie of tickets and sessions. */
export interface RoomCookie {
  readonly name: string;
  readonly domain: string | undefined;
  readonly path: string;
  readonly sameSite: "lax" | "strict" | "none";
  readonly isSecure: boolean;
  /** Bits of the caller's address that a ticket is bound to; undefined: to none. */
  readonly addressBits: { readonly v4: number; readonly v6: number } | undefined;
}

/** A rate limit per caller in front of joining. */
export interface RoomJoinLimit {
  /** By the caller's address, or by a header's value. */
  readonly per:
    | { readonly kind: "remoteAddress" }
    | { readonly kind: "header"; readonly header: string };
  readonly requests: number;
  readonly periodSeconds: number;
  readonly burst: number;
}

/** An item of `waitingRooms`: a virtual queue in front of a service. */
export interface RoomPolicy {
  readonly name: string;
  /** The service, by name. */
  readonly service: string;
  readonly match: RoomMatch;
  /** Whether only navigations of browsers wait, or every request; others of the room pass. */
  readonly visitors: "navigations" | "all";
  /** Sessions at a time. `auto`: from the service's learned limit and the measured sessions. */
  readonly activeUsersMax: NumberOrAuto;
  /** Entrances a minute. `auto`: only sessions bound them. */
  readonly entriesPerMinuteMax: NumberOrAuto;
  readonly sessionMs: number;
  /** Whether each request of a session makes it last from then. */
  readonly renews: boolean;
  readonly order: RoomOrder;
  /** Whether everybody waits at first, even while sessions are free. */
  readonly queueAll: boolean;
  /** Visitors who wait at a time. */
  readonly waitingMax: number;
  /** How often a page asks for its place. */
  readonly refreshMs: number;
  /** Refreshes that may be missed in a row before a place is lost. */
  readonly missedRefreshesMax: number;
  readonly events: readonly RoomEvent[];
  /** Who may join by the wait that it must expect; undefined: `waitingMax` alone. */
  readonly estimatedWait: EstimatedWaitSettings | undefined;
  /** What Envoys turn away by themselves; undefined: nothing. */
  readonly gate: GateSettings | undefined;
  readonly joinLimit: RoomJoinLimit | undefined;
  readonly bypass: RoomBypass;
  readonly page: RoomPage;
  readonly cookie: RoomCookie;
  /** What the paths of `/join`, `/position` and `/leave` begin with. */
  readonly endpointPath: string;
  /**
   * Without the store: sessions and places stay as they are and nobody enters, everybody enters, or
   * everybody waits.
   */
  readonly onStoreFailure: "keep" | "open" | "close";
}

/** What of a policy says which rooms there are. */
export interface PolicyRooms {
  readonly waitingRooms: readonly RoomPolicy[];
}

/** The waiting rooms in front of a service, in the policy's order. */
export function roomsOf(
  { name }: { readonly name: string },
  { waitingRooms }: PolicyRooms,
): readonly RoomPolicy[] {
  return waitingRooms.filter(({ service }) => service === name);
}
