import { duration, number, whole } from "../text/form.js";
import { field, object } from "../text/object.js";
import { type DurationBounds, type NumberBounds, percentBounds } from "../text/quantities.js";
import { retryBounds } from "./circuit-breakers.js";
import { whenField } from "./local-rate-limit.js";

/** Maximum `aggression`. */
const aggressionMax = 1_000;

/** Bounds of `aggression`: Envoy treats a value below 1 as 1. */
const aggressionBounds: NumberBounds = { min: 1, max: aggressionMax };

/** The bounds of `successRateThreshold`: Envoy refuses a threshold below 1 %. */
const successBounds: NumberBounds = { ...percentBounds, min: 1 };

/** Maximum window of samples: an hour. */
export const samplingMsMax = 3_600_000;

/** The bounds of `samplingWindow`. */
const samplingBounds: DurationBounds = { minMs: 1_000, maxMs: samplingMsMax };

/** `admissionControl`. */
export const admissionControl = object(
  {
    title: "an admissionControl",
    docs:
      "Envoy's admission control filter: refuses requests on the caller's side while " +
      "too many fail.",
  },
  {
    aggression: field(
      number(aggressionBounds),
      "How aggressively requests are refused for the same failures.",
      {
        larger: "stricter",
        default: 1.5,
      },
    ),
    successRateThreshold: field(
      number(successBounds),
      "The success rate, in percent, below which requests are refused.",
      {
        larger: "stricter",
        as: "successRateThresholdPercent",
        default: 95,
      },
    ),
    samplingWindow: field(duration(samplingBounds), "The sampling window, in whole seconds.", {
      larger: "different",
      as: "samplingWindowMs",
      default: 30_000,
    }),
    minRequestsPerSecond: field(
      whole(retryBounds),
      "Requests per second below which nothing is refused.",
      { larger: "looser", as: "requestsPerSecondMin", default: 5 },
    ),
    maxRejectPercent: field(
      number(percentBounds),
      "The maximum percent of requests that is refused.",
      {
        larger: "stricter",
        as: "rejectPercentMax",
        default: 80,
      },
    ),
    when: whenField("always"),
  },
  {
    data: (read) => read,
    check(block, { samplingWindowMs }) {
      if (samplingWindowMs % 1_000 === 0) return;
      const message = "a sampling window must be in whole seconds";
      block.report("samplingWindow", { id: "HG141", message, expected: "whole seconds, as 30s" });
    },
  },
);

/**
 * Refusal on the caller's side while too many requests fail. Source:
 * envoy.extensions.filters.http.admission_control.v3.AdmissionControl.
 */
export type AdmissionControlPolicy = typeof admissionControl.defaults;
