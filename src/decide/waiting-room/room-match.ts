import { isPlainPath, matchesPath, urlPathOf } from "../../core/base/path-pattern.js";
import { addressAttribute, pathHeader } from "../../policy/cel/request-facts.js";
import { hostOf } from "../../policy/services/service-index.js";
import {
  type Network,
  networkContains,
  parseNetwork,
  parseSourceAddress,
} from "../../policy/text/network.js";
import type { RoomPolicy } from "../../policy/waiting-rooms/room-policy.js";
import type { AdmissionRequest } from "../admission/admission-call.js";

type Facts = Pick<AdmissionRequest, "headers" | "attributes">;

/** Decides which requests a room guards, and which of them bypass it. */
export class RoomMatcher {
  readonly #policy: RoomPolicy;
  readonly #sources: readonly Network[];

  constructor(policy: RoomPolicy) {
    this.#policy = policy;
    this.#sources = policy.bypass.sources.flatMap((text) => parseNetwork(text) ?? []);
  }

  /**
   * Whether the room guards a request. A missing or ambiguous part counts as matched: otherwise,
   * `/x/../checkout` would bypass the room of `/checkout`.
   */
  matches({ headers }: Facts): boolean {
    const { methods, paths } = this.#policy.match;
    if (!this.hasHost(headers.get(":authority"))) return false;
    const method = headers.get(":method");
    if (methods.length > 0 && method !== undefined && !methods.includes(method)) return false;
    const path = headers.get(pathHeader);
    if (paths.length === 0 || path === undefined) return true;
    const urlPath = urlPathOf(path);
    return matchesPath(paths, urlPath) || !isPlainPath(urlPath);
  }

  /** Whether the room guards a host. */
  hasHost(authority: string | undefined): boolean {
    const { hosts } = this.#policy.match;
    return hosts.length === 0 || authority === undefined || hosts.includes(hostOf(authority));
  }

  /**
   * Returns the endpoint of the room that a request is for, such as `join`, or any other name below
   * `endpointPath`. Undefined: none.
   */
  endpointOf({ headers }: Facts): string | undefined {
    const { endpointPath } = this.#policy;
    const path = headers.get(pathHeader);
    if (path?.startsWith(`${endpointPath}/`) !== true) return undefined;
    if (!this.hasHost(headers.get(":authority"))) return undefined;
    return urlPathOf(path).slice(endpointPath.length + 1);
  }

  /** Whether a header or the address of a request lets it pass. Does not check its priority. */
  bypasses({ headers, attributes }: Facts): boolean {
    const { bypass } = this.#policy;
    for (const { name, values } of bypass.headers) {
      const value = headers.get(name);
      if (value !== undefined && (values.length === 0 || values.includes(value))) return true;
    }
    if (this.#sources.length === 0) return false;
    const source = attributes.get(addressAttribute);
    const address = typeof source === "string" ? parseSourceAddress(source) : undefined;
    return address !== undefined && this.#sources.some((one) => networkContains(one, address));
  }
}
