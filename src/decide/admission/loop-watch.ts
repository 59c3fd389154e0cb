import type { Cancel, Clock } from "../../core/base/clock.js";
import type { Pressure, PressureEvent } from "../rate-limit/pressure.js";

interface LoopWatchParts {
  readonly clock: Clock;
  readonly pressure: Pressure;
  readonly onEvent: (event: PressureEvent) => void;
  /** Whether the loop has had next to nothing to do for a while. Default: it never has. */
  readonly isIdle?: () => boolean;
}

/** Time between two looks: what is seen of a late turn is at most this much too little. */
const tickMs = 20;

/** The same for a loop that idles: each look wakes the process. */
const idleTickMs = 250;

/** Tells the pressure regularly how late the event loop is, until it is cancelled. */
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
