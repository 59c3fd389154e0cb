import type { ScalarValue } from "../../core/admission/exchange-messages.js";
import { urlPathOf } from "../../core/base/path-pattern.js";

/** A request as seen by conditions and classes. */
export interface RequestFacts {
  /** By lower-case name, including pseudo-headers. */
  readonly headers: ReadonlyMap<string, string>;
  /** Envoy's attributes by name. */
  readonly attributes: ReadonlyMap<string, ScalarValue>;
}

/** One fact that a condition may name, such as `request.path`. */
export interface FactField {
  /** The header that it is read from; undefined: none. */
  readonly header?: string;
  /** The attribute that it is read from; undefined: none. */
  readonly attribute?: string;
  /** Undefined if the request does not contain it. */
  read(facts: RequestFacts): string | undefined;
}

function fromHeader(
  header: string,
  read: (value: string) => string | undefined = (value) => value,
): FactField {
  return {
    header,
    read: ({ headers }) => {
      const value = headers.get(header);
      return value === undefined ? undefined : read(value);
    },
  };
}

function fromAttribute(attribute: string): FactField {
  return {
    attribute,
    read: ({ attributes }) => {
      const value = attributes.get(attribute);
      return typeof value === "string" ? value : undefined;
    },
  };
}

/** The header with path and query. */
export const pathHeader = ":path";

/** The source address of a connection, with its port. */
export const addressAttribute = "source.address";

/** The name of the route. */
export const routeAttribute = "xds.route_name";

/** The first URI in the caller's certificate. */
export const principalAttribute = "connection.uri_san_peer_certificate";

/**
 * Facts that conditions may read besides `request.headers`, by variable and field; all are texts.
 * Names and meanings are Envoy's. Most are read from pseudo-headers, which need no attribute.
 *
 * Source: Envoy, "Attributes" (request, source, connection).
 */
export const factFields: Readonly<Record<FactVariable, ReadonlyMap<string, FactField>>> = {
  request: new Map([
    ["path", fromHeader(pathHeader)],
    ["url_path", fromHeader(pathHeader, urlPathOf)],
    ["query", fromHeader(pathHeader, queryOf)],
    ["host", fromHeader(":authority")],
    ["method", fromHeader(":method")],
    ["scheme", fromHeader(":scheme")],
    ["id", fromHeader("x-request-id")],
    ["protocol", fromAttribute("request.protocol")],
  ]),
  source: new Map([
    ["address", fromAttribute(addressAttribute)],
    ["principal", fromAttribute(principalAttribute)],
  ]),
};

/** Variables that conditions may use. */
export type FactVariable = "request" | "source";

/** Returns the text after the `?`; empty if there is none. */
function queryOf(path: string): string {
  const start = path.indexOf("?");
  if (start === -1) return "";
  const end = path.indexOf("#", start);
  return path.slice(start + 1, end === -1 ? undefined : end);
}
