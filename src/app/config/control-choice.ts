import type { Policy } from "../../policy/policy.js";
import type { OptionName, OptionValues } from "../options/options.js";
import type { ConfigFindings } from "./findings.js";
import { isLoopbackHost } from "./safe-url.js";

/** Resulting addresses of the control port. Without any, there is none. */
interface ControlChoice {
  readonly address?: OptionValues["controlAddress"];
  /** Address if the files turn out to contain a `kind: Policy`. */
  readonly ownPolicyAddress?: OptionValues["controlAddress"];
}

type ControlValues = Pick<OptionValues, "controlAddress" | "configType" | "xdsServer" | "policy">;

/** Which settings were given. */
interface ControlSources {
  /** Whether a flag or the environment sets the option. */
  readonly isSet: (name: OptionName) => boolean;
  /** Whether any setting is used that envoyproxy/ratelimit does not have. */
  readonly hasOwnSetting: boolean;
}

/**
 * Opens the control port by default, with two exceptions that avoid surprises. A configuration only
 * of envoyproxy/ratelimit does not expect such a port. And it must not be the control plane that
 * this process asks for its policy: a problem if the port is named, otherwise a notice. Without any
 * setting of Headgate's own, the files decide, which are read later.
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

/** Reports whether a part of a policy that allows or limits anything is from a `kind: Policy`. */
export function isOwnPolicy({ rules, services, quotas }: Policy): boolean {
  return (
    services.length > 0 ||
    quotas.length > 0 ||
    rules.some(({ effect, settlesOncePeeked }) => effect.kind === "limited" && !settlesOncePeeked)
  );
}

/**
 * Reports whether a client on this machine reaches the port at that address: by the port's own
 * address, or by a loopback name if the port listens on a loopback address or on all addresses.
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
