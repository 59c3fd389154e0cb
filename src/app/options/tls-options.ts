import { type OptionRow, optionalTextOption, type ParsedOption, switchOption } from "./option.js";
import { type ClientSan, parseClientSan } from "./tls-client-san.js";
import { parseSocketPath } from "./unix-socket.js";

/** TLS of the gRPC port, and the Unix socket that may replace the port. */
export const tlsOptionRows = {
  grpcUds: checkedOption({
    env: "GRPC_UDS",
    valueName: "PATH",
    docs:
      "A Unix socket for gRPC, instead of GRPC_HOST and GRPC_PORT. Its owner and " +
      "group may connect (mode 0660).",
    parse: parseSocketPath,
  }),
  grpcServerUseTls: switchOption({
    env: "GRPC_SERVER_USE_TLS",
    defaultValue: false,
    docs: "Serves gRPC over TLS 1.2 or newer. HTTP stays plaintext.",
  }),
  grpcServerTlsCert: optionalTextOption({
    env: "GRPC_SERVER_TLS_CERT",
    valueName: "PATH",
    docs:
      "The server's certificate and its intermediates, as PEM. Headgate reads it " +
      "again when it, its key or the client CAs change.",
  }),
  grpcServerTlsKey: optionalTextOption({
    env: "GRPC_SERVER_TLS_KEY",
    valueName: "PATH",
    docs: "Its private key, as PEM without a passphrase.",
  }),
  grpcClientTlsCaCert: optionalTextOption({
    env: "GRPC_CLIENT_TLS_CACERT",
    valueName: "PATH",
    docs:
      "CA certificates for clients, as PEM, including the root. If set, every " +
      "client needs a certificate that they signed.",
  }),
  grpcServerTlsCaCert: optionalTextOption({
    env: "GRPC_SERVER_TLS_CA_CERT",
    valueName: "PATH",
    docs:
      "The same, under the name that Envoy Gateway sets. GRPC_CLIENT_TLS_CACERT takes " +
      "precedence.",
  }),
  requireClientCertificates: switchOption({
    env: "HEADGATE_REQUIRE_CLIENT_CERTIFICATES",
    defaultValue: false,
    docs:
      "Refuses to start, instead of logging a warning, if clients without a " +
      "certificate can reach gRPC, the control port or `POST /json` from other " +
      "machines.",
  }),
  grpcClientTlsSan: checkedOption<ClientSan>({
    env: "GRPC_CLIENT_TLS_SAN",
    valueName: "NAME",
    docs:
      "A subject alternative name that a client certificate must contain: a DNS " +
      "name, a URI (`spiffe://...`), an IP or an email address.",
    parse: parseClientSan,
  }),
} as const;

/** Creates an optional option with a checked text. An empty text counts as left out. */
export function checkedOption<T>(
  row: Parameters<typeof optionalTextOption>[0] & {
    readonly parse: (text: string) => ParsedOption<T>;
  },
): OptionRow<T | undefined> {
  return {
    ...row,
    defaultValue: undefined,
    parse: (text) => (text === "" ? { kind: "value", value: undefined } : row.parse(text)),
  };
}
