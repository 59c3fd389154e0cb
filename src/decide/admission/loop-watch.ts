import type { Cancel, Clock } from "../../core/base/clock.js";
import type { Pressure, PressureEvent } from "../rate-limit/pressure.js";

interface LoopWatchParts {
  readonly clock: Clock;
  readonly pressure: Pressure;
  readonly onEvent: (event: PressureEvent) => void;
  /** Whether the event loop has been almost idle for a while. Default: never. */
  readonly isIdle?: () => boolean;
}

/** Time between two ticks, in ms. Lateness is underestimated by at most this much. */
const tickMs = 20;

/** The same for an idle loop: each tick wakes the process. */
const idleTickMs = 250;

/** Regularly reports to `pressure` how late the event loop is, until it is cancelled. */
export function watchLoop(parts: LoopWatchParts): Cancel {
  const { clock, pressure, onEvent, isIdle = () => false } = parts;
  let cancel: Cancel;
  const tick = (): void => {
    const nowMs = clock.monotonicMs();
    const delayMs = isIdle() ? idleTickMs : tickMs;
    cancel = clock.schedule(delayMs, tick);
    const event = pressure.tick(nowMs, nowMs + delayMs);
    if (event !== undefined) onEvent(event);
  };
  tick();
  return () => cancel();
}
