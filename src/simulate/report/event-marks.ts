import type { Scenario } from "../../policy/scenario/parse-scenario.js";
import type { ScenarioEvent } from "../../policy/scenario/scenario-events.js";
import type { SvgMark } from "./svg-plot.js";

/** Returns marks for the starts and ends of a scenario's events, with labels for a plot. */
export function eventMarks({ events, durationMs }: Scenario): readonly SvgMark[] {
  return events
    .flatMap((event) => {
      const { at: atMs = 0, for: forMs } = event;
      const label = labelOf(event);
      const endMs = atMs + (forMs ?? durationMs);
      const end = endMs < durationMs ? [{ atMs: endMs, label: "" }] : [];
      return [{ atMs, label }, ...end];
    })
    .sort((one, other) => one.atMs - other.atMs);
}

function labelOf(event: ScenarioEvent): string {
  const { workers, slow, store, callers, clock, zone, deploy } = event;
  if (workers !== undefined) {
    return `workers × ${workers.ratio ?? 1}${workers.work === "lost" ? ", work lost" : ""}`;
  }
  if (slow !== undefined) return `work takes × ${slow.factor ?? 1}`;
  if (store !== undefined) return `store ${store.state}`;
  if (callers !== undefined) return `${callers.name?.value ?? "callers"} × ${callers.factor ?? 1}`;
  if (zone !== undefined) return `zone ${zone.lost ?? 1} lost`;
  if (deploy !== undefined) return `deploy of ${deploy.of}`;
  return clock === undefined ? "" : `clock of headgate ${clock.headgate} wrong`;
}
