import { admissionFetch } from "../../client/adapters/fetch.js";
import { AdmissionError } from "../../client/admission-error.js";
import { createAdmission } from "../../client/create-admission.js";
import {
  createServerAdmission,
  type ServerAdmission,
} from "../../client/server/server-admission.js";
import { type Priority, parsePriority } from "../../core/admission/priority.js";
import type { Clock, Random } from "../../core/base/clock.js";
import { httpStatuses } from "../../core/base/http-status.js";
import type { AskService } from "./layers-caller.js";
import { patienceMs, priorityHeader } from "./layers-settings.js";

/** Clock and randomness of the layers: the process's own, or those of a test. */
interface Times {
  readonly clock: Clock;
  readonly random: Random;
}

/** Creates the layer in the caller: `headgate/client` around the function that sends requests. */
export function createClientLayer(times: Times, send: typeof fetch): AskService {
  const admission = createAdmission({
    ...times,
    name: "orders",
    // Only one layer learns the service's capacity. If two did, each would mistake the refusals of
    // the other for a smaller service.
    concurrency: false,
    throttle: { memoryMs: 5_000 },
    retry: { baseMs: 50 },
    deadline: { timeoutMs: patienceMs, header: "x-envoy-expected-rq-timeout-ms" },
    priorityHeader,
  });
  const fetchOrders = admissionFetch(admission, {
    fetch: send,
    optionsOf: (_input, init) => ({ priority: priorityOf(init?.headers) }),
  });
  return async ({ url, headers }) => {
    try {
      const response = await fetchOrders(url, { headers });
      await response.arrayBuffer();
      return response.status < httpStatuses.badRequest ? "served" : "refused";
    } catch (thrown) {
      return thrown instanceof AdmissionError ? "refusedHere" : "late";
    }
  };
}

function priorityOf(headers: HeadersInit | undefined): Priority {
  return parsePriority(new Headers(headers).get(priorityHeader) ?? "") ?? "normal";
}

/** Creates the layer in the service: `headgate/server`. */
export function createServerLayer(times: Times): ServerAdmission {
  return createServerAdmission({
    ...times,
    name: "orders",
    // As in the proxy, a request without a permit waits briefly, the most urgent first.
    queue: { sizeMax: 60, waitMsMax: 600 },
    // Only Envoy reaches the service, and it trusts only the headers that its policy trusts.
    priority: { header: priorityHeader },
  });
}
