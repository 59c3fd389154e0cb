export type { Refusal } from "../../core/admission/exchange-messages.js";
export type { Priority } from "../../core/admission/priority.js";
export type { RefusalCause } from "../../core/admission/refusal.js";
export type { Clock, Random } from "../../core/base/clock.js";
export type { RequestEnding, ResponseStatus } from "../../core/calls/request-outcome.js";
export type { QueueOptions } from "../admission.js";
export { expressAdmission, type WithAdmission } from "./express.js";
export { type HttpRequest, type HttpResponse, httpAdmission } from "./node-http.js";
export type { RequestPermit, ServerRefusal, ServerVerdict } from "./request-permit.js";
export {
  createServerAdmission,
  type ServerAdmission,
  type ServerAnswer,
} from "./server-admission.js";
export type { ServerSnapshot } from "./server-counts.js";
export type {
  BrownoutOptions,
  LoadSource,
  PriorityOptions,
  RetryAfterOptions,
  ServerAdmissionOptions,
  ServerConcurrencyOptions,
  ServerDeadlineOptions,
  ServerRequest,
} from "./server-options.js";
