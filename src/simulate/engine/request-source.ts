import { expectedTimeoutHeader } from "../../core/admission/deadline.js";
import type { Priority } from "../../core/admission/priority.js";
import { priorities } from "../../core/admission/priority.js";
import { power } from "../../core/collections/power.js";
import type { AdmissionRequest } from "../../decide/admission/admission-call.js";
import { addressAttribute } from "../../policy/cel/request-facts.js";
import type { Scenario } from "../../policy/scenario/parse-scenario.js";
import type { SeededRandom } from "./seeded-random.js";

/** A caller of a scenario. */
export type CallerSettings = Scenario["callers"][number];

interface RequestSourceParts {
  readonly settings: CallerSettings;
  /** Host of requests; undefined: the service's name. */
  readonly host: string;
  readonly random: SeededRandom;
}

/**
 * Makes the requests of a caller. Each distinct request is made once and lives as long as the
 * source: there are as many as combinations of classes and keys.
 */
export class RequestSource {
  readonly #parts: RequestSourceParts;
  readonly #classEnds: readonly number[];
  readonly #keyEnds: Float64Array | undefined;
  readonly #known = new Map<number, AdmissionRequest>();
  readonly #knownHeaders = new Map<number, AdmissionRequest["headers"]>();

  constructor(parts: RequestSourceParts) {
    this.#parts = parts;
    const { classes, keys } = parts.settings;
    let sum = 0;
    this.#classEnds = priorities.map((priority) => {
      sum += classes[priority];
      return sum;
    });
    if (keys?.count !== undefined) this.#keyEnds = zipfEnds(keys.count, keys.zipf);
  }

  /** Draws a class. The rest of the shares is normal. */
  drawClass(): Priority {
    const draw = this.#parts.random.next();
    const index = this.#classEnds.findIndex((end) => draw < end);
    return priorities[index] ?? "normal";
  }

  /** Draws a key, from 0; 0 if there are no keys. */
  drawKey(): number {
    if (this.#keyEnds === undefined) return 0;
    return firstAbove(this.#keyEnds, this.#parts.random.next());
  }

  /** Returns the request of a class and a key, as an Envoy forwards it. */
  request(priority: Priority, key: number, envoy: number): AdmissionRequest {
    const id = (envoy * (this.#keyEnds?.length ?? 1) + key) * 4 + priorities.indexOf(priority);
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    const { address, service } = this.#parts.settings;
    const request: AdmissionRequest = {
      serviceName: service,
      peer: `envoy-${envoy + 1}`,
      headers: this.#headers(priority, key),
      attributes: new Map(address === undefined ? [] : [[addressAttribute, address]]),
      isObserved: false,
    };
    this.#known.set(id, request);
    return request;
  }

  /** Returns the same map for all Envoys, because prepared rate limit queries are cached by it. */
  #headers(priority: Priority, key: number): AdmissionRequest["headers"] {
    const id = key * 4 + priorities.indexOf(priority);
    const known = this.#knownHeaders.get(id);
    if (known !== undefined) return known;
    const { settings, host } = this.#parts;
    const { keys, deadline, statesDeadline, classHeader, headers } = settings;
    const all = new Map([
      [":authority", host],
      [":method", settings.method],
      [":path", settings.path],
      [classHeader.toLowerCase(), priority],
      ...(headers ?? []),
    ]);
    if (statesDeadline) all.set(expectedTimeoutHeader, String(deadline));
    if (keys?.header !== undefined) {
      all.set(keys.header.toLowerCase(), `${keys.prefix ?? settings.name}-${key + 1}`);
    }
    this.#knownHeaders.set(id, all);
    return all;
  }
}

/** Returns cumulative probabilities of keys: key k is drawn in proportion to k^-exponent. */
function zipfEnds(count: number, exponent: number): Float64Array {
  const ends = new Float64Array(count);
  let sum = 0;
  for (let i = 0; i < count; i += 1) {
    sum += power(i + 1, -exponent);
    ends[i] = sum;
  }
  return ends.map((end) => end / sum);
}

/** Returns the index of the first value above a draw. Values ascend. */
function firstAbove(ends: Float64Array, draw: number): number {
  let low = 0;
  let high = ends.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ends[middle] ?? 1) > draw) high = middle;
    else low = middle + 1;
  }
  return low;
}
