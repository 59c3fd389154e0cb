import { formatMany, formatPercent, formatRate } from "./format.js";
import { type FleetSecond, passedIn, refusedIn } from "./history.js";
import type { FleetService } from "./services.js";

/** State of the fleet, in a sentence that can be read from across a room. */
export interface FleetVerdict {
  readonly tone: "good" | "notice" | "warn" | "bad";
  readonly headline: string;
  readonly detail: string;
}

/** An overloaded service in the verdict. */
export type OverloadedService = Pick<FleetService, "name" | "shedRatio" | "overflowPerSecond">;

/** Inputs of the verdict. */
export interface FleetFacts {
  readonly seconds: readonly FleetSecond[];
  readonly silentReplicas: number;
  readonly isDegraded: boolean;
  /** Services that are overloaded. */
  readonly overloaded: readonly OverloadedService[];
}

/** Number of seconds that current rates are averaged over. */
const nowSeconds = 10;

/** From this ratio of refused requests on, the headline is about them. */
const refusedRatioNoticed = 0.01;

/** Current rates, averaged over the last seconds. */
export interface FleetRates {
  readonly passed: number;
  readonly refused: number;
  readonly overLimit: number;
  readonly admissionRefused: number;
  readonly failureRefused: number;
  readonly failurePassed: number;
  readonly failed: number;
  readonly shadow: number;
  readonly nearLimit: number;
  readonly refusedRatio: number;
}

/** Returns the current rates per second. */
export function ratesOf(seconds: readonly FleetSecond[]): FleetRates {
  const points = seconds.slice(-nowSeconds).flatMap(({ point }) => point ?? []);
  const mean = (of: (point: (typeof points)[number]) => number): number =>
    points.length === 0 ? 0 : points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const passed = mean(passedIn);
  const refused = mean(refusedIn);
  return {
    passed,
    refused,
    overLimit: mean(({ overLimit }) => overLimit),
    admissionRefused: mean(({ admissionRefused }) => admissionRefused),
    failureRefused: mean(({ failureRefused }) => failureRefused),
    failurePassed: mean(({ failurePassed }) => failurePassed),
    failed: mean(({ failed }) => failed),
    shadow: mean(({ shadow }) => shadow),
    nearLimit: mean(({ nearLimit }) => nearLimit),
    refusedRatio: passed + refused === 0 ? 0 : refused / (passed + refused),
  };
}

/** Returns the verdict, with the worst problem first. */
export function judgeFleet(facts: FleetFacts): FleetVerdict {
  const { seconds, silentReplicas, isDegraded, overloaded } = facts;
  const rates = ratesOf(seconds);
  const share = formatPercent(rates.refusedRatio);
  const refusing = rates.refusedRatio >= refusedRatioNoticed;
  const alsoRefusing = refusing ? ` ${share} of requests are refused.` : "";
  if (isDegraded) {
    return {
      tone: "bad",
      headline: "The store does not answer",
      detail: `Limits follow their failure modes.${alsoRefusing}`,
    };
  }
  if (overloaded.length > 0) return { tone: "bad", ...overloadText(overloaded, alsoRefusing) };
  if (silentReplicas > 0) {
    return {
      tone: "warn",
      headline: `${formatMany(silentReplicas, "replica")} not answering`,
      detail: `Their decisions are missing here.${alsoRefusing}`,
    };
  }
  const failing = rates.failed + rates.failureRefused;
  if (failing > 0 && failing >= refusedRatioNoticed * (rates.passed + rates.refused)) {
    return {
      tone: "bad",
      headline: "Headgate fails requests",
      detail: `${share} of requests are refused, some of them because Headgate fails.`,
    };
  }
  if (refusing) {
    const byAdmission = rates.admissionRefused > rates.overLimit;
    return {
      tone: byAdmission ? "warn" : "notice",
      headline: `Refusing ${share}`,
      detail: byAdmission
        ? "Admission protects services: see Services."
        : "Callers exceed their limits, as the policy defines. Headgate itself is healthy.",
    };
  }
  return rates.passed + rates.refused === 0
    ? {
        tone: "good",
        headline: "Healthy, no traffic",
        detail: "No decisions in the last seconds. Check that Envoy sends its calls here.",
      }
    : {
        tone: "good",
        headline: "All healthy",
        detail: `${share} of requests are refused. The store and all replicas answer.`,
      };
}

function overloadText(
  services: readonly OverloadedService[],
  alsoRefusing: string,
): Pick<FleetVerdict, "headline" | "detail"> {
  const [worst] = [...services].sort(
    (a, b) => b.shedRatio - a.shedRatio || b.overflowPerSecond - a.overflowPerSecond,
  );
  const { name = "", shedRatio = 0, overflowPerSecond = 0 } = worst ?? {};
  const others = services.length - 1;
  const also = others === 0 ? "" : ` and ${formatMany(others, "other service")}`;
  const byBreakers = shedRatio < refusedRatioNoticed && overflowPerSecond > 0;
  return byBreakers
    ? {
        headline: `${name}${also} overloaded: Envoys refuse ${formatRate(overflowPerSecond)}`,
        detail: `Circuit breakers refuse what is above the limit.${alsoRefusing}`,
      }
    : {
        headline: `${name}${also} overloaded: ${formatPercent(shedRatio)} shed`,
        detail: `Admission refuses what the service could not serve in time.${alsoRefusing}`,
      };
}
