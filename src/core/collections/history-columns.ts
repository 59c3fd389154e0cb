/** Counts of a replica in each step: whole numbers. */
export const historyCounts = [
  "admitted",
  "overLimit",
  "admissionAdmitted",
  "admissionRefused",
  "failureRefused",
  "failurePassed",
  "failureLocal",
  "failed",
  "shadow",
  "nearLimit",
] as const;

/** All columns that are kept of a replica in each step. */
export const historyColumns = [
  ...historyCounts,
  "latencyMsP50",
  "latencyMsP99",
  "degraded",
  "envoys",
] as const;

/** Columns of a service in each step. */
export const serviceLevels = [
  "concurrencyLimit",
  "inFlight",
  "waiting",
  "rttMs",
  "minRttMs",
  "gradient",
] as const;

/** One of `historyColumns`. */
export type HistoryColumn = (typeof historyColumns)[number];

/** Columns of a waiting room in each step. */
export const roomColumns = [
  "waiting",
  "active",
  "activeMax",
  "arrivals",
  "entries",
  "abandoned",
  "estimateLow",
  "estimateHigh",
  "waits",
  "waitsInRange",
  "expectedSeconds",
  "actualSeconds",
] as const;

/** One of `roomColumns`. */
export type RoomColumn = (typeof roomColumns)[number];
