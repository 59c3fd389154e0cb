import type { roomCookie } from "./room-cookie.js";
import type { ReadRoom } from "./room-form.js";
import type { roomPage } from "./room-page.js";

/** Which requests a room stands before. Empty lists stand for all. */
export interface RoomMatch {
  /** Values of `:authority`, in lower case, without ports. */
  readonly hosts: readonly string[];
  /** See `matchesPath`; a path that servers may read differently counts as matched. */
  readonly paths: readonly string[];
  /** In upper case. */
  readonly methods: readonly string[];
}

/** The cookie of tickets and sessions. */
export type RoomCookie = Omit<typeof roomCookie.defaults, "name"> & { readonly name: string };

/** What is known of a room once all of it is read. */
interface Finished {
  readonly name: string;
  /** The service, by name. */
  readonly service: string;
  readonly match: RoomMatch;
  readonly bypass: Omit<ReadRoom["bypass"], "headers"> & {
    /** A header that has one of the values; with no values: that is there. */
    readonly headers: readonly { readonly name: string; readonly values: readonly string[] }[];
  };
  /** The text of a `templateFile` is its template. */
  readonly page: Omit<typeof roomPage.defaults, "templateFile">;
  readonly cookie: RoomCookie;
  /** What the paths of `/join`, `/position` and `/leave` begin with. */
  readonly endpointPath: string;
}

/** An item of `waitingRooms`: a virtual queue in front of a service. */
export type RoomPolicy = Omit<ReadRoom, keyof Finished> & Finished;

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
