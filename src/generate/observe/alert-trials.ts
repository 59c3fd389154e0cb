import type { Trial, TrialSeries } from "./alert.js";
import { quoted } from "./promql.js";

/** Labels of a series in a trial, as a scrape would give them. */
type Labels = Readonly<Record<string, string>>;

/** How long a trial lasts, in minutes: longer than any alert waits. */
export const trialMinutes = 30;

const samples = trialMinutes + 1;

/** A series that stays at one value. */
export function steady(metric: string, labels: Labels, value: number): TrialSeries {
  return [named(metric, labels), `${value}x${samples}`];
}

/** A counter that grows by so much each minute. */
export function growing(metric: string, labels: Labels, perMinute: number): TrialSeries {
  return [named(metric, labels), `0+${perMinute}x${samples}`];
}

function named(metric: string, labels: Labels): string {
  const text = Object.entries({ ...labels, instance: "a", job: "headgate" })
    .map(([label, value]) => `${label}=${quoted(value)}`)
    .join(",");
  return `${metric}{${text}}`;
}

/** A gauge that raises an alert at one value and not at another. */
export function gaugeTrial(
  metric: string,
  values: { readonly raising: number; readonly quiet: number },
  labels: { readonly series?: Labels; readonly alert?: Labels } = {},
): Trial {
  const { series = {}, alert = series } = labels;
  return {
    raising: [steady(metric, series, values.raising)],
    labels: { job: "headgate", ...alert },
    quiet: [steady(metric, series, values.quiet)],
  };
}

/** A counter that raises an alert by growing, and not by being there. */
export function counterTrial(
  metric: string,
  labels: { readonly series?: Labels; readonly alert?: Labels } = {},
): Trial {
  const { series = {}, alert = series } = labels;
  return {
    raising: [growing(metric, series, 60)],
    labels: { job: "headgate", ...alert },
    quiet: [steady(metric, series, 5)],
  };
}
