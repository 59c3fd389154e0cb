import type { Policy } from "../../policy/policy.js";
import type { OptionName, OptionValues } from "../options/options.js";
import type { ConfigFindings } from "./findings.js";
import { isLoopbackHost } from "./safe-url.js";

/** Where the control port listens after all; nowhere: there is none. */
interface ControlChoice {
  readonly address?: OptionValues["controlAddress"];
  /** Where it is all the same if the files turn out to hold a `kind: Policy`. */
  readonly ownPolicyAddress?: OptionValues["controlAddress"];
}

type ControlValues = Pick<OptionValues, "controlAddress" | "configType" | "xdsServer" | "policy">;

/** How the configuration was said. */
interface ControlSources {
  /** Whether a flag or the environment sets the option. */
  readonly isSet: (name: OptionName) => boolean;
  /** Whether any setting of ours is used, which envoyproxy/ratelimit does not have. */
  readonly hasOwnSetting: boolean;
}

/**
 * Opens the control port by default, but not where two things would surprise: for a configuration
 * of envoyproxy/ratelimit and nothing else, which knows of no such port; and where it would be the
 * control plane that this process asks for its own policy. Who names such a port is told. Without
 * any setting of ours the files say which of both it is, and they are read later.
 */
export function chooseControl(
  values: ControlValues,
  sources: ControlSources,
  { problems, notices }: ConfigFindings,
): ControlChoice {
  const { controlAddress: address, xdsServer } = values;
  const isNamed = sources.isSet("controlAddress");
  if (!isNamed && !sources.hasOwnSetting && values.policy === undefined) {
    return values.configType === "file" ? { ownPolicyAddress: address } : {};
  }
  if (address === undefined || values.configType === "file" || !isOwn(xdsServer, address)) {
    return { address };
  }
  const fact = `CONFIG_GRPC_XDS_SERVER_URL is this process's own control port`;
  if (isNamed) {
    const remedy = "set it to a control plane, or choose another HEADGATE_CONTROL_ADDR";
    problems.push(`${fact}, which has no policy to send; ${remedy}`);
  } else notices.push(`${fact} by default, so there is none. Set HEADGATE_CONTROL_ADDR.`);
  return {};
}

/** Whether some of a policy is of a `kind: Policy`, as far as that allows or limits anything. */
export function isOwnPolicy({ rules, services, quotas }: Policy): boolean {
  return (
    services.length > 0 ||
    quotas.length > 0 ||
    rules.some(({ effect, settlesOncePeeked }) => effect.kind === "limited" && !settlesOncePeeked)
  );
}

/**
 * Whether a client on this machine that goes there reaches the port: by its own address, or by any
 * of the machine's own where it listens on one of those or on all.
 */
function isOwn(server: string, { host, port }: { host: string; port: number }): boolean {
  const at = server.lastIndexOf(":");
  if (Number(server.slice(at + 1)) !== port) return false;
  const name = server.slice(0, at).replace(/^\[(.*)\]$/, "$1");
  return name === host || (isLoopbackHost(name) && (isWildcard(host) || isLoopbackHost(host)));
}

function isWildcard(host: string): boolean {
  return host === "" || host === "0.0.0.0" || host === "::";
}
