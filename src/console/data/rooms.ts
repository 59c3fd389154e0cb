import { durationMs } from "@bufbuild/protobuf/wkt";
import type { Room, WaitRange } from "../../gen/headgate/admin/v1/admin_pb.js";
import { formatSpan } from "./format.js";

/** A waiting room, as seen by the replica with the latest report from the leader, and by all. */
export interface FleetRoom {
  readonly room: Room;
  readonly replicas: readonly Room[];
  /** Ratio of waits within the announced range, over all replicas; undefined: none has ended. */
  readonly heldRatio: number | undefined;
}

/** Returns rooms by name, in the order of the policy. */
export function mergeRooms(rooms: readonly Room[]): readonly FleetRoom[] {
  const names = [...new Set(rooms.map(({ name }) => name))];
  return names.map((name) => mergeOne(rooms.filter((one) => one.name === name)));
}

function mergeOne(replicas: readonly Room[]): FleetRoom {
  const ageMs = ({ line }: Room): number =>
    line?.age === undefined ? Number.POSITIVE_INFINITY : durationMs(line.age);
  const room = replicas.reduce((best, one) => (ageMs(one) < ageMs(best) ? one : best));
  const waits = replicas.reduce((sum, one) => sum + Number(one.waits), 0);
  const inRange = replicas.reduce((sum, one) => sum + Number(one.waitsInRange), 0);
  return { room, replicas, heldRatio: waits === 0 ? undefined : inRange / waits };
}

/** If the ratio of correct ranges is below this, the console warns about the estimates. */
export const heldRatioNoticed = 0.8;

/** Judges a room in one word. */
export function judgeRoom({ room, replicas }: FleetRoom): {
  readonly tone: "good" | "notice" | "warn" | "bad";
  readonly word: string;
} {
  const { line, mode, phase } = room;
  if (replicas.some((one) => !one.isStoreReachable)) return { tone: "bad", word: "store away" };
  if (room.leader === "") return { tone: "bad", word: "no leader" };
  if (mode !== "open") return { tone: "warn", word: mode };
  if (phase === "preQueue") return { tone: "notice", word: "pre-queue" };
  if (line !== undefined && line.waiting > 0n) return { tone: "warn", word: "visitors wait" };
  return { tone: "good", word: phase === "open" ? "event open" : "open" };
}

/** Returns a range of waits: `9m to 11m`; a dash if it is unknown. */
export function formatRange(range: WaitRange | undefined): string {
  const { low, high } = range ?? {};
  if (low === undefined || high === undefined) return "-";
  return `${formatWait(durationMs(low) / 1_000)} to ${formatWait(durationMs(high) / 1_000)}`;
}

/** Returns a wait for display: in whole seconds, from ten minutes on in whole minutes. */
export function formatWait(seconds: number): string {
  const unit = seconds >= 600 ? 60 : 1;
  const rounded = Math.round(seconds / unit) * unit;
  return rounded === 0 ? "0s" : formatSpan(rounded * 1_000);
}

/** Returns mean waits of visitors who entered in the last `count` points; undefined: none. */
export function meanWaits<P extends { readonly waits: number }>(
  points: readonly (P | undefined)[],
  of: (point: P) => number,
  count = 60,
): readonly (number | undefined)[] {
  return points.map((_, at) => {
    const recent = points.slice(Math.max(0, at - count + 1), at + 1);
    const known = recent.flatMap((point) => (point === undefined ? [] : [point]));
    const waits = known.reduce((sum, point) => sum + point.waits, 0);
    return waits === 0 ? undefined : known.reduce((sum, one) => sum + of(one), 0) / waits;
  });
}
