import { type Command, Option } from "commander";
import { addPrintFlags } from "../terminal/drawing.js";
import { addHelpTexts, type HelpTexts } from "../terminal/help-texts.js";

/** Flags that locate a Headgate. */
export interface AdminFlags {
  readonly adminUrl?: string;
  readonly adminCa?: string;
  readonly adminCert?: string;
  readonly adminKey?: string;
}

/** Default URL of the admin port. */
export const defaultAdminUrl = "http://127.0.0.1:8082";

/** Adds the flags for the address and TLS of a Headgate. A token is never a flag. */
export function addAdminFlags(command: Command): Command {
  return command
    .addOption(
      new Option(
        "--admin-url <URL>",
        `the URL of the admin port; default ${defaultAdminUrl} (HEADGATE_ADMIN_URL)`,
      ),
    )
    .addOption(new Option("--admin-ca <FILE>", "CA certificates, as PEM (HEADGATE_ADMIN_CA)"))
    .addOption(
      new Option("--admin-cert <FILE>", "your client certificate, as PEM (HEADGATE_ADMIN_CERT)"),
    )
    .addOption(new Option("--admin-key <FILE>", "its private key, as PEM (HEADGATE_ADMIN_KEY)"));
}

/** Exit codes of commands that read no policy, for the end of their help. */
export const adminExitCodes =
  "Exit codes: 0 done, 1 refused or failed, 2 usage, 5 Headgate cannot be reached.";

/** Exit codes of commands that also read policies, for the end of their help. */
export const policyExitCodes =
  "Exit codes: 0 done, 1 refused or failed, 2 usage, 3 invalid policy,\n5 Headgate " +
  "cannot be reached.";

/**
 * Adds the common flags after the command's own, and its help texts. The default exit codes are
 * those of a command that reads no policy.
 */
export function addAdminCommandFlags(
  command: Command,
  texts: Omit<HelpTexts, "exitCodes"> & Partial<HelpTexts>,
): Command {
  return addHelpTexts(addAdminFlags(addPrintFlags(command)), {
    exitCodes: adminExitCodes,
    ...texts,
  });
}
