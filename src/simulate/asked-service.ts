import { GenerationalMap } from "../core/collections/generational-map.js";
import { type ServiceQuery, serviceQuery } from "../decide/admission/service-query.js";
import type { PolicySimulator } from "../decide/shadow/policy-simulator.js";
import type { SimulatedPart } from "../decide/shadow/simulated-parts.js";
import { addressAttribute, pathHeader } from "../policy/cel/request-facts.js";
import type { Policy } from "../policy/policy.js";
import type { DescriptorPart } from "../policy/services/descriptor-parts.js";
import type { ServicePolicy } from "../policy/services/service-policy.js";
import type { ServiceDescriptor } from "../policy/services/service-rate-limit.js";
import type { LoggedRequest, WantedFacts } from "./logged-request.js";

/** Maximum number of descriptors cached with their matches, of all services together. */
export const keptDescriptorsMax = 300_000;

/** Maximum number of hosts cached with their services. */
export const keptHostsMax = 10_000;

/** The part of a service that determines the charges for requests of a log. */
type AskingService = Pick<ServicePolicy, "name" | "rateLimit">;

/** A descriptor that a request is checked against. */
export interface AskedPart extends SimulatedPart {
  readonly kind: "asked";
  /** `key=value, key=value` */
  readonly text: string;
}

/** Result of a service's descriptor for a request. */
export type SimulatedDescriptor =
  | AskedPart
  /** Only Envoy knows the value of the part with this key. */
  | { readonly kind: "unknown"; readonly key: string }
  /** Sent after the response, with a cost that no log contains. @property key of the first part */
  | { readonly kind: "later"; readonly key: string }
  | { readonly kind: "absent" };

/** Sources of a request's descriptors. */
interface AskedServicesParts {
  readonly trial: PolicySimulator;
  /** Service whose limits apply to every request and host; undefined: as the services say. */
  readonly forAll: AskingService | undefined;
}

/** A host and the descriptors of its service. */
interface KnownHost {
  readonly authority: string;
  /** Undefined if no service has the host, or the service has no limits. */
  readonly sources: readonly DescriptorSource[] | undefined;
}

/** Makes and matches each descriptor of the requests in a log once, and caches the result. */
export class AskedServices {
  readonly #policy: Policy;
  readonly #forAll: AskingService | undefined;
  readonly #sources: ReadonlyMap<AskingService, readonly DescriptorSource[]>;
  readonly #hosts = new GenerationalMap<string, KnownHost>(keptHostsMax);
  /** The host of the previous request, which is normally the same again. */
  #lastHost: KnownHost | undefined;

  constructor({ trial, forAll }: AskedServicesParts) {
    this.#policy = trial.policy;
    this.#forAll = forAll;
    const services = forAll === undefined ? trial.policy.services : [forAll];
    const wanted = wantedFacts(services);
    const count = services.reduce((sum, one) => sum + (one.rateLimit?.descriptors.length ?? 0), 0);
    const keptMax = Math.max(1, Math.floor(keptDescriptorsMax / Math.max(1, count)));
    this.#sources = new Map(
      services.flatMap((service): readonly [AskingService, readonly DescriptorSource[]][] => {
        const { rateLimit } = service;
        if (rateLimit === undefined) return [];
        const sources = rateLimit.descriptors.map((descriptor) => {
          const { name } = service;
          const asking = { name, rateLimit: { ...rateLimit, descriptors: [descriptor] } };
          return new DescriptorSource({ asking, descriptor, wanted, trial, keptMax });
        });
        return [[service, sources]];
      }),
    );
  }

  /** Number of entries in the caches. */
  get keptCounts(): { readonly descriptors: number; readonly hosts: number } {
    const sources = [...this.#sources.values()].flat();
    const descriptors = sources.reduce((sum, { keptCount }) => sum + keptCount, 0);
    return { descriptors, hosts: this.#hosts.size };
  }

  /**
   * Returns the descriptors of a request; undefined if no service with limits has its host.
   *
   * @throws ServiceError REQUEST_INVALID; see `PolicySimulator`
   */
  asked(request: LoggedRequest): readonly SimulatedDescriptor[] | undefined {
    return this.#sourcesAt(request.authority)?.map((source) => source.asked(request));
  }

  #sourcesAt(authority: string): readonly DescriptorSource[] | undefined {
    if (authority === this.#lastHost?.authority) return this.#lastHost.sources;
    let known = this.#hosts.get(authority);
    if (known === undefined) {
      const service = this.#serviceAt(authority);
      const sources = service === undefined ? undefined : this.#sources.get(service);
      known = { authority: ownText(authority), sources };
      if (this.#hosts.wantsMore()) this.#hosts.set(known.authority, known);
    }
    this.#lastHost = known;
    return known.sources;
  }

  #serviceAt(authority: string): AskingService | undefined {
    if (this.#forAll !== undefined) return this.#forAll;
    const { serviceIndex, services } = this.#policy;
    const found = authority === "" ? undefined : serviceIndex.at(authority);
    if (found !== undefined) return found.service;
    // The only service of a policy gets the requests of all hosts if it has no hosts itself.
    const [only, ...others] = services;
    return only !== undefined && others.length === 0 && only.hosts.length === 0 ? only : undefined;
  }
}

/** Returns the facts that the descriptors of services are made of. */
export function wantedFacts(services: readonly AskingService[]): WantedFacts {
  const headers = new Set<string>();
  let isAddressWanted = false;
  for (const { rateLimit } of services) {
    for (const { parts } of rateLimit?.descriptors ?? []) {
      for (const part of parts) {
        for (const header of headersOf(part)) headers.add(header);
        if (isOfAddress(part)) isAddressWanted = true;
      }
    }
  }
  return { headers: [...headers], address: isAddressWanted ? "wanted" : "unwanted" };
}

function headersOf(part: DescriptorPart): readonly string[] {
  switch (part.kind) {
    case "header":
      return [part.header];
    case "headerMatch":
      return part.matches.map(({ name }) => name);
    case "query":
    case "queryMatch":
      return [pathHeader];
    case "fixed":
    case "remoteAddress":
    case "maskedAddress":
    case "destinationCluster":
    case "metadata":
    case "sourceCluster":
    case "expression":
      return [];
  }
}

function isOfAddress({ kind }: DescriptorPart): boolean {
  return kind === "remoteAddress" || kind === "maskedAddress";
}

interface DescriptorSourceParts {
  /** The service with only this descriptor. */
  readonly asking: AskingService;
  readonly descriptor: ServiceDescriptor;
  readonly wanted: WantedFacts;
  readonly trial: PolicySimulator;
  readonly keptMax: number;
}

/** Makes one descriptor of a service for requests. Caches results by the facts that it read. */
class DescriptorSource {
  readonly #asking: AskingService;
  readonly #trial: PolicySimulator;
  readonly #known: GenerationalMap<string, SimulatedDescriptor>;
  /** Headers that it reads, with their indexes in requests. */
  readonly #headers: readonly { readonly name: string; readonly place: number }[];
  readonly #isOfAddress: boolean;

  constructor({ asking, descriptor, wanted, trial, keptMax }: DescriptorSourceParts) {
    this.#asking = asking;
    this.#trial = trial;
    this.#known = new GenerationalMap(keptMax);
    const names = new Set(descriptor.parts.flatMap(headersOf));
    this.#headers = [...names].map((name) => ({ name, place: wanted.headers.indexOf(name) }));
    this.#isOfAddress = descriptor.parts.some(isOfAddress);
  }

  get keptCount(): number {
    return this.#known.size;
  }

  asked(request: LoggedRequest): SimulatedDescriptor {
    const read = this.#read(request);
    const known = this.#known.get(read);
    if (known !== undefined) return known;
    const { headers, address } = request;
    // Slices of a line would keep the whole line in memory.
    const own = { ...request, headers: headers.map(ownText), address: ownText(address) };
    const asked = this.#make(own);
    this.#known.set(ownText(read), asked);
    return asked;
  }

  /** Returns all facts read, as one text. A single fact, the most common case, is not copied. */
  #read({ headers, address }: LoggedRequest): string {
    let all = this.#isOfAddress ? address : undefined;
    for (const { place } of this.#headers) {
      const said = headers[place] ?? "";
      // The length marks the end of a text, so that different texts never give the same result.
      all = all === undefined ? said : `${all.length} ${all}${said}`;
    }
    return all ?? "";
  }

  #make({ headers, address, timeUs }: LoggedRequest): SimulatedDescriptor {
    const said = new Map<string, string>();
    for (const { name, place } of this.#headers) {
      const value = headers[place] ?? "";
      if (value !== "") said.set(name, value);
    }
    const attributes = new Map<string, string>();
    if (address !== "") attributes.set(addressAttribute, address);
    const { query, leftOut } = serviceQuery(this.#asking, { headers: said, attributes }) ?? nothing;
    const [descriptor] = query?.descriptors ?? [];
    if (query !== undefined && descriptor !== undefined) {
      const part = this.#trial.preparePart(query.domain, descriptor, timeUs);
      return {
        kind: "asked",
        text: descriptor.entries.map(({ key, value }) => `${key}=${value}`).join(", "),
        ...part,
      };
    }
    const [left] = leftOut;
    if (left === undefined || left.why === "absent") return absent;
    return { kind: left.why === "unknown" ? "unknown" : "later", key: left.key };
  }
}

/** Returns a copy of a text that does not share its characters with another one. */
function ownText(text: string): string {
  return text === "" ? text : String(JSON.parse(JSON.stringify(text)));
}

const nothing: ServiceQuery = { query: undefined, leftOut: [] };
const absent: SimulatedDescriptor = { kind: "absent" };
