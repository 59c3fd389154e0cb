/** How one call of a load went. */
export type CallOutcome = "allowed" | "denied" | "failed";
