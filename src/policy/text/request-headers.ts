import type { HeaderField } from "../../core/base/header-field.js";
import { fallbackHeader } from "../../core/limits/request-marks.js";
import { quoteText } from "../problems/problem.js";
import { type FieldType, readBy, text } from "./form.js";
import type { Field, NodeReader } from "./node-reader.js";
import { headerName, headerPattern } from "./service-texts.js";
import type { TextRule } from "./text-rules.js";

/** Maximum number of headers that one answer sets on a request. */
export const setHeadersMax = 8;

const valueRule: TextRule = {
  charsMax: 256,
  forbidden: /[^ -~]/,
  expected: "a header's value of 1 to 256 printable ASCII characters",
};

/**
 * Headers that no answer may set: those of the connection, those that determine where a request
 * ends or which host it is for, and those that Envoy reserves. Source: RFC 9110 section 7.6.1;
 * Envoy, HeaderMutationRules.
 */
const reservedHeader = new RegExp(
  `^(?:${[
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-.*",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-envoy-.*",
    fallbackHeader,
  ].join("|")})$`,
);

/** Headers by name, 1 to `max`, that are set on requests to the upstream. */
export function requestHeaders(
  expected: string,
  max = setHeadersMax,
): FieldType<readonly HeaderField[]> {
  const form = { kind: "texts", key: headerPattern, value: text(valueRule), max } as const;
  return readBy(form, (reader, place) => {
    const rows = reader.readTextMap(place, { title: "headers", expected });
    if (rows === undefined) return undefined;
    if (rows.length === 0 || rows.length > max) {
      const message = `${quoteText(place.name)} of ${rows.length} headers`;
      const bound = max === 1 ? "one header" : `1 to ${max} headers`;
      return reader.report(place.key, { id: "HG160", message, expected: bound });
    }
    const read = rows.map((row) => readHeader(reader, row));
    const right = read.flatMap((one) => one ?? []);
    return right.length === rows.length ? right : undefined;
  });
}

function readHeader(reader: NodeReader, row: Field): HeaderField | undefined {
  const name = headerName.read(reader, { ...row, value: row.key });
  const value = reader.readText(row, valueRule);
  if (name === undefined || value === undefined) return undefined;
  if (!reservedHeader.test(name)) return { name, value };
  return reader.report(row.key, {
    id: "HG290",
    message: `${quoteText(name)} cannot be set on a request`,
    expected: "a header that only your services look at, such as x-budget",
  });
}
