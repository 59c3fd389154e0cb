import type { AlertWords } from "./alert.js";

/** Alerts of waiting rooms, with their sections of the runbook. */
export const roomAlertWords = {
  HeadgateWaitingRoomGrows: {
    severity: "warning",
    summary: "The line of the waiting room {{ $labels.room }} grows",
    means: "For ten minutes more visitors have joined than have entered or left.",
    look:
      "The room's dashboard: joining and entering, sessions in use, capacity; what visitors are " +
      "told.",
    act:
      "If the service can take more, raise the capacity: `headgate rooms set`. If the wait is " +
      "too long, drain the room: nobody joins any more, and those who wait still enter.",
  },
  HeadgateWaitEstimatesFail: {
    severity: "warning",
    summary: "Estimates of the waiting room {{ $labels.room }} do not hold",
    means: "Fewer than 80 % of the waits were within the range that the visitor was told.",
    look:
      "The panel of estimates against waits: do visitors wait longer, or shorter? Did the " +
      "capacity, or the length of sessions, change?",
    act:
      "Ranges adapt to waits that end, so it passes by itself after a change of the capacity. If " +
      "it stays, sessions differ too much: set newUsersPerMinute, which makes entrances steady.",
  },
  HeadgateWaitingRoomStuck: {
    severity: "critical",
    summary: "Nobody enters from the waiting room {{ $labels.room }}",
    means: "Visitors wait and sessions are free, but nobody has entered for five minutes.",
    look:
      "headgate_waiting_room_leading, headgate_waiting_room_status_age_seconds; `headgate rooms " +
      "show`: is there a leader, and is newUsersPerMinute 0? HeadgateStoreAway.",
    act:
      "Fix the store, or restart the replica that leads: another one goes on. Until then, " +
      "`headgate rooms let-in` admits single visitors.",
  },
  HeadgateWaitingRoomStoreAway: {
    severity: "critical",
    summary: "A replica cannot reach the store of the waiting room {{ $labels.room }}",
    means: "This replica follows onStoreFailure of the room: visitors wait, or all of them enter.",
    look: "HeadgateStoreAway; the network between this replica and the store.",
    act: "Bring the store back. Places and sessions are kept while it is away.",
  },
  HeadgateForgedTickets: {
    severity: "warning",
    summary: "Many tickets of the waiting room {{ $labels.room }} are forged",
    means:
      "More than 5 % of the requests have a cookie that this room has not signed. Such a ticket " +
      "lets nobody in, but somebody may be trying.",
    look:
      "Was a key of tickets removed while visitors still had tickets of it? Which callers send " +
      "them, by Envoy's access log?",
    act:
      "Put a removed key back behind the new one. Against an attack, set `joinLimit`, or deny " +
      "these callers.",
  },
} as const satisfies Record<string, AlertWords>;
