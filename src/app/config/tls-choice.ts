import type { OptionValues } from "../options/options.js";
import type { ClientSan } from "../options/tls-client-san.js";
import type { ConfigFindings } from "./findings.js";

/** A file and the setting that names it. */
export interface NamedFile {
  readonly setting: string;
  readonly path: string;
}

/** TLS on the gRPC port, as configured. */
export interface TlsChoice {
  readonly certificate: NamedFile;
  readonly key: NamedFile;
  /** Authorities of client certificates. Without them, clients are not asked for a certificate. */
  readonly clientAuthority?: NamedFile;
  /** Name that a client's certificate must contain in addition. */
  readonly clientSan?: ClientSan;
}

/** The options that a `TlsChoice` depends on. */
export type TlsValues = Pick<
  OptionValues,
  | "grpcServerUseTls"
  | "grpcServerTlsCert"
  | "grpcServerTlsKey"
  | "grpcClientTlsCaCert"
  | "grpcServerTlsCaCert"
  | "grpcClientTlsSan"
>;

/** These options, with those that need client certificates. */
type CheckedValues = TlsValues & Pick<OptionValues, "nodeRules">;

/**
 * Combines the options of the gRPC port's TLS. A check of clients that would silently not happen is
 * a problem. An unused certificate only causes a notice.
 *
 * @returns undefined: gRPC is served in plaintext
 */
export function chooseTls(
  values: CheckedValues,
  { problems, notices }: ConfigFindings,
): TlsChoice | undefined {
  const authority = clientAuthority(values);
  if (!values.grpcServerUseTls) {
    checkUnused(values, authority, { problems, notices });
    return undefined;
  }
  const { grpcServerTlsCert, grpcServerTlsKey, grpcClientTlsSan } = values;
  if (grpcServerTlsCert === undefined) problems.push(missing("GRPC_SERVER_TLS_CERT"));
  if (grpcServerTlsKey === undefined) problems.push(missing("GRPC_SERVER_TLS_KEY"));
  const unchecked = [
    ...(grpcClientTlsSan === undefined ? [] : ["GRPC_CLIENT_TLS_SAN"]),
    ...(values.nodeRules === undefined ? [] : ["HEADGATE_CONTROL_NODES"]),
  ];
  if (authority === undefined) {
    for (const setting of unchecked) {
      problems.push(
        `${setting} is set, but GRPC_CLIENT_TLS_CACERT is not, so clients would ` +
          "not be asked for a certificate; set it to the CA certificates of the " +
          "clients",
      );
    }
  }
  if (grpcServerTlsCert === undefined || grpcServerTlsKey === undefined) return undefined;
  return {
    certificate: { setting: "GRPC_SERVER_TLS_CERT", path: grpcServerTlsCert },
    key: { setting: "GRPC_SERVER_TLS_KEY", path: grpcServerTlsKey },
    ...(authority === undefined ? {} : { clientAuthority: authority }),
    ...(grpcClientTlsSan === undefined ? {} : { clientSan: grpcClientTlsSan }),
  };
}

function clientAuthority(values: TlsValues): NamedFile | undefined {
  const { grpcClientTlsCaCert, grpcServerTlsCaCert } = values;
  if (grpcClientTlsCaCert !== undefined) {
    return { setting: "GRPC_CLIENT_TLS_CACERT", path: grpcClientTlsCaCert };
  }
  if (grpcServerTlsCaCert === undefined) return undefined;
  return { setting: "GRPC_SERVER_TLS_CA_CERT", path: grpcServerTlsCaCert };
}

function checkUnused(
  values: CheckedValues,
  authority: NamedFile | undefined,
  { problems, notices }: ConfigFindings,
): void {
  const unused =
    authority?.setting ??
    (values.grpcClientTlsSan && "GRPC_CLIENT_TLS_SAN") ??
    (values.nodeRules && "HEADGATE_CONTROL_NODES");
  if (unused !== undefined) {
    const remedy = "set it to true, or remove the other";
    problems.push(
      `${unused} needs GRPC_SERVER_USE_TLS, because no client is verified without ` +
        `it; ${remedy}`,
    );
    return;
  }
  const { grpcServerTlsCert, grpcServerTlsKey } = values;
  if (grpcServerTlsCert === undefined && grpcServerTlsKey === undefined) return;
  notices.push(
    "GRPC_SERVER_TLS_CERT or GRPC_SERVER_TLS_KEY is set, but GRPC_SERVER_USE_TLS is not: gRPC is " +
      "served in plaintext. Set GRPC_SERVER_USE_TLS to true to protect it.",
  );
}

function missing(setting: string): string {
  return `GRPC_SERVER_USE_TLS is true, but ${setting} is not set; set it to a PEM file`;
}
