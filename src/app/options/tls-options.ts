import { type OptionRow, optionalTextOption, type ParsedOption, switchOption } from "./option.js";
import { type ClientSan, parseClientSan } from "./tls-client-san.js";
import { parseSocketPath } from "./unix-socket.js";

/** How the gRPC port is protected, and the Unix socket that may stand in its place. */
export const tlsOptionRows = {
  grpcUds: checkedOption({
    env: "GRPC_UDS",
    valueName: "PATH",
    docs:
      "A Unix socket on which gRPC listens, in place of GRPC_HOST and GRPC_PORT. Its owner and " +
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
      "The server's certificate, then those between it and its root, as PEM. Read again when it, " +
      "its key or the clients' authorities change.",
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
      "Authorities that vouch for clients, as PEM, the root included. With it every client needs " +
      "a certificate of theirs.",
  }),
  grpcServerTlsCaCert: optionalTextOption({
    env: "GRPC_SERVER_TLS_CA_CERT",
    valueName: "PATH",
    docs: "The same under the name that Envoy Gateway sets; GRPC_CLIENT_TLS_CACERT wins.",
  }),
  requireClientCertificates: switchOption({
    env: "HEADGATE_REQUIRE_CLIENT_CERTIFICATES",
    defaultValue: false,
    docs:
      "Refuses to start where gRPC, the control port or `POST /json` can be reached from beyond " +
      "this machine by clients without a certificate, in place of a warning.",
  }),
  grpcClientTlsSan: checkedOption<ClientSan>({
    env: "GRPC_CLIENT_TLS_SAN",
    valueName: "NAME",
    docs:
      "A subject alternative name that a client's certificate must hold: a DNS name, a URI " +
      "(`spiffe://...`), an IP or a mail address.",
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
    parse: (text) => (text === "" ? { kind: "value", value: undefined } : row.parse(text)),
  };
}
