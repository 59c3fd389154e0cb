import type { ExchangeMessage, ExchangeReply } from "../../core/admission/exchange-messages.js";
import { decodeExchange, type WantedParts, type WantedPaths } from "./ext-proc-decoder.js";
import { ExchangeReplyEncoder } from "./ext-proc-encoder.js";
import { WantedNames } from "./ext-proc-names.js";

/** The wanted parts of messages. The rest is only checked to be well-formed. */
export interface WantedExchange {
  /** Names of headers and trailers of requests, in lower case as Envoy sends them. */
  readonly requestHeaderNames: ReadonlySet<string>;
  /** Names of headers and trailers of responses, in lower case. */
  readonly responseHeaderNames: ReadonlySet<string>;
  /** Names of attributes, for example `source.address`. */
  readonly attributeNames: ReadonlySet<string>;
  /** Namespaces of dynamic metadata, with paths such as `usage.prompt_tokens`. */
  readonly metadataPaths: ReadonlyMap<string, ReadonlySet<string>>;
}

/** The key under which Envoy sends attributes. Source: FilterName of the ext_proc filter. */
const attributesKey = "envoy.filters.http.ext_proc";

/**
 * Converts the messages of Envoy's ExternalProcessor to and from those of an exchange. Neither
 * direction creates objects of the protobuf library.
 */
export class ExtProcCodec {
  readonly #wanted: WantedExchange;
  readonly #encoder = new ExchangeReplyEncoder();
  #compiled: CompiledNames;

  /** @param wanted its sets may be replaced by others at any time, and are never modified */
  constructor(wanted: WantedExchange) {
    this.#wanted = wanted;
    this.#compiled = new CompiledNames(wanted);
  }

  /**
   * Decodes a message. Never throws: bytes that are not a ProcessingRequest result in `malformed`.
   * After it returns, only the `body` of the result still refers to the bytes.
   */
  decode(bytes: Uint8Array): ExchangeMessage {
    if (!this.#compiled.isOf(this.#wanted)) this.#compiled = new CompiledNames(this.#wanted);
    try {
      return decodeExchange(bytes, this.#compiled);
    } catch {
      return { kind: "malformed" };
    }
  }

  /** Returns the bytes of a reply. They are not written again. */
  encode(reply: ExchangeReply): Uint8Array {
    return this.#encoder.encode(reply);
  }
}

/** The wanted names at one point in time, compiled for a search in bytes. */
class CompiledNames implements WantedParts {
  readonly #source: WantedExchange;
  readonly requestHeaders: WantedNames;
  readonly responseHeaders: WantedNames;
  readonly attributes: WantedNames;
  readonly attributesKey = new WantedNames(new Set([attributesKey]));
  readonly metadataKeys: WantedNames;
  readonly metadata: ReadonlyMap<string, WantedPaths>;

  constructor(wanted: WantedExchange) {
    const { requestHeaderNames, responseHeaderNames, attributeNames, metadataPaths } = wanted;
    this.#source = { requestHeaderNames, responseHeaderNames, attributeNames, metadataPaths };
    this.metadataKeys = new WantedNames(new Set(metadataPaths.keys()));
    this.metadata = new Map(
      Array.from(metadataPaths, ([namespace, paths]) => [namespace, wantedPaths([...paths])]),
    );
    this.requestHeaders = new WantedNames(requestHeaderNames);
    this.responseHeaders = new WantedNames(responseHeaderNames);
    this.attributes = new WantedNames(attributeNames);
  }

  isOf(wanted: WantedExchange): boolean {
    return (
      wanted.requestHeaderNames === this.#source.requestHeaderNames &&
      wanted.responseHeaderNames === this.#source.responseHeaderNames &&
      wanted.attributeNames === this.#source.attributeNames &&
      wanted.metadataPaths === this.#source.metadataPaths
    );
  }
}

/** Groups paths by their first name. */
function wantedPaths(paths: readonly string[], before = ""): WantedPaths {
  const byName = new Map<string, string[]>();
  for (const path of paths) {
    const [name = "", ...rest] = path.split(".");
    const inner = byName.get(name) ?? [];
    inner.push(rest.join("."));
    byName.set(name, inner);
  }
  const inner = new Map<string, { path: string | undefined; paths: WantedPaths | undefined }>();
  for (const [name, rests] of byName) {
    const path = before === "" ? name : `${before}.${name}`;
    const deeper = rests.filter((rest) => rest !== "");
    inner.set(name, {
      path: rests.includes("") ? path : undefined,
      paths: deeper.length === 0 ? undefined : wantedPaths(deeper, path),
    });
  }
  return { names: new WantedNames(new Set(byName.keys())), inner };
}
