import type { RequestPermit } from "../../src/client/server/request-permit.js";
import type { ServerAdmission, ServerAnswer } from "../../src/client/server/server-admission.js";
import type { ServerRequest } from "../../src/client/server/server-options.js";

/** A request of nobody in particular. */
export function serverRequest(
  headers: Readonly<Record<string, string>> = {},
  path = "/orders",
): ServerRequest {
  return { method: "GET", path, remoteAddress: undefined, header: (name) => headers[name] };
}

/** Asks with a class, in the header that tests believe. */
export function askAs(admission: ServerAdmission, priority: string): ServerAnswer {
  return admission.begin(serverRequest({ "x-request-priority": priority }));
}

/** The permit of a request that has to be admitted at once. */
export function permitOf(answer: ServerAnswer): RequestPermit {
  if (answer.kind === "admitted") return answer.permit;
  throw new Error(answer.kind === "refused" ? `refused: ${answer.cause}` : "it waits");
}

/** Why a request was refused; undefined where it was not. */
export function causeOf(answer: ServerAnswer): string | undefined {
  return answer.kind === "refused" ? answer.cause : undefined;
}
