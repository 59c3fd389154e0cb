import { type OptionRow, optionalTextOption, type ParsedOption, switchOption } from "./option.js";
import { type ClientSan, parseClientSan } from "./tls-client-san.js";
import { parseSocketPath } from "./unix-socket.js";

/** How the gRPC port is protected, and the Unix socket that may stand in its place. */
export const tlsOptionRows = {
  grpcUds: checkedOption({
    section: "Listening",
    env: "GRPC_UDS",
    flag: "grpc-uds",
    valueName: "PATH",
    docs:
      "A Unix socket for gRPC, instead of GRPC_HOST and GRPC_PORT. Its owner and " +
      "group may connect (mode 0660).",
    parse: parseSocketPath,
  }),
  grpcServerUseTls: switchOption({
    section: "Listening",
    env: "GRPC_SERVER_USE_TLS",
    flag: "grpc-server-use-tls",
    defaultValue: false,
    docs: "Serves gRPC over TLS 1.2 or newer. HTTP stays plaintext.",
  }),
  grpcServerTlsCert: optionalTextOption({
    section: "Listening",
    env: "GRPC_SERVER_TLS_CERT",
    flag: "grpc-server-tls-cert",
    valueName: "PATH",
    docs:
      "The server's certificate and its intermediates, as PEM. Headgate reads it " +
      "again when it, its key or the client CAs change.",
  }),
  grpcServerTlsKey: optionalTextOption({
    section: "Listening",
    env: "GRPC_SERVER_TLS_KEY",
    flag: "grpc-server-tls-key",
    valueName: "PATH",
    docs: "Its private key, as PEM without a passphrase.",
  }),
  grpcClientTlsCaCert: optionalTextOption({
    section: "Listening",
    env: "GRPC_CLIENT_TLS_CACERT",
    flag: "grpc-client-tls-cacert",
    valueName: "PATH",
    docs:
      "CA certificates for clients, as PEM, including the root. If set, every " +
      "client needs a certificate that they signed.",
  }),
  grpcServerTlsCaCert: optionalTextOption({
    section: "Listening",
    env: "GRPC_SERVER_TLS_CA_CERT",
    flag: "grpc-server-tls-ca-cert",
    valueName: "PATH",
    docs:
      "The same, under the name that Envoy Gateway sets. GRPC_CLIENT_TLS_CACERT takes " +
      "precedence.",
  }),
  requireClientCertificates: switchOption({
    section: "Listening",
    env: "HEADGATE_REQUIRE_CLIENT_CERTIFICATES",
    flag: "require-client-certificates",
    defaultValue: false,
    docs:
      "Refuses to start, instead of logging a warning, if clients without a " +
      "certificate can reach gRPC, the control port or `POST /json` from other " +
      "machines.",
  }),
  grpcClientTlsSan: checkedOption<ClientSan>({
    section: "Listening",
    env: "GRPC_CLIENT_TLS_SAN",
    flag: "grpc-client-tls-san",
    valueName: "NAME",
    docs:
      "A subject alternative name that a client certificate must contain: a DNS " +
      "name, a URI (`spiffe://...`), an IP or an email address.",
    parse: parseClientSan,
  }),
} as const;

/** An option that may be left out, whose text is checked; an empty text counts as left out. */
export function checkedOption<T>(
  row: Parameters<typeof optionalTextOption>[0] & {
    readonly parse: (text: string) => ParsedOption<T>;
  },
): OptionRow<T | undefined> {
  return {
    ...row,
    defaultValue: undefined,
    isSecret: false,
    parse: (text) => (text === "" ? { kind: "value", value: undefined } : row.parse(text)),
  };
}
