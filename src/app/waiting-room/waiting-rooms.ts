import { createHash } from "node:crypto";
import { assert } from "../../core/base/errors.js";
import type { ServiceLoad } from "../../core/waiting-room/auto-capacity.js";
import { RoomAdmission } from "../../decide/waiting-room/room-admission.js";
import type { RoomAccess } from "../../decide/waiting-room/room-door.js";
import type { RoomControls } from "../../decide/waiting-room/room-view.js";
import { roomGateName } from "../../fleet/records/gate-registry.js";
import { RoomLines } from "../../fleet/waiting-room/room-lines.js";
import type { RoomLineEvent, StoreRoomLine } from "../../fleet/waiting-room/store-room-line.js";
import type { OpenAdmission } from "../admission/admission.js";
import type { Logger } from "../base/logger.js";
import { OpenStack } from "../base/open-stack.js";
import type { Decisions } from "../decisions/decisions.js";
import type { Fleet } from "../fleet/fleet.js";
import type { Foundation } from "../foundation/foundation.js";
import type { Runtime } from "../foundation/runtime.js";
import { roomMetrics } from "../metrics/room-metrics.js";
import { remedyOf } from "../store/store-remedies.js";
import { AppRoomControls } from "./room-controls.js";
import { openTicketKeys } from "./ticket-keys.js";

interface WaitingRoomsParts extends Pick<Foundation, "policies" | "opened"> {
  readonly fleet: Fleet;
  readonly decisions: Decisions;
  readonly admission: OpenAdmission;
}

/** Waiting rooms of this process. */
export interface OpenWaitingRooms {
  /** Decides requests: rooms, and admission behind them. */
  readonly admission: RoomAdmission;
  readonly controls: RoomControls;
  /** By room, the percentage of visitors without a ticket that Envoys refuse themselves. */
  rejectPercents(): ReadonlyMap<string, number>;
  /** Gives up leadership, so that other replicas take over at once. */
  close(): Promise<void>;
}

/** Time between two updates of rooms' gates, in milliseconds. */
const tickMs = 1_000;

/**
 * Maximum time that a visitor waits for the store, in milliseconds, unless decisions wait longer.
 * Less than the `message_timeout` of generated filters, after which Envoy lets a request pass.
 */
const turnTimeoutMs = 150;

/**
 * Opens waiting rooms in front of admission. Without a shared store, each process has its own
 * lines. Resolves when the store has been asked for each room, whether it answered or not.
 *
 * @throws StartFailure for a file of keys that is wrong
 */
export async function openWaitingRooms(
  runtime: Runtime,
  parts: WaitingRoomsParts,
): Promise<OpenWaitingRooms> {
  const { config, clock, random, logger, metrics } = runtime;
  const { policies, opened, fleet, decisions } = parts;
  const { rooms: store } = opened.coordination;
  const stack = new OpenStack();
  const path = config.waitingRoomKeysFile;
  const keys = stack.keep(await openTicketKeys({ path, clock, logger }));
  const lines = stack.keep(openLines(runtime, parts));
  await lines.known;
  const access = (room: string): RoomAccess => {
    const line = lines.lineOf(room);
    return { line, keys: () => keys.keysOf(line.head?.secret) };
  };
  const admission = new RoomAdmission({
    policies: policies.feed,
    inner: parts.admission.admission,
    decider: decisions.decider,
    access,
    gateSettings: (room, own) => fleet.gates.settingsOf(roomGateName(room), own),
    draw: () => random.next(),
    nowMs: () => clock.epochUs() / 1_000,
    hash: (text) => createHash("sha256").update(text).digest("base64"),
  });
  const { lineOf } = lines;
  const controls = new AppRoomControls({ admission, store, lineOf, clock });
  metrics.add(roomMetrics(controls));
  let cancelTick = (): void => {};
  const tick = (): void => {
    cancelTick = clock.schedule(tickMs, tick);
    for (const door of admission.doors.values()) door.tick();
  };
  tick();
  stack.keep({ close: () => cancelTick() });
  return {
    admission,
    controls,
    rejectPercents: () => rejectPercentsOf(admission),
    close: () => stack.close(),
  };
}

/** Opens the lines of the active policy's rooms. */
function openLines(runtime: Runtime, parts: WaitingRoomsParts) {
  const { config, clock, random, logger } = runtime;
  const { policies, opened } = parts;
  const { rooms: store, isShared } = opened.coordination;
  const lines = new RoomLines({
    store,
    clock,
    random,
    turnTimeoutMs: Math.max(turnTimeoutMs, config.storeBudgetMs),
    load: ({ name }) => loadOf(name, parts, clock.monotonicMs()),
    onEvent: (event) => logRoom(event, logger),
  });
  const follow = (): void => {
    const rooms = policies.feed.current()?.waitingRooms ?? [];
    lines.change(rooms);
    if (rooms.length === 0 || isShared) return;
    const line = { event: "roomsPerProcess", rooms: rooms.map(({ name }) => name) };
    logger.warn(line, "There is no shared store: each process has waiting rooms of its own.");
  };
  follow();
  const stopFollowing = policies.feed.onLoaded(follow);
  const known = (policies.feed.current()?.waitingRooms ?? []).map(async ({ name }) => {
    const line = lines.line(name);
    await line?.beat();
    // A new leader receives its own first step one beat later.
    if (line?.status === undefined) await line?.beat();
  });
  return {
    known: Promise.all(known),
    lineOf: (room: string): StoreRoomLine => {
      const line = lines.line(room);
      assert(line !== undefined, "each room of the active policy has a line");
      return line;
    },
    close: async () => {
      stopFollowing();
      await lines.stop();
    },
  };
}

function rejectPercentsOf({ doors }: RoomAdmission): ReadonlyMap<string, number> {
  const gated = [...doors].filter(([, { policy }]) => policy.gate !== undefined);
  return new Map(gated.map(([room, door]) => [room, Math.round(100 * door.gateRejectRatio)]));
}

/**
 * Estimates the load of a room's service for the whole fleet: this replica's part of the fleet's
 * requests in flight is taken to equal its part of the fleet's limit.
 */
function loadOf(
  room: string,
  { policies, admission }: WaitingRoomsParts,
  nowMs: number,
): ServiceLoad | undefined {
  const rooms = policies.feed.current()?.waitingRooms ?? [];
  const name = rooms.find((one) => one.name === room)?.service;
  for (const service of admission.admission.services()) {
    if (service.name !== name) continue;
    const { whole } = service.pools;
    const limit = whole.fleetLimit();
    const ownLimit = whole.limit(nowMs);
    if (!Number.isFinite(limit) || !(ownLimit > 0)) return undefined;
    return { limit, inFlightCount: whole.inUseCount() * (limit / ownLimit) };
  }
  return undefined;
}

/** Logs events of lines. The log contains no data of a visitor. */
function logRoom(event: RoomLineEvent, logger: Logger): void {
  const { kind, ...facts } = event;
  switch (event.kind) {
    case "leaderElected":
      logger.info({ event: "roomLeaderElected", ...facts }, "Leads a waiting room.");
      return;
    case "leaderLost":
      logger.info({ event: "roomLeaderLost", ...facts }, "Another replica leads a waiting room.");
      return;
    case "lineBegan":
      logger.warn(
        { event: "roomLineBegan", ...facts },
        "The store had lost a waiting room: its visitors have to join again.",
      );
      return;
    case "storeLost":
      logger.warn(
        { event: "roomStoreLost", ...facts, remedy: remedyOf(event.code) },
        "A waiting room cannot be read from the store: onStoreFailure applies.",
      );
      return;
    case "storeFound":
      logger.info({ event: "roomStoreFound", ...facts }, "A waiting room is read again.");
      return;
  }
}
