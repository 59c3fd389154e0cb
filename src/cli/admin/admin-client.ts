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

/** How long one answer may take, in milliseconds. */
const answerMsMax = 10_000;

/** The largest answer, in bytes: a policy's texts, or a page of rules. */
const answerBytesMax = 16 * 1_048_576;

/**
 * Services of the admin port, ready to be asked. Its idle connection keeps no program from ending.
 */
export interface AdminClient extends AdminAsker {
  readonly limits: Client<typeof LimitService>;
  readonly policies: Client<typeof PolicyService>;
  readonly quotas: Client<typeof QuotaService>;
  readonly fleet: Client<typeof FleetService>;
  readonly rooms: Client<typeof RoomService>;
  readonly budgets: Client<typeof BudgetService>;
}

/**
 * Makes a client; connects to nobody yet. Warns where a token would go over a network in the clear.
 *
 * @throws CommandFailure for a URL that is none, and files that cannot be read
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
    // A call may be refused before it is read, and only HTTP/2 hears of it for certain.
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
    // It may hold a password, and is not quoted.
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
 * Reads a token from a variable, or from the file that the variable with `_FILE` names.
 *
 * @throws CommandFailure for both at once, a file that cannot be read, and what no header can carry
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
  // What a header cannot carry would fail with words that hold the token.
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

/** Whether a host is this machine, to which a token may go unencrypted. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/** What TLS needs to know beyond the authorities that everybody trusts; all in PEM. */
interface TlsFiles {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/**
 * Reads whom to trust and who we are: from flags, or else from the environment.
 *
 * @throws CommandFailure for files that cannot be read, hold something else, or do not fit
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
    // What OpenSSL says of it helps nobody.
    throw new CommandFailure(
      exitCodes.failure,
      "The files of --admin-cert and --admin-key cannot be used: the key must " +
        "belong to the certificate, without a passphrase.",
    );
  }
  return files;
}

/**
 * Reads a file in PEM; undefined where none is named.
 *
 * @throws CommandFailure for a file that cannot be read, or holds something else
 */
export function readPem(path: string | undefined, label: string): string | undefined {
  if (path === undefined || path === "") return undefined;
  const text = readSmallFile(path);
  if (new RegExp(`^-----BEGIN (?:[A-Z]+ )*${label}-----`, "m").test(text)) return text;
  const what = label === "CERTIFICATE" ? "certificate" : "private key";
  throw new CommandFailure(exitCodes.failure, `${visibleText(path)} contains no ${what} in PEM.`);
}
