import { type PolicyText, parsePolicy } from "../../policy/parse.js";

/** Maximum number of services, so that the scenario fits a screen. */
const servicesMax = 3;

/** Maximum length of a scenario's name, which is less than that of a policy's. */
const nameCharsMax = 40;

/** Returns a first scenario: services of a policy, and three times their load for a while. */
export function firstScenario(policies: readonly PolicyText[]): string {
  const parsed = parsePolicy(policies);
  const services = parsed.kind === "policy" ? parsed.services : [];
  const known = services.map(({ name }) => name).filter((name) => name.length <= nameCharsMax);
  const names = (known.length === 0 ? ["service"] : known).slice(0, servicesMax);
  return [
    "# 20 workers with these times serve about 366 requests per second. Replace them by your own.",
    "description: Three times the load for 20 s, with callers that retry.",
    "duration: 60s",
    "warmUp: 5s",
    "services:",
    ...names.map((name) => {
      const time = "{lognormal: {median: 40ms, p99: 250ms}}";
      return `  - {name: ${JSON.stringify(name)}, workers: 20, serviceTime: ${time}}`;
    }),
    "callers:",
    ...names.flatMap((name, i) => [
      `  - name: callers-${i + 1}`,
      `    service: ${JSON.stringify(name)}`,
      "    rate: {flash: {base: 250, peak: 750, at: 20s, rise: 2s, hold: 18s, fall: 2s}}",
      "    classes: {critical: 0.2, low: 0.3}",
      "    deadline: 500ms",
      "    retries: {attempts: 3, backoff: 50ms, budget: 0.2}",
    ]),
    "objectives:",
    "  - goodput >= 0.9",
    "  - p99 <= 600ms",
    "",
  ].join("\n");
}
