export { type AdmissionCause, AdmissionError } from "./admission-error.js";
export { createAdmission } from "./create-admission.js";
export { createLimiter } from "./limiter.js";
