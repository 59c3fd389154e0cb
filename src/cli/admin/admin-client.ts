import { createSecureContext } from "node:tls";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { exitCodes } from "../../app/base/failure.js";
import {
  BudgetService,
  FleetService,
  LimitService,
  PolicyService,
  QuotaService,
  RoomService,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { visibleText } from "../../policy/problems/problem.js";
import { readSmallFile } from "../input/small-file.js";
import { CommandFailure } from "../terminal/command-failure.js";
import type { CommandContext } from "../terminal/context.js";
import { type AdminFlags, defaultAdminUrl } from "./admin-flags.js";
import type { AdminAsker } from "./admin-unreached.js";

/** Timeout of one answer, in milliseconds. */
const answerMsMax = 10_000;

/** Maximum size of an answer, in bytes: a policy's texts, or a page of rules. */
const answerBytesMax = 16 * 1_048_576;

/** Clients of the admin port's services. An idle connection does not keep the program running. */
export interface AdminClient extends AdminAsker {
  readonly limits: Client<typeof LimitService>;
  readonly policies: Client<typeof PolicyService>;
  readonly quotas: Client<typeof QuotaService>;
  readonly fleet: Client<typeof FleetService>;
  readonly rooms: Client<typeof RoomService>;
  readonly budgets: Client<typeof BudgetService>;
}

/**
 * Creates a client without connecting. Warns if a token would be sent over a network unencrypted.
 *
 * @throws CommandFailure for an invalid URL, and for files that cannot be read
 */
export function createAdminClient(
  flags: AdminFlags,
  { env, output }: Pick<CommandContext, "env" | "output">,
): AdminClient {
  const url = readUrl(flags.adminUrl ?? nonEmpty(env["HEADGATE_ADMIN_URL"]) ?? defaultAdminUrl);
  const token = readToken(env, "HEADGATE_ADMIN_TOKEN");
  const isPlain = url.protocol === "http:";
  if (token !== undefined && isPlain && !isLoopback(url.hostname)) {
    output.err(`Note: the token is sent to ${visibleText(url.host)} unencrypted; https is safer.`);
  }
  if (isPlain && (flags.adminCa ?? flags.adminCert ?? flags.adminKey) !== undefined) {
    throw new CommandFailure(
      exitCodes.usage,
      "--admin-ca, --admin-cert and --admin-key need a URL that starts with https://.",
    );
  }
  const files = isPlain ? {} : readAdminTlsFiles(flags, env);
  const transport = createConnectTransport({
    baseUrl: url.href.replace(/\/$/, ""),
    // A call may be refused before it is read. Only HTTP/2 reliably reports that.
    httpVersion: "2",
    nodeOptions: { ...files },
    interceptors: token === undefined ? [] : [withToken(token)],
    defaultTimeoutMs: answerMsMax,
    readMaxBytes: answerBytesMax,
  });
  return {
    url: url.href.replace(/\/$/, ""),
    hasToken: token !== undefined,
    hasAuthority: files.ca !== undefined,
    hasCertificate: files.cert !== undefined,
    limits: createClient(LimitService, transport),
    policies: createClient(PolicyService, transport),
    quotas: createClient(QuotaService, transport),
    fleet: createClient(FleetService, transport),
    rooms: createClient(RoomService, transport),
    budgets: createClient(BudgetService, transport),
  };
}

function readUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    // The URL may contain a password, so it is not quoted.
    throw new CommandFailure(
      exitCodes.usage,
      `The URL of the admin port must start with http:// or https://, such as ${defaultAdminUrl}.`,
    );
  }
  if (url.username !== "" || url.password !== "") {
    throw new CommandFailure(
      exitCodes.usage,
      "The URL of the admin port contains a name or a password; use " +
        "HEADGATE_ADMIN_TOKEN for a token.",
    );
  }
  return url;
}

/**
 * Reads a token from a variable, or from the file named by the variable with `_FILE`.
 *
 * @throws CommandFailure for both at once, an unreadable file, and tokens invalid in a header
 */
export function readToken(env: CommandContext["env"], variable: string): string | undefined {
  const text = nonEmpty(env[variable]);
  const file = nonEmpty(env[`${variable}_FILE`]);
  if (text !== undefined && file !== undefined) {
    throw new CommandFailure(
      exitCodes.usage,
      `${variable} and ${variable}_FILE are both set; remove one.`,
    );
  }
  const token = file === undefined ? text : readSmallFile(file).trim();
  if (token === undefined || token === "") return undefined;
  // An invalid header value would cause an error message that contains the token.
  if (!/^[\u0021-\u007e]+$/.test(token)) {
    throw new CommandFailure(
      exitCodes.usage,
      "The token contains invalid characters; it must be one word.",
    );
  }
  return token;
}

function withToken(token: string): Interceptor {
  return (next) => (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === "" ? undefined : text;
}

/** Reports whether a host is this machine, to which a token may be sent unencrypted. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/** Files for TLS in addition to the default certificate authorities; all in PEM. */
interface TlsFiles {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/**
 * Reads the trusted CA and the client certificate from flags, or else from the environment.
 *
 * @throws CommandFailure for files that cannot be read, have other content, or do not match
 */
function readAdminTlsFiles(flags: AdminFlags, env: CommandContext["env"]): TlsFiles {
  const ca = readPem(flags.adminCa ?? env["HEADGATE_ADMIN_CA"], "CERTIFICATE");
  const cert = readPem(flags.adminCert ?? env["HEADGATE_ADMIN_CERT"], "CERTIFICATE");
  const key = readPem(flags.adminKey ?? env["HEADGATE_ADMIN_KEY"], "PRIVATE KEY");
  if ((cert === undefined) !== (key === undefined)) {
    throw new CommandFailure(
      exitCodes.usage,
      "A certificate needs its key: set --admin-cert (HEADGATE_ADMIN_CERT) and " +
        "--admin-key (HEADGATE_ADMIN_KEY).",
    );
  }
  const files = {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  };
  try {
    createSecureContext(files);
  } catch {
    // OpenSSL's own message does not help users.
    throw new CommandFailure(
      exitCodes.failure,
      "The files of --admin-cert and --admin-key cannot be used: the key must " +
        "belong to the certificate, without a passphrase.",
    );
  }
  return files;
}

/**
 * Reads a PEM file; undefined if no file is named.
 *
 * @throws CommandFailure for a file that cannot be read, or has other content
 */
export function readPem(path: string | undefined, label: string): string | undefined {
  if (path === undefined || path === "") return undefined;
  const text = readSmallFile(path);
  if (new RegExp(`^-----BEGIN (?:[A-Z]+ )*${label}-----`, "m").test(text)) return text;
  const what = label === "CERTIFICATE" ? "certificate" : "private key";
  throw new CommandFailure(exitCodes.failure, `${visibleText(path)} contains no ${what} in PEM.`);
}
