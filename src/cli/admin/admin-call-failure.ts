import { Code, ConnectError } from "@connectrpc/connect";
import { exitCodes } from "../../app/base/failure.js";
import { visibleText } from "../../policy/problems/problem.js";
import { CommandFailure } from "../terminal/command-failure.js";
import { type AdminAsker, unreachedWords } from "./admin-unreached.js";

/** Converts an error response to a failure of the command. Rethrows other errors. */
export function adminCallFailure(thrown: unknown, asker: AdminAsker): CommandFailure {
  if (thrown instanceof CommandFailure) return thrown;
  if (!(thrown instanceof ConnectError)) throw thrown;
  const unreached = unreachedWords(thrown, asker);
  if (unreached !== undefined) return new CommandFailure(exitCodes.unreachable, unreached);
  const exitCode = thrown.code === Code.InvalidArgument ? exitCodes.usage : exitCodes.failure;
  return new CommandFailure(exitCode, refusedWords(thrown, asker));
}

function refusedWords(error: ConnectError, { hasToken, hasCertificate }: AdminAsker): string {
  const said = sentence(visibleText(error.rawMessage));
  switch (error.code) {
    case Code.Unauthenticated:
      if (hasCertificate && !hasToken) {
        return `${said} No line of HEADGATE_ADMIN_ACCESS contains a name of the certificate.`;
      }
      if (!hasToken) {
        return `${said} Set a token with HEADGATE_ADMIN_TOKEN or HEADGATE_ADMIN_TOKEN_FILE.`;
      }
      // An expired token needs no other advice.
      return said === "Expired."
        ? "The token has expired; get a new one."
        : `${said} Check the token.`;
    case Code.PermissionDenied:
      return `${said} Ask your administrator for a token with the required role.`;
    case Code.Aborted:
    case Code.AlreadyExists:
      return `${said} The option for it is --expected-version.`;
    case Code.ResourceExhausted:
      return `${said} Try again in a moment, and less often.`;
    case Code.Unavailable:
      return `${said} Try again in a moment.`;
    case Code.Unimplemented:
      return `${said} It may be older than this program, or configured without it.`;
    case Code.Internal:
    case Code.Unknown:
      return `${said} See its log.`;
    default:
      return said;
  }
}

function sentence(text: string): string {
  const words = text.trim();
  if (words === "") return "Refused without a reason.";
  const begun = words.charAt(0).toUpperCase() + words.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}
