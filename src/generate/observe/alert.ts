/** How soon a person has to look: now, today, or when there is time. */
export const severities = ["critical", "warning", "info"] as const;

/** One of the severities. */
type Severity = (typeof severities)[number];

/** The texts of an alert, for all of its rules. */
export interface AlertWords {
  readonly severity: Severity;
  /** One line. It refers to labels of the series as `{{ $labels.service }}`. */
  readonly summary: string;
  /** What it means, what to look at, and what to do: the runbook's three paragraphs. */
  readonly means: string;
  readonly look: string;
  readonly act: string;
}

/** A series of a trial: `metric{label="value"} values`, with values in promtool's notation. */
export type TrialSeries = readonly [series: string, values: string];

/** A test of a rule: series that raise the alert, and series that do not. */
export interface Trial {
  readonly raising: readonly TrialSeries[];
  /** Labels of the raised alert, except its severity. */
  readonly labels: Readonly<Record<string, string>>;
  readonly quiet: readonly TrialSeries[];
}

/** An alerting rule. Several rules may raise the same alert. */
export interface AlertRule<Name extends string = string> {
  readonly alert: Name;
  readonly expr: string;
  /** How long the condition must be true, in whole minutes; 0: immediately. */
  readonly forMinutes: number;
  /** Labels other than the severity, which distinguish rules of the same alert. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly trial: Trial;
}
