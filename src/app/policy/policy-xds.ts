import { createHash } from "node:crypto";
import type { Clock, Random } from "../../core/base/clock.js";
import type { ParseOptions } from "../../policy/parse.js";
import type { Policy } from "../../policy/policy.js";
import { visibleText } from "../../policy/problems/problem.js";
import {
  AdsClient,
  type AdsEvent,
  type AdsStatus,
  type SetVerdict,
} from "../../rpc/policy-xds/ads-client.js";
import type { DiscoveredSet } from "../../rpc/policy-xds/ads-messages.js";
import { openGrpcJsAdsStream } from "../../rpc/policy-xds/grpc-js-ads-stream.js";
import {
  type DiscoveredResource,
  rateLimitConfigTypeUrl,
} from "../../rpc/policy-xds/rate-limit-config.js";
import type { Logger } from "../base/logger.js";
import type { XdsChoice } from "../config/xds-choice.js";
import { readXdsCredentials } from "../tls/xds-credentials.js";
import { ActivePolicy, type PolicyFeed, type PolicyStatus } from "./active-policy.js";
import { type ParsesPolicies, type PolicyParsing, parsePolicyInWorker } from "./policy-parsing.js";

interface XdsPoliciesParts {
  readonly xds: XdsChoice;
  /** Options for reading the texts of the resources. */
  readonly parse: ParseOptions;
  /** Default: a worker thread. */
  readonly parser?: ParsesPolicies;
  /** This program's version, sent to the control plane. */
  readonly programVersion: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** State of the connection to the control plane, for metrics. */
export interface XdsStatus extends AdsStatus {
  /** Time at which a set was last accepted, changed or not, in microseconds since 1970. */
  readonly confirmedEpochUs?: number;
}

/** Number of characters of a version. */
const versionCharsCount = 12;

/** Maximum number of characters of received text that a log line shows. */
const shownCharsMax = 200;

/**
 * Keeps the active policy from a control plane. A set of resources is one policy: a resource that
 * is missing from a set is removed, and a set with any invalid part changes nothing.
 */
export class XdsPolicies implements PolicyFeed {
  readonly #parts: XdsPoliciesParts;
  readonly #active: ActivePolicy;
  readonly #client: AdsClient;
  /** Content of the last set, and why it was refused for good. It is not parsed again. */
  #last: { readonly version: string; readonly refusal?: string } | undefined;
  #confirmedEpochUs: number | undefined;

  constructor(parts: XdsPoliciesParts) {
    const { xds, programVersion: version, clock, random } = parts;
    this.#parts = parts;
    this.#active = new ActivePolicy(parts);
    const { address, headers, messageBytesMax, tls, backoff, connectRetryMs } = xds;
    this.#client = new AdsClient({
      open: (listener) => {
        const read = tls === undefined ? {} : { tls: readXdsCredentials(tls) };
        return openGrpcJsAdsStream({ address, headers, messageBytesMax, ...read }, listener);
      },
      node: { id: xds.nodeId, metadata: xds.nodeMetadata, version },
      typeUrl: rateLimitConfigTypeUrl,
      backoff,
      connectRetryMs,
      clock,
      random,
      decide: (set) => this.#decide(set),
      onEvent: (event) => this.#logEvent(event),
    });
  }

  current(): Policy | undefined {
    return this.#active.current();
  }

  get status(): PolicyStatus {
    const { isConnected, lastEnd } = this.#client.status;
    const lastFailure = lastEnd === undefined ? {} : { lastFailure: lastEnd.reason };
    return { ...this.#active.status, controlPlane: { isConnected, ...lastFailure } };
  }

  get xdsStatus(): XdsStatus {
    const confirmed = this.#confirmedEpochUs;
    return {
      ...this.#client.status,
      ...(confirmed === undefined ? {} : { confirmedEpochUs: confirmed }),
    };
  }

  onLoaded(listener: () => void): () => void {
    return this.#active.onLoaded(listener);
  }

  /** Connects to the control plane. Call it once. */
  start(): void {
    this.#client.start();
  }

  /** Ends the connection. A policy that is being parsed may still become active. */
  close(): void {
    this.#client.close();
  }

  async #decide(set: DiscoveredSet): Promise<SetVerdict> {
    const version = contentVersion(set.resources);
    const isRepeated = version === this.#last?.version;
    if (isRepeated && this.#last?.refusal !== undefined) {
      return { kind: "refused", reason: this.#last.refusal, isRepeated };
    }
    if (set.resources.length === 0 && this.#active.current() === undefined) {
      this.#parts.logger.warn(
        { event: "policyMissing", server: this.#parts.xds.address },
        "The control plane has sent no configuration, so there is no policy yet.",
      );
      return { kind: "accepted", isRepeated };
    }
    if (version === this.#active.current()?.version) {
      // An invalid set came between, or a new stream began: the active policy is the newest again.
      this.#active.confirm();
      return this.#accept(version, isRepeated);
    }
    const { clock, parse, parser = parsePolicyInWorker } = this.#parts;
    const input = { kind: "resources", resources: set.resources } as const;
    const parsing = await parser({ input, parse, version, clock });
    return this.#take(parsing, { set, version, isRepeated });
  }

  #take(
    parsing: PolicyParsing,
    from: { readonly set: DiscoveredSet; readonly version: string; readonly isRepeated: boolean },
  ): SetVerdict {
    const { set, version, isRepeated } = from;
    const isFirst = this.#active.current() === undefined;
    const change = this.#active.take(parsing, { controlPlaneVersion: shown(set.version) });
    if (change.kind === "loaded") return this.#accept(version, isRepeated);
    const { report } = change;
    if (isFirst) {
      this.#parts.logger.error(
        { event: "policyRefused", cause: change.cause },
        `The policy of the control plane is invalid, and there is no other:\n${report}`,
      );
    }
    // A failure for lack of time, memory or a thread may not repeat if the set comes again.
    this.#last = parsing.kind === "problems" ? { version, refusal: report } : { version };
    return { kind: "refused", reason: report, isRepeated };
  }

  #accept(version: string, isRepeated: boolean): SetVerdict {
    this.#last = { version };
    this.#confirmedEpochUs = this.#parts.clock.epochUs();
    return { kind: "accepted", isRepeated };
  }

  #logEvent(event: AdsEvent): void {
    const { logger, xds } = this.#parts;
    const server = xds.address;
    if (event.kind === "connected") {
      logger.info({ event: "xdsConnected", server }, "The control plane is connected.");
      return;
    }
    const { reason, detail } = event.end;
    const facts = { server, reason, detail: shown(detail) };
    if (event.kind === "disconnected") {
      const sentence =
        this.current() === undefined
          ? "The control plane cannot be reached, and there is no policy yet; retrying."
          : "The control plane cannot be reached; the policy stays active; retrying.";
      logger.warn({ event: "xdsDisconnected", ...facts }, sentence);
    } else {
      const { waitMs } = event;
      logger.debug(
        { event: "xdsRetry", ...facts, waitMs },
        "The control plane still cannot be reached.",
      );
    }
  }
}

/** Returns a version of the content that ignores order, and the control plane's name for it. */
function contentVersion(resources: readonly DiscoveredResource[]): string {
  const digests = resources.map(({ typeUrl, value }) => {
    return createHash("sha256").update(`${typeUrl.length}:${typeUrl}`).update(value).digest("hex");
  });
  return createHash("sha256")
    .update(digests.sort().join())
    .digest("hex")
    .slice(0, versionCharsCount);
}

function shown(text: string): string {
  return visibleText(text.slice(0, shownCharsMax));
}
