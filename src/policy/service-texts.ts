import { parseNetwork } from "./network.js";
import type { Field, NodeReader } from "./node-reader.js";
import { isPlainPath } from "./path-prefix.js";
import { type ProblemId, quoteText } from "./problem.js";
import type { TextRule } from "./text-rules.js";

/** A text with a form of its own. */
interface TextForm {
  readonly id: ProblemId;
  /** For messages: `a header's name`. */
  readonly what: string;
  readonly rule: TextRule;
  isRight(text: string): boolean;
  /** What it was probably meant to be; used where that is right. */
  meant(text: string): string;
  /** It may hold a password, which no message repeats. */
  readonly isSecret?: true;
}

const control = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;

function ruleOf(charsMax: number, expected: string): TextRule {
  return { charsMax, forbidden: control, expected };
}

/** Source: RFC 1123 section 2.1, as names of Kubernetes services and namespaces. */
const labelPattern = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

const labelForm: TextForm = {
  id: "HG226",
  what: "a name of a service or namespace",
  rule: ruleOf(63, "lower-case letters, digits and `-` between them, at most 63"),
  isRight: (text) => labelPattern.test(text),
  meant: (text) => text.toLowerCase().replaceAll(/[_. ]/g, "-"),
};

/** Source: RFC 9110 section 5.1; lower case as in HTTP/2. */
const headerForm: TextForm = {
  id: "HG223",
  what: "a header's name",
  rule: ruleOf(128, "a header's name in lower case, such as x-user"),
  isRight: (text) => /^[a-z0-9!#$%&'*+.^_`|~-]+$/.test(text),
  meant: (text) => text.toLowerCase().replaceAll(" ", "-").replace(/:$/, ""),
};

const hostForm: TextForm = {
  id: "HG222",
  what: "a host",
  rule: ruleOf(253, "a host name or an IPv4 address, without scheme, port or wildcard"),
  isRight: (text) =>
    text.split(".").every((label) => /^[a-z0-9_](?:[a-z0-9_-]{0,62})$/i.test(label)),
  meant: (text) =>
    text
      .replace(/^[a-z]+:\/\//i, "")
      .replace(/[/:].*$/, "")
      .replace(/^\*\./, "")
      .replace(/\.$/, ""),
};

const addressForm: TextForm = {
  ...hostForm,
  rule: ruleOf(253, "a host name or an IP address; the port stands beside it"),
  isRight: (text) =>
    hostForm.isRight(text) || (!text.includes("/") && parseNetwork(text) !== undefined),
};

const networkForm: TextForm = {
  id: "HG224",
  what: "a network",
  rule: ruleOf(64, "an IP address, or a network such as 10.0.0.0/8 or fd00::/8"),
  isRight: (text) => parseNetwork(text) !== undefined,
  meant: (text) => text.trim(),
};

const pathForm: TextForm = {
  id: "HG225",
  what: "a path",
  rule: ruleOf(1_024, "a path that begins with `/`, such as /healthz; all below it is meant too"),
  isRight: (text) => /^\/[^?#*]*$/.test(text) && isPlainPath(text),
  meant: (text) => `/${text}`.replace(/^\/+/, "/").replace(/\/?\*+$/, "/"),
};

const urlForm: TextForm = {
  id: "HG227",
  what: "a URL of http or https without a user",
  rule: ruleOf(2_048, "a URL such as http://lag.example:8080/now, without user and password"),
  isRight: (text) => /^https?:\/\/[a-z0-9_.-]+(?::[0-9]{1,5})?(?:[/?][!-~]*)?$/i.test(text),
  meant: (text) => text,
  isSecret: true,
};

/** Reads the name of a service or namespace: a DNS label. */
export function readLabel(reader: NodeReader, field: Field): string | undefined {
  return readForm(reader, field, labelForm);
}

/** Reads a header's name, in lower case. */
export function readHeaderName(reader: NodeReader, field: Field): string | undefined {
  return readForm(reader, field, headerForm);
}

/** Reads a host as requests name it; answers it in lower case. */
export function readHost(reader: NodeReader, field: Field): string | undefined {
  return readForm(reader, field, hostForm)?.toLowerCase();
}

/** Reads a host name or IP address to connect to. */
export function readAddress(reader: NodeReader, field: Field): string | undefined {
  return readForm(reader, field, addressForm);
}

/** Reads an address or network. */
export function readNetwork(reader: NodeReader, field: Field): string | undefined {
  return readForm(reader, field, networkForm);
}

/** Reads a path prefix. */
export function readPath(reader: NodeReader, field: Field): string | undefined {
  return readForm(reader, field, pathForm);
}

/** Reads a URL without credentials. */
export function readUrl(reader: NodeReader, field: Field): string | undefined {
  return readForm(reader, field, urlForm);
}

function readForm(reader: NodeReader, field: Field, form: TextForm): string | undefined {
  const text = reader.readText(field, form.rule);
  if (text === undefined || form.isRight(text)) return text;
  const meant = form.meant(text);
  return reader.reportContent(field.value ?? field.key, {
    id: form.id,
    message: `${form.isSecret ? "this" : quoteText(text)} is not ${form.what}`,
    expected: form.rule.expected,
    suggestion: meant !== text && form.isRight(meant) ? meant : undefined,
  });
}
