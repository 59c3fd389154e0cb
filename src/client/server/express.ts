import {
  createHttpAdmitter,
  type HttpRequest,
  type HttpResponse,
  sendRefusal,
} from "./node-http.js";
import type { RequestPermit } from "./request-permit.js";
import type { ServerAdmission } from "./server-admission.js";

/** A request behind the middleware. */
export interface WithAdmission {
  admission?: RequestPermit;
}

/**
 * Returns a middleware for Express, or any framework that calls `(request, response, next)`.
 * Admitted requests continue with their permit as `request.admission`. Use it before everything
 * that costs something, such as body parsers.
 */
export function expressAdmission(
  admission: ServerAdmission,
): (request: HttpRequest & WithAdmission, response: HttpResponse, next: () => void) => void {
  const admit = createHttpAdmitter(admission);
  return (request, response, next) => {
    admit(request, response, {
      refused: (refusal) => sendRefusal(response, refusal),
      admitted: (permit) => {
        request.admission = permit;
        next();
      },
    });
  };
}
