import type { Cancel, Clock } from "../../core/base/clock.js";
import type { Pressure, PressureEvent } from "../rate-limit/pressure.js";

interface LoopWatchParts {
  readonly clock: Clock;
  readonly pressure: Pressure;
  readonly onEvent: (event: PressureEvent) => void;
}

/** Time between two looks: what is seen of a late turn is at most this much too little. */
const tickMs = 20;

/** Tells the pressure regularly how late the event loop is, until it is cancelled. */
export function watchLoop({ clock, pressure, onEvent }: LoopWatchParts): Cancel {
  let cancel: Cancel;
  const tick = (): void => {
    const nowMs = clock.monotonicMs();
    cancel = clock.schedule(tickMs, tick);
    const event = pressure.tick(nowMs, nowMs + tickMs);
    if (event !== undefined) onEvent(event);
  };
  tick();
  return () => cancel();
}
