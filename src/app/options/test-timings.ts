import { isKeyOf } from "../../core/base/key-of.js";
import { defaultHeartbeatMs, defaultLeaseMs } from "../../fleet/claims/membership.js";
import { defaultShareHeartbeatMs, defaultShareLeaseMs } from "../../fleet/claims/permit-shares.js";
import { defaultLeaderHeartbeatMs, defaultLeaderLeaseMs } from "../../fleet/loop/leader.js";
import { defaultSilenceMsMax } from "../../store/redis/silence-watch.js";

/** The setting with the timings. It is only for tests, so no help and no page mentions it. */
export const testTimingsName = "HEADGATE_TEST_TIMINGS";

/**
 * Times in milliseconds that replicas agree on because they run the same program. All replicas of a
 * fleet must use the same ones, and each is also tested at its default, so users cannot change
 * them. Tests shorten them, because a scenario at these values takes minutes of waiting.
 */
export const defaultTimings = {
  /** Time after its last heartbeat for which a replica counts as live. */
  replicaLeaseMs: defaultLeaseMs,
  replicaHeartbeatMs: defaultHeartbeatMs,
  /** Time after its last heartbeat for which a leader leads. */
  leaderLeaseMs: defaultLeaderLeaseMs,
  leaderHeartbeatMs: defaultLeaderHeartbeatMs,
  /** Time after its last heartbeat for which a replica keeps its permits of the fleet. */
  permitLeaseMs: defaultShareLeaseMs,
  permitHeartbeatMs: defaultShareHeartbeatMs,
  /** Maximum time for which a Redis that owes a reply may be silent. */
  redisSilenceMsMax: defaultSilenceMsMax,
} as const satisfies Readonly<Record<string, number>>;

/** The times of a process, in milliseconds. */
export type Timings = { readonly [name in keyof typeof defaultTimings]: number };

/** Maximum value of a timing, in milliseconds. */
const timingMsMax = 3_600_000;

/** The timings, or the reason why there are none, which never contains the text. */
type ParsedTimings =
  | { readonly kind: "timings"; readonly timings: Timings }
  | { readonly kind: "problem"; readonly message: string };

/**
 * Reads `name=milliseconds` pairs, separated by commas. Other times keep their defaults. Example:
 * `leaderLeaseMs=600,leaderHeartbeatMs=50`.
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
