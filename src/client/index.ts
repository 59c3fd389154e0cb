export { type AdmissionCause, AdmissionError } from "./admission-error.js";
export { createLimiter } from "./limiter.js";
