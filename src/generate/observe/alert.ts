/** How soon somebody has to look: now, today, or when there is time. */
export const severities = ["critical", "warning", "info"] as const;

/** One of them. */
type Severity = (typeof severities)[number];

/** What an alert says, whatever it is raised by. */
export interface AlertWords {
  readonly severity: Severity;
  /** One line; labels of the series stand in it as `{{ $labels.service }}`. */
  readonly summary: string;
  /** What it means, what to look at, and what to do: the runbook's three paragraphs. */
  readonly means: string;
  readonly look: string;
  readonly act: string;
}

/** Series of a trial: `metric{label="value"} values`, as promtool writes values. */
export type TrialSeries = readonly [series: string, values: string];

/** How a rule is seen to work: what raises it, and what does not. */
export interface Trial {
  readonly raising: readonly TrialSeries[];
  /** The labels that it is raised with, beside its severity. */
  readonly labels: Readonly<Record<string, string>>;
  readonly quiet: readonly TrialSeries[];
}

/** One rule; several may raise the same alert. */
export interface AlertRule<Name extends string = string> {
  readonly alert: Name;
  readonly expr: string;
  /** How long it has to be so, in whole minutes; 0: at once. */
  readonly forMinutes: number;
  /** Labels beside the severity, which tell rules of one alert apart. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly trial: Trial;
}
