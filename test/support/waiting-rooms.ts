import type { RoomPolicy } from "../../src/policy/waiting-rooms/room-policy.js";

/** A room in front of the service "orders" that guards all of it, but for what a test names. */
export function testRoom(fields: Partial<RoomPolicy> = {}): RoomPolicy {
  return {
    name: "shop",
    service: "orders",
    match: { hosts: [], paths: [], methods: [] },
    visitors: "navigations",
    activeUsersMax: 100,
    entriesPerMinuteMax: "auto",
    sessionMs: 600_000,
    renews: true,
    order: "fifo",
    queueAll: false,
    waitingMax: 100_000,
    refreshMs: 20_000,
    missedRefreshesMax: 3,
    events: [],
    estimatedWait: undefined,
    gate: undefined,
    joinLimit: undefined,
    bypass: { headers: [], sources: [], priorities: [] },
    page: { status: 200, template: undefined, texts: new Map() },
    cookie: {
      name: "room-cookie",
      domain: undefined,
      path: "/",
      sameSite: "lax",
      isSecure: true,
      addressBits: undefined,
    },
    endpointPath: "/.well-known/waiting-room",
    onStoreFailure: "keep",
    ...fields,
  };
}
