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

/** Descriptors that are kept with what they match, of all services together. */
export const keptDescriptorsMax = 300_000;

/** Hosts that are kept with whose they are. */
export const keptHostsMax = 10_000;

/** A service as far as requests of a log are charged by it. */
type AskingService = Pick<ServicePolicy, "name" | "rateLimit">;

/** A descriptor that a request asks. */
export interface AskedPart extends SimulatedPart {
  readonly kind: "asked";
  /** `key=value, key=value` */
  readonly text: string;
}

/** What a descriptor of a service comes to for a request. */
export type SimulatedDescriptor =
  | AskedPart
  /** Only Envoy could tell the part with this key. */
  | { readonly kind: "unknown"; readonly key: string }
  /** It is told after the response, and no log says what it costs. @property key the first part */
  | { readonly kind: "later"; readonly key: string }
  | { readonly kind: "absent" };

/** Where a request's descriptors come from. */
interface AskedServicesParts {
  readonly trial: PolicySimulator;
  /** Asks the same limits of every request, whatever its host; undefined: as the services say. */
  readonly forAll: AskingService | undefined;
}

/** Whose a host is. */
interface KnownHost {
  readonly authority: string;
  /** Undefined where it is nobody's, or no limits are asked there. */
  readonly sources: readonly DescriptorSource[] | undefined;
}

/** What the requests of a log are asked: each descriptor made and matched once. */
export class AskedServices {
  readonly #policy: Policy;
  readonly #forAll: AskingService | undefined;
  readonly #sources: ReadonlyMap<AskingService, readonly DescriptorSource[]>;
  readonly #hosts = new GenerationalMap<string, KnownHost>(keptHostsMax);
  /** The one that was asked for last: mostly it is the same again. */
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

  /** How much is kept now. */
  get keptCounts(): { readonly descriptors: number; readonly hosts: number } {
    const sources = [...this.#sources.values()].flat();
    const descriptors = sources.reduce((sum, { keptCount }) => sum + keptCount, 0);
    return { descriptors, hosts: this.#hosts.size };
  }

  /**
   * What is asked for a request; undefined where no service with limits has its host.
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
    // A policy of one service without hosts is for all of them.
    const [only, ...others] = services;
    return only !== undefined && others.length === 0 && only.hosts.length === 0 ? only : undefined;
  }
}

/** What the descriptors of services are made of. */
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
  /** The service, with this descriptor alone. */
  readonly asking: AskingService;
  readonly descriptor: ServiceDescriptor;
  readonly wanted: WantedFacts;
  readonly trial: PolicySimulator;
  readonly keptMax: number;
}

/** Makes one descriptor of a service for requests, and keeps what it made by what it read. */
class DescriptorSource {
  readonly #asking: AskingService;
  readonly #trial: PolicySimulator;
  readonly #known: GenerationalMap<string, SimulatedDescriptor>;
  /** The headers that it reads, by their places in requests. */
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
    // As they were cut from a line, they would hold on to all of it.
    const own = { ...request, headers: headers.map(ownText), address: ownText(address) };
    const asked = this.#make(own);
    this.#known.set(ownText(read), asked);
    return asked;
  }

  /** All that it reads; where that is one text, as of most descriptors, no other one is made. */
  #read({ headers, address }: LoggedRequest): string {
    let all = this.#isOfAddress ? address : undefined;
    for (const { place } of this.#headers) {
      const said = headers[place] ?? "";
      // The length says where a text ends, so that no others make the same.
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

/** The same text with characters of its own. */
function ownText(text: string): string {
  return text === "" ? text : String(JSON.parse(JSON.stringify(text)));
}

const nothing: ServiceQuery = { query: undefined, leftOut: [] };
const absent: SimulatedDescriptor = { kind: "absent" };
