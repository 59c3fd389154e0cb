import { isKeyOf } from "../../core/base/key-of.js";
import { defaultHeartbeatMs, defaultLeaseMs } from "../../fleet/claims/membership.js";
import { defaultShareHeartbeatMs, defaultShareLeaseMs } from "../../fleet/claims/permit-shares.js";
import { defaultLeaderHeartbeatMs, defaultLeaderLeaseMs } from "../../fleet/loop/leader.js";
import { defaultSilenceMsMax } from "../../store/redis/silence-watch.js";

/** The setting that carries them. It is for tests alone, so no help and no page has it. */
export const testTimingsName = "HEADGATE_TEST_TIMINGS";

/**
 * Times in milliseconds that replicas agree on by being the same program. All replicas of a fleet
 * must run with the same ones, and each is proven at its default too, so no user can change them;
 * tests shorten them, because a scenario at these values takes minutes of waiting.
 */
export const defaultTimings = {
  /** A replica is counted as live for so long after its last heartbeat. */
  replicaLeaseMs: defaultLeaseMs,
  replicaHeartbeatMs: defaultHeartbeatMs,
  /** A leader leads for so long after its last heartbeat. */
  leaderLeaseMs: defaultLeaderLeaseMs,
  leaderHeartbeatMs: defaultLeaderHeartbeatMs,
  /** A replica holds its permits of the fleet for so long after its last heartbeat. */
  permitLeaseMs: defaultShareLeaseMs,
  permitHeartbeatMs: defaultShareHeartbeatMs,
  /** A Redis that owes a reply may be silent for so long. */
  redisSilenceMsMax: defaultSilenceMsMax,
} as const satisfies Readonly<Record<string, number>>;

/** The times of a process, in milliseconds. */
export type Timings = { readonly [name in keyof typeof defaultTimings]: number };

/** The longest of them, in milliseconds. */
const timingMsMax = 3_600_000;

/** The timings, or why there are none; the reason never echoes the text. */
type ParsedTimings =
  | { readonly kind: "timings"; readonly timings: Timings }
  | { readonly kind: "problem"; readonly message: string };

/**
 * Reads `name=milliseconds` pairs, separated by commas; what is not named keeps its default.
 * Example: `leaderLeaseMs=600,leaderHeartbeatMs=50`.
 */
export function parseTimings(text: string | undefined): ParsedTimings {
  const timings: { -readonly [name in keyof Timings]: number } = { ...defaultTimings };
  for (const pair of text === undefined || text === "" ? [] : text.split(",")) {
    const [name = "", digits = ""] = pair.split("=");
    const valueMs = Number(digits);
    if (!isKeyOf(defaultTimings, name) || !/^[0-9]{1,7}$/.test(digits) || valueMs > timingMsMax) {
      const names = Object.keys(timings).join(", ");
      const range = `milliseconds from 0 to ${timingMsMax}`;
      return { kind: "problem", message: `must be NAME=NUMBER,...: ${range}, of ${names}` };
    }
    timings[name] = valueMs;
  }
  return { kind: "timings", timings };
}
