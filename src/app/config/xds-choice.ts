import type { Backoff } from "../../core/base/backoff.js";
import type { OptionValues } from "../options/options.js";
import type { ConfigFindings } from "./findings.js";
import type { NamedFile } from "./tls-choice.js";

/** TLS for connections to the control plane, as configured. */
export interface XdsTlsChoice {
  readonly authority?: NamedFile;
  readonly identity?: { readonly certificate: NamedFile; readonly key: NamedFile };
  readonly serverName?: string;
}

/** A control plane as the source of the policy. */
export interface XdsChoice {
  readonly address: string;
  readonly nodeId: string;
  readonly nodeMetadata: Readonly<Record<string, string>>;
  /** May contain a credential. */
  readonly headers: ReadonlyMap<string, string>;
  /** Absent without TLS. */
  readonly tls?: XdsTlsChoice;
  readonly connectRetryMs: number;
  readonly backoff: Backoff;
  readonly messageBytesMax: number;
}

/** Default maximum size of a message, in bytes. Source: gRPC's own default. */
export const defaultMessageBytes = 4_194_304;

/** Maximum number of pairs in a list of headers or of metadata. */
export const pairsMax = 100;

const defaultGrowthFactor = 2;

/** Returns the control plane that provides the policy. Undefined: files provide it. */
export function chooseXds(values: OptionValues, found: ConfigFindings): XdsChoice | undefined {
  if (values.configType === "file") return undefined;
  const { problems } = found;
  if (values.policy !== undefined) {
    problems.push(
      "HEADGATE_POLICY (--policy) and CONFIG_TYPE=GRPC_XDS_SOTW exclude each " +
        "other: the policy comes from a file or from a control plane; remove one",
    );
  }
  if (values.policySource === "store") {
    problems.push(
      "HEADGATE_POLICY_SOURCE=store and CONFIG_TYPE=GRPC_XDS_SOTW exclude each " +
        "other: the policy comes from the store or from a control plane; remove one",
    );
  }
  const { xdsServer: address } = values;
  if (!/^\S+$/.test(address) || /^(?:https?|grpcs?):/i.test(address)) {
    problems.push("CONFIG_GRPC_XDS_SERVER_URL must be host:port, without a scheme before it");
  }
  const headers = readHeaders(values.xdsHeaders ?? "", problems);
  const tls = chooseTls(values, found);
  const nodeMetadata = readMetadata(values.xdsNodeMetadata, found);
  const { xdsBackoffFactor: factor } = values;
  return {
    address,
    nodeId: values.xdsNodeId,
    nodeMetadata,
    headers,
    ...(tls === undefined ? {} : { tls }),
    connectRetryMs: values.xdsConnectRetryMs,
    backoff: {
      initialMs: values.xdsBackoffInitialMs,
      maxMs: values.xdsBackoffMsMax,
      growthFactor: factor > 1 ? factor : defaultGrowthFactor,
      isJittered: values.xdsBackoffJitter,
    },
    messageBytesMax: values.xdsMessageBytesMax || defaultMessageBytes,
  };
}

function chooseTls(values: OptionValues, found: ConfigFindings): XdsTlsChoice | undefined {
  const { xdsServerCaCert, xdsServerSan, xdsClientCert, xdsClientKey } = values;
  if (!values.xdsUseTls) {
    const isSet = [xdsServerCaCert, xdsServerSan, xdsClientCert, xdsClientKey].some(Boolean);
    if (isSet) {
      found.notices.push(
        "TLS files for the control plane are set, but " +
          "CONFIG_GRPC_XDS_SERVER_USE_TLS is not, so the connection is plaintext. " +
          "Set it to true to protect the policy in transit.",
      );
    }
    return undefined;
  }
  if ((xdsClientCert === undefined) !== (xdsClientKey === undefined)) {
    found.problems.push(
      "CONFIG_GRPC_XDS_CLIENT_TLS_CERT and CONFIG_GRPC_XDS_CLIENT_TLS_KEY need each other; set " +
        "both, or none",
    );
  }
  const identity = xdsClientCert !== undefined &&
    xdsClientKey !== undefined && {
      certificate: { setting: "CONFIG_GRPC_XDS_CLIENT_TLS_CERT", path: xdsClientCert },
      key: { setting: "CONFIG_GRPC_XDS_CLIENT_TLS_KEY", path: xdsClientKey },
    };
  const setting = "CONFIG_GRPC_XDS_SERVER_TLS_CACERT";
  return {
    ...(xdsServerCaCert === undefined ? {} : { authority: { setting, path: xdsServerCaCert } }),
    ...(identity === false ? {} : { identity }),
    ...(xdsServerSan === undefined ? {} : { serverName: xdsServerSan }),
  };
}

/** Reads `name=value,...`. Parts without `=` are ignored, as in envoyproxy/ratelimit. */
function readMetadata(text: string, found: ConfigFindings): Readonly<Record<string, string>> {
  const setting = "CONFIG_GRPC_XDS_NODE_METADATA";
  const parts = text === "" ? [] : text.split(",");
  if (parts.length > pairsMax) found.problems.push(tooMany(setting));
  const pairs = parts.map((part) => splitOnce(part, "="));
  const good = pairs.filter((pair) => pair !== undefined);
  if (good.length < pairs.length) {
    found.notices.push(
      `${setting} contains parts without "=", which are ignored: write name=value.`,
    );
  }
  return Object.fromEntries(good);
}

/** Names that gRPC accepts. Those with -bin contain bytes, which no environment can. */
const headerName = /^(?!grpc-)[a-z0-9_.-]+(?<!-bin)$/;

function readHeaders(text: string, problems: string[]): ReadonlyMap<string, string> {
  const setting = "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS";
  const headers = new Map<string, string>();
  const parts = text === "" ? [] : text.split(",");
  if (parts.length > pairsMax) problems.push(tooMany(setting));
  for (const [i, part] of parts.entries()) {
    const pair = splitOnce(part, ":");
    const name = pair?.[0].trim().toLowerCase() ?? "";
    const value = pair?.[1].trim() ?? "";
    if (pair === undefined || !headerName.test(name) || !/^[ -~]*$/.test(value)) {
      problems.push(
        `${setting}: header number ${i + 1} is invalid; write ` +
          "name:value,name:value in ASCII, without names that start with grpc- or " +
          "end with -bin",
      );
    } else {
      headers.set(name, value);
    }
  }
  return headers;
}

function tooMany(setting: string): string {
  return `${setting} contains more than ${pairsMax} pairs`;
}

function splitOnce(text: string, separator: string): readonly [string, string] | undefined {
  const at = text.indexOf(separator);
  return at < 0 ? undefined : [text.slice(0, at), text.slice(at + separator.length)];
}
