import type { Trial, TrialSeries } from "./alert.js";
import { quoted } from "./promql.js";

/** Labels of a series in a trial, as after a scrape. */
type Labels = Readonly<Record<string, string>>;

/** Duration of a trial, in minutes: longer than the `for` of any alert. */
export const trialMinutes = 30;

const samples = trialMinutes + 1;

/** Returns a series with a constant value. */
export function steady(metric: string, labels: Labels, value: number): TrialSeries {
  return [named(metric, labels), `${value}x${samples}`];
}

/** Returns a counter that grows by a fixed amount each minute. */
export function growing(metric: string, labels: Labels, perMinute: number): TrialSeries {
  return [named(metric, labels), `0+${perMinute}x${samples}`];
}

function named(metric: string, labels: Labels): string {
  const text = Object.entries({ ...labels, instance: "a", job: "headgate" })
    .map(([label, value]) => `${label}=${quoted(value)}`)
    .join(",");
  return `${metric}{${text}}`;
}

/** Returns a trial of a gauge that raises an alert at one value and not at another. */
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

/** Returns a trial of a counter that raises an alert if it grows fast enough. */
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
