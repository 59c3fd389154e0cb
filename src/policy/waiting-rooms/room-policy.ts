import type { roomCookie } from "./room-cookie.js";
import type { ReadRoom } from "./room-form.js";
import type { roomPage } from "./room-page.js";

/** The requests that a room applies to. Empty lists match all. */
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

/** Properties of a room that are known after it is read. */
interface Finished {
  readonly name: string;
  /** The service, by name. */
  readonly service: string;
  readonly match: RoomMatch;
  readonly bypass: Omit<ReadRoom["bypass"], "headers"> & {
    /** Headers with one of the values; without values, presence is enough. */
    readonly headers: readonly { readonly name: string; readonly values: readonly string[] }[];
  };
  /** The text of a `templateFile` becomes the template. */
  readonly page: Omit<typeof roomPage.defaults, "templateFile">;
  readonly cookie: RoomCookie;
  /** Prefix of the paths `/join`, `/position` and `/leave`. */
  readonly endpointPath: string;
}

/** An item of `waitingRooms`: a virtual queue in front of a service. */
export type RoomPolicy = Omit<ReadRoom, keyof Finished> & Finished;

/** The rooms of a policy. */
export interface PolicyRooms {
  readonly waitingRooms: readonly RoomPolicy[];
}

/** Returns the waiting rooms in front of a service, in the policy's order. */
export function roomsOf(
  { name }: { readonly name: string },
  { waitingRooms }: PolicyRooms,
): readonly RoomPolicy[] {
  return waitingRooms.filter(({ service }) => service === name);
}
