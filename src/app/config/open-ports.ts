import type { OptionValues } from "../options/options.js";
import { isLoopbackHost } from "./safe-url.js";
import type { TlsChoice } from "./tls-choice.js";

type OpenPortValues = Pick<
  OptionValues,
  | "host"
  | "httpJson"
  | "grpcHost"
  | "grpcUds"
  | "controlAddress"
  | "respAddress"
  | "respPassword"
  | "requireClientCertificates"
>;

/**
 * Checks whether ports for decisions and for reports of Envoys accept anyone who reaches them: a
 * stranger could use up callers' limits, give hits back and act as any Envoy. If so, this is a
 * warning, or a problem if certificates are required.
 *
 * @returns the warning; undefined: there is none
 */
export function checkOpenPorts(
  values: OpenPortValues,
  tls: TlsChoice | undefined,
  problems: string[],
): string | undefined {
  const { grpcHost, grpcUds, controlAddress, requireClientCertificates: isRequired } = values;
  const { respAddress, respPassword } = values;
  if (tls?.clientAuthority !== undefined) return undefined;
  const open = [
    ...(grpcUds === undefined && !isLoopbackHost(grpcHost) ? ["GRPC_HOST"] : []),
    ...(controlAddress === undefined || isLoopbackHost(controlAddress.host)
      ? []
      : ["HEADGATE_CONTROL_ADDR"]),
    ...(respAddress === undefined || respPassword !== undefined || isLoopbackHost(respAddress.host)
      ? []
      : ["HEADGATE_RESP_ADDR"]),
    ...(values.httpJson && values.host !== "" && !isLoopbackHost(values.host)
      ? ["HOST (POST /json)"]
      : []),
  ];
  if (open.length === 0) return undefined;
  const names = inWords(open);
  const reach = `machines can reach ${names} without a client certificate`;
  const remedy = "set GRPC_SERVER_USE_TLS and GRPC_CLIENT_TLS_CACERT";
  if (isRequired) {
    problems.push(`HEADGATE_REQUIRE_CLIENT_CERTIFICATES is true, but other ${reach}; ${remedy}`);
    return undefined;
  }
  return (
    `Other ${reach} and act as an Envoy. To prevent that, ` +
    `${remedy}; or restrict access with a mesh or a NetworkPolicy.`
  );
}

/** Formats a list by hand: the runtime's own formatter loads 20 ms of data. */
function inWords(names: readonly string[]): string {
  const last = names.at(-1) ?? "";
  if (names.length < 3) return names.join(" and ");
  return `${names.slice(0, -1).join(", ")}, and ${last}`;
}
