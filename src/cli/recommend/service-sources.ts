import { type Command, Option } from "commander";
import type { Policy } from "../../policy/policy.js";
import { visibleText } from "../../policy/problems/problem.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { StepObservations, StepSubjects } from "../../recommend/join-services.js";
import { addAdminFlags } from "../admin/admin-flags.js";
import { collect } from "../input/collect.js";
import { usageFailure } from "../terminal/command-failure.js";
import type { CommandContext } from "../terminal/context.js";
import { type FleetFlags, observeFleet, readWatchMs } from "./fleet-source.js";
import {
  observePrometheus,
  type PrometheusFlags,
  readPrometheusPlan,
  showQueries,
} from "./prometheus-source.js";

/** Flags for sources other than logs, and for services. */
export interface ServiceFlags extends PrometheusFlags, FleetFlags {
  readonly fromFleet?: true;
  readonly showQueries?: true;
  readonly fixed?: true;
  readonly service?: string;
  readonly only?: "limits" | "services";
}

/** Adds the flags of these commands. */
export function addServiceFlags(command: Command): Command {
  command
    .option("--fixed", "also write the numbers that are optional: fixed limits, queues, heaps")
    .option("--prometheus <URL>", "observe a Prometheus instead of a log")
    .option("--range <TIME>", "with --prometheus: the time up to now", "1d")
    .option("--step <TIME>", "with --prometheus: the time of each mean and count", "1m")
    .option("--prometheus-ca <FILE>", "with --prometheus: CA certificates, as PEM")
    .option("--query <NAME=PROMQL>", "replace a query of --show-queries; repeatable", collect)
    .option("--show-queries", "print the queries to Prometheus, and ask nobody")
    .option("--from-fleet", "observe a running Headgate instead of a log")
    .addOption(new Option("--watch <TIME>", "with --from-fleet: go on for this long, such as 10m"));
  return addAdminFlags(command);
}

/** Reads observations from a source other than logs. */
export type StepSource = (policy: Policy) => Promise<StepObservations>;

/**
 * Chooses the source. Undefined: logs.
 *
 * @throws CommandFailure for no source, and for several
 */
export function chooseSource(
  logs: readonly string[],
  flags: ServiceFlags,
  context: CommandContext,
): StepSource | undefined {
  const { prometheus, fromFleet, watch } = flags;
  const asked = [logs.length > 0, prometheus !== undefined, fromFleet === true];
  if (asked.filter((isAsked) => isAsked).length !== 1) {
    throw usageFailure("name access logs, or --prometheus, or --from-fleet, and one of them alone");
  }
  if (watch !== undefined && fromFleet !== true) throw usageFailure("--watch needs --from-fleet");
  if (logs.length > 0) return undefined;
  if (prometheus !== undefined) {
    const plan = readPrometheusPlan(flags);
    return (policy) => observePrometheus(subjectsOf(policy, flags), { flags, plan, context });
  }
  const watchMs = readWatchMs(flags);
  return (policy) => observeFleet(subjectsOf(policy, flags), { flags, watchMs, context });
}

/** Returns the queries of all services and rules as text. */
export function queriesText(policy: Policy, flags: ServiceFlags): string {
  return showQueries(subjectsOf(policy, flags), readPrometheusPlan(flags));
}

/** @throws CommandFailure if there is no subject to query */
function subjectsOf(policy: Policy, flags: ServiceFlags): StepSubjects {
  const { only, service } = flags;
  const limited = policy.rules.filter(({ effect }) => effect.kind === "limited");
  const rules = only === "services" ? [] : limited;
  const hasNone = rules.length > 0 && policy.services.length === 0 && service === undefined;
  const services = only === "limits" || hasNone ? [] : chosenServices(policy, flags);
  return { services, rules };
}

/**
 * Returns the chosen services.
 *
 * @throws CommandFailure if there are none
 */
export function chosenServices(
  { services }: Pick<Policy, "services">,
  { service }: Pick<ServiceFlags, "service">,
): readonly ServicePolicy[] {
  const chosen = services.filter(({ name }) => service === undefined || name === service);
  if (chosen.length > 0) return chosen;
  const words =
    service === undefined ? "the policy has no services" : `no service ${visibleText(service)}`;
  throw usageFailure(`${words}; numbers are proposed for the services of the policy`);
}
