import { isPlainPath } from "../../core/base/path-pattern.js";
import { type ProblemId, quoteText } from "../problems/problem.js";
import { type FieldType, type Form, readBy, ruledText, text } from "./form.js";
import { parseNetwork } from "./network.js";
import type { Field, NodeReader } from "./node-reader.js";
import type { TextRule } from "./text-rules.js";

/** A text with a syntax of its own. */
interface TextForm {
  readonly id: ProblemId;
  /** For messages: `a header's name`. */
  readonly what: string;
  readonly rule: TextRule;
  isRight(text: string): boolean;
  /** Returns a guess at what was meant; it is suggested if it is valid. */
  meant(text: string): string;
  /** Whether it may contain a password. Messages never repeat it then. */
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

/** Source: Kubernetes, "Object names and IDs", of a DNS subdomain. */
const secretPattern = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/;

const secretForm: TextForm = {
  ...labelForm,
  what: "a name of a secret",
  rule: ruleOf(253, "lower-case letters, digits, `-` and `.` between them, at most 253"),
  isRight: (text) => secretPattern.test(text),
};

/** Pattern of a header's name. */
export const headerPattern = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;

const quotaNameForm: TextForm = { ...labelForm, what: "a name of a quota" };

const budgetNameForm: TextForm = { ...labelForm, what: "a name of a budget" };

const roomNameForm: TextForm = { ...labelForm, what: "a name of a waiting room or event" };

/** Source: RFC 9110 section 5.1; lower case as in HTTP/2. */
const headerForm: TextForm = {
  id: "HG223",
  what: "a header's name",
  rule: ruleOf(128, "a header's name in lower case, such as x-user"),
  isRight: (text) => headerPattern.test(text),
  meant: (text) => text.toLowerCase().replaceAll(" ", "-").replace(/:$/, ""),
};

/** Parts of the request line, which proxies hand out like headers. Source: RFC 9113 section 8.3. */
const pseudoHeaderPattern = /^:(?:path|method|authority|scheme)$/;

/** Source of a descriptor's value: a header, or a part of the request line. */
const describedHeaderPattern = new RegExp(`${headerPattern.source}|${pseudoHeaderPattern.source}`);

const describedHeaderForm: TextForm = {
  ...headerForm,
  isRight: (text) => describedHeaderPattern.test(text),
};

const hostForm: TextForm = {
  id: "HG222",
  what: "a host",
  rule: ruleOf(253, "a host name or an IPv4 address, without scheme, port or wildcard"),
  isRight: (text) => isAddressOrName(text) && text.split(".").every(isHostLabel),
  meant: (text) =>
    text
      .replace(/^[a-z]+:\/\//i, "")
      .replace(/[/:].*$/, "")
      .replace(/^\*\./, "")
      .replace(/\.$/, ""),
};

function isHostLabel(label: string): boolean {
  return /^[a-z0-9_](?:[a-z0-9_-]{0,62})$/i.test(label);
}

/** A host that ends in a number must be an IPv4 address. Source: WHATWG URL, "ends in a number". */
function isAddressOrName(text: string): boolean {
  return !/(?:^|\.)\d+$/.test(text) || parseNetwork(text) !== undefined;
}

const hostPatternForm: TextForm = {
  ...hostForm,
  rule: ruleOf(253, "a host name, or all below one: *.example.com"),
  isRight: (text) => hostForm.isRight(text.replace(/^\*\./, "")),
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
  rule: ruleOf(1_024, "a path such as /healthz, or one with all below it, such as /static/*"),
  isRight: (text) => /^\/[^?#*]*(?:(?<=\/)\*)?$/.test(text) && isPlainPath(text),
  meant: (text) => `/${text}`.replace(/^\/+/, "/").replace(/\/?\*+$/, "/*"),
};

/** Path segments. Source: RFC 3986 section 3.3, without `;`, which ends a cookie's path. */
const segmentsPattern = /^\/$|^(?:\/[\w.~!$&'()+,=:@%-]+)+$/;

const plainPathForm: TextForm = {
  ...pathForm,
  rule: ruleOf(256, "a single path such as /waiting-room, without a query and `/` at its end"),
  isRight: (text) => segmentsPattern.test(text) && isPlainPath(text),
  meant: (text) =>
    `/${text}`
      .replace(/^\/+/, "/")
      .replace(/[?#*].*$/, "")
      .replace(/(?!^)\/+$/, ""),
};

const urlForm: TextForm = {
  id: "HG227",
  what: "a URL of http or https without a user",
  rule: ruleOf(2_048, "a URL such as http://lag.example:8080/now, without user and password"),
  isRight: (text) => /^https?:\/\/[a-z0-9_.-]+(?::[0-9]{1,5})?(?:[/?][!-~]*)?$/i.test(text),
  meant: (text) => text,
  isSecret: true,
};

/** Syntax that RE2 lacks and JavaScript has: lookaround and backreferences. */
const foreignRegex = /\(\?(?:[=!]|<[=!])|\\[1-9]|\\k</;

const regexForm: TextForm = {
  id: "HG245",
  what: "a regular expression of RE2",
  rule: ruleOf(1_024, "a regular expression of RE2, which has no lookaround and no backreference"),
  isRight: (text) => !foreignRegex.test(text) && isRegex(text),
  meant: (text) => text,
};

function isRegex(text: string): boolean {
  try {
    // RE2 has its own syntax for named groups, and allows flags at the start.
    new RegExp(text.replaceAll("(?P<", "(?<").replace(/^\(\?[imsU]+\)/, ""));
    return true;
  } catch {
    return false;
  }
}

/** Source: Kubernetes, "Labels and selectors", syntax. */
const labelName = "[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?";

const labelKeyForm: TextForm = {
  id: "HG246",
  what: "a label's key",
  rule: ruleOf(317, "a label's key as Kubernetes has it: app, or example.com/app"),
  isRight: (text) => new RegExp(`^(?:[a-z0-9.-]{1,253}/)?${labelName}$`).test(text),
  meant: (text) => text,
};

const labelValueForm: TextForm = {
  id: "HG246",
  what: "a label's value",
  rule: ruleOf(63, "a label's value as Kubernetes has it, at most 63 characters"),
  isRight: (text) => new RegExp(`^${labelName}$`).test(text),
  meant: (text) => text,
};

const fileForm: TextForm = {
  id: "HG247",
  what: "an absolute path of a file",
  rule: ruleOf(1_024, "the absolute path of a file as the proxy sees it"),
  isRight: (text) => text.startsWith("/") && !text.endsWith("/"),
  meant: (text) => `/${text}`,
};

function fieldOf(form: TextForm, pattern?: RegExp): FieldType<string> {
  return readBy(text(form.rule, pattern), (reader, field) => readForm(reader, field, form));
}

function lowerCase(type: FieldType<string>): FieldType<string> {
  return readBy(type, (reader, field) => type.read(reader, field)?.toLowerCase());
}

/** A regular expression that Envoy's engine accepts, as far as this can be checked here. */
export const regex = fieldOf(regexForm);

/** Path of a file as the proxy sees it. */
export const file = fieldOf(fileForm, /^\/.*[^/]$/);

/** The name of a service or namespace: a DNS label. */
export const label = fieldOf(labelForm, labelPattern);

/** The name of a secret: a DNS subdomain. */
export const secretName = fieldOf(secretForm, secretPattern);

/** The name of a quota, also a DNS label. */
export const quotaName = fieldOf(quotaNameForm, labelPattern);

/** The name of a budget, also a DNS label. */
export const budgetName = fieldOf(budgetNameForm, labelPattern);

/** The name of a waiting room or of one of its events, also a DNS label. */
export const roomName = fieldOf(roomNameForm, labelPattern);

/** A header's name, in lower case. */
export const headerName = fieldOf(headerForm, headerPattern);

/** The name of a header that a descriptor is made of, including `:path` and similar ones. */
export const describedHeader = fieldOf(describedHeaderForm, describedHeaderPattern);

/** A host as requests name it, in lower case. */
export const host = lowerCase(fieldOf(hostForm));

/** A host, or all hosts below one (`*.example.com`), in lower case. */
export const hostPattern = lowerCase(fieldOf(hostPatternForm));

/** A host name or IP address to connect to. */
export const address = fieldOf(addressForm);

/** An address or network. */
export const network = fieldOf(networkForm);

/** A path, or a path and everything below it. */
export const path = fieldOf(pathForm, /^\//);

/** A single path. */
export const plainPath = fieldOf(plainPathForm, segmentsPattern);

/** Pattern of a cookie's name, which is a token like a header's. Source: RFC 6265. */
const cookiePattern = /^[\w!#$%&'*+.^`|~-]+$/;

/** The name of a cookie. */
export const cookieName = ruledText(
  {
    charsMax: 128,
    forbidden: /[^\w!#$%&'*+.^`|~-]/,
    expected: "a cookie's name, such as session",
  },
  cookiePattern,
);

/** A URL without credentials. */
export const url = fieldOf(urlForm, /^https?:\/\//i);

/** Maximum number of labels that select pods. */
export const podLabelsMax = 16;

const podLabelsForm: Form = {
  kind: "texts",
  key: /^[A-Za-z0-9.][A-Za-z0-9_./-]*$/,
  value: text({ charsMax: 63 }, /^[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?$/),
  max: podLabelsMax,
};

/** Labels of pods, 1 to `podLabelsMax`. @param expected what belongs there, for messages */
export function podLabels(expected: string): FieldType<Readonly<Record<string, string>>> {
  return readBy(podLabelsForm, (reader, field) => {
    const labels = reader.readTextMap(field, { title: "labels", expected });
    if (labels === undefined) return undefined;
    if (labels.length === 0 || labels.length > podLabelsMax) {
      const message = `"labels" of ${labels.length} labels`;
      const bound = `1 to ${podLabelsMax} labels`;
      return reader.report(field.key, { id: "HG160", message, expected: bound });
    }
    const pairs = labels.map((label) => {
      const key = readForm(reader, { ...label, value: label.key }, labelKeyForm);
      return [key, readForm(reader, label, labelValueForm)] as const;
    });
    return Object.fromEntries(pairs.map(([key = "", value = ""]) => [key, value]));
  });
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
