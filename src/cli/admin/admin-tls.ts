import { createSecureContext } from "node:tls";
import { exitCodes } from "../../app/base/failure.js";
import { visibleText } from "../../policy/problems/problem.js";
import { readSmallFile } from "../input/small-file.js";
import { CommandFailure } from "../terminal/command-failure.js";
import type { CommandContext } from "../terminal/context.js";

/** What stands on the command line about files. */
export interface TlsFlags {
  readonly adminCa?: string;
  readonly adminCert?: string;
  readonly adminKey?: string;
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
export function readAdminTlsFiles(flags: TlsFlags, env: CommandContext["env"]): TlsFiles {
  const ca = readPem(flags.adminCa ?? env["HEADGATE_ADMIN_CA"], "CERTIFICATE");
  const cert = readPem(flags.adminCert ?? env["HEADGATE_ADMIN_CERT"], "CERTIFICATE");
  const key = readPem(flags.adminKey ?? env["HEADGATE_ADMIN_KEY"], "PRIVATE KEY");
  if ((cert === undefined) !== (key === undefined)) {
    throw new CommandFailure(
      exitCodes.usage,
      "A certificate and its key belong together: --admin-cert (HEADGATE_ADMIN_CERT) and " +
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
      "The files of --admin-cert and --admin-key cannot be used: the key must be that of the " +
        "certificate, without a passphrase.",
    );
  }
  return files;
}

function readPem(path: string | undefined, label: string): string | undefined {
  if (path === undefined || path === "") return undefined;
  const text = readSmallFile(path);
  if (new RegExp(`^-----BEGIN (?:[A-Z]+ )*${label}-----`, "m").test(text)) return text;
  const what = label === "CERTIFICATE" ? "certificate" : "private key";
  throw new CommandFailure(exitCodes.failure, `${visibleText(path)} holds no ${what} in PEM.`);
}
