import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { fromBinary } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  type EnumDescriptorProto,
  type FieldDescriptorProto,
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  type FileDescriptorProto,
  FileDescriptorSetSchema,
  type MethodDescriptorProto,
  type ServiceDescriptorProto,
} from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { snakeCase } from "../../../src/core/base/text.js";
import { adminFailureRows } from "../../../src/rpc/admin/failures.js";
import { adminMethods } from "../../../src/rpc/admin/methods.js";
import { code, paragraphs, plain, type ReferencePage, table } from "./markdown.js";

const intro = `\
The admin API is served at \`HEADGATE_ADMIN_ADDR\`, \`127.0.0.1:8082\` by default, as Connect, gRPC
and gRPC-Web over HTTP/1.1 and HTTP/2. It is defined in \`proto/headgate/admin/v1/admin.proto\`.
Methods that read require the role \`reader\`, and methods that change something the role
\`operator\`, which includes reading. Both roles may be restricted to domains. In JSON, names are in
lowerCamelCase, 64-bit numbers are strings, and durations look like \`"1.5s"\`; unknown fields are
rejected.`;

/** Field numbers of descriptors; places of comments are made of them. Source: descriptor.proto. */
const places = { message: 4, enum: 5, service: 6, member: 2, oneof: 8 } as const;

/** A definition with its comments. */
interface CommentedFile {
  readonly file: FileDescriptorProto;
  /** What stands before a definition, by its place. */
  readonly comment: (...place: readonly number[]) => string;
}

function readDefinition(): CommentedFile {
  const proto = fileURLToPath(new URL("../../../proto", import.meta.url));
  const bytes = execFileSync("npx", ["buf", "build", proto, "--as-file-descriptor-set", "-o", "-"]);
  const { file: files } = fromBinary(FileDescriptorSetSchema, bytes);
  const file = files.find(({ package: name }) => name === "headgate.admin.v1");
  if (file === undefined) throw new Error("the admin API is not there");
  const comments = new Map(
    (file.sourceCodeInfo?.location ?? []).map(({ path, leadingComments }) => [
      path.join("."),
      leadingComments.trim().replaceAll(/\s+/g, " "),
    ]),
  );
  return { file, comment: (...place) => comments.get(place.join(".")) ?? "" };
}

const scalars: Readonly<Partial<Record<FieldDescriptorProto_Type, string>>> = {
  [FieldDescriptorProto_Type.DOUBLE]: "double",
  [FieldDescriptorProto_Type.UINT64]: "uint64",
  [FieldDescriptorProto_Type.INT32]: "int32",
  [FieldDescriptorProto_Type.UINT32]: "uint32",
  [FieldDescriptorProto_Type.BOOL]: "bool",
  [FieldDescriptorProto_Type.STRING]: "string",
};

/** Where messages and enums are described: by their names, the page's file. */
type Pages = ReadonlyMap<string, string>;

/** `.headgate.admin.v1.Limit` as a link, `.google.protobuf.Duration` by its own name. */
function typeName(name: string, pages: Pages): string {
  const short = shortName(name);
  const page = name.startsWith(".headgate.") ? pages.get(short) : undefined;
  return page === undefined ? short : `[${short}](${page}#${short.toLowerCase()})`;
}

function shortName(name: string): string {
  return name.slice(name.lastIndexOf(".") + 1);
}

function typeOf(field: FieldDescriptorProto, message: DescriptorProto, pages: Pages): string {
  const entry = message.nestedType.find(({ name }) => field.typeName.endsWith(`.${name}`));
  if (entry?.options?.mapEntry === true) return "map of string to string";
  const one = scalars[field.type] ?? typeName(field.typeName, pages);
  return field.label === FieldDescriptorProto_Label.REPEATED ? `list of ${one}` : one;
}

/** The oneof that a field is of; a field that is only optional is of none. */
function oneofOf(field: FieldDescriptorProto, message: DescriptorProto): string | undefined {
  const isOne = field.oneofIndex !== undefined && Object.hasOwn(field, "oneofIndex");
  return isOne && !field.proto3Optional ? message.oneofDecl[field.oneofIndex]?.name : undefined;
}

function messagePart(name: string, { file, comment }: CommentedFile, pages: Pages): string {
  const one = file.enumType.find((each) => each.name === name);
  if (one !== undefined) return paragraphs(`### ${name}`, enumText(one));
  const index = file.messageType.findIndex((each) => each.name === name);
  const message = file.messageType[index];
  if (message === undefined) throw new Error(`there is no ${name}`);
  const rows = message.field.map((field, i) => {
    const oneof = oneofOf(field, message);
    const choice = oneof === undefined ? "" : `One of \`${oneof}\`. `;
    const text = comment(places.message, index, places.member, i);
    return [code(field.name), typeOf(field, message, pages), `${choice}${text}`.trim()];
  });
  return paragraphs(
    `### ${name}`,
    plain(comment(places.message, index)),
    rows.length === 0 ? "It has no fields." : table(["field", "type", "meaning"], rows),
  );
}

function enumText(one: EnumDescriptorProto): string {
  return `One of ${one.value.map(({ name }) => code(name)).join(", ")}.`;
}

function methodPart(method: MethodDescriptorProto, parts: MethodParts): string {
  const known = adminMethods.get(parts.path);
  if (known === undefined) throw new Error(`nobody serves ${parts.path}`);
  const answer = typeName(method.outputType, parts.pages);
  const answers = method.serverStreaming ? `a stream of ${answer}` : answer;
  const shows = known.showsCallers
    ? " Its responses contain data sent by callers, so each call is logged."
    : "";
  const takes = typeName(method.inputType, parts.pages);
  return paragraphs(
    `### ${method.name}`,
    plain(parts.text),
    `Request: ${takes}. Response: ${answers}. Required role: \`${known.role}\`.${shows}`,
  );
}

interface MethodParts {
  readonly path: string;
  /** Its comment. */
  readonly text: string;
  readonly pages: Pages;
}

/** The messages and enums that a service's methods reach, in the order of the file. */
function reachedBy(service: ServiceDescriptorProto, file: FileDescriptorProto): readonly string[] {
  const reached = new Set<string>();
  const visit = (type: string): void => {
    const name = shortName(type);
    if (reached.has(name) || !type.startsWith(`.${file.package}.`)) return;
    reached.add(name);
    const message = file.messageType.find((each) => each.name === name);
    for (const { typeName: below } of message?.field ?? []) visit(below);
  };
  for (const { inputType, outputType } of service.method) {
    visit(inputType);
    visit(outputType);
  }
  const all = [...file.messageType, ...file.enumType].map(({ name }) => name);
  return all.filter((name) => reached.has(name));
}

const sharedPage = "messages.md";

function pageOf(service: ServiceDescriptorProto): string {
  return `${snakeCase(service.name).replaceAll("_", "-").replace(/^-/, "")}.md`;
}

/** Each message on its service's page, or on the one of those that several services use. */
function placeMessages(file: FileDescriptorProto): Pages {
  const pages = new Map<string, string>();
  for (const service of file.service) {
    for (const name of reachedBy(service, file)) {
      pages.set(name, pages.has(name) ? sharedPage : pageOf(service));
    }
  }
  // Beside what they are of.
  for (const [name, subject] of [
    ["UsageExplanation", "Budget"],
    ["BudgetExplanation", "Budget"],
    ["QuotaExplanation", "Quota"],
  ] as const) {
    const page = pages.get(subject);
    if (page !== undefined) pages.set(name, page);
  }
  return pages;
}

function servicePage(index: number, definition: CommentedFile, pages: Pages): ReferencePage {
  const { file, comment } = definition;
  const service = file.service[index];
  if (service === undefined) throw new Error(`there is no service ${index}`);
  const methods = service.method.map((method, i) =>
    methodPart(method, {
      path: `/${file.package}.${service.name}/${method.name}`,
      text: comment(places.service, index, places.member, i),
      pages,
    }),
  );
  const own = [...pages].filter(([, page]) => page === pageOf(service));
  return {
    path: `admin-api/${pageOf(service)}`,
    title: service.name,
    purpose: plain(comment(places.service, index)),
    body: paragraphs(
      "## Methods",
      ...methods,
      "## Messages",
      ...own.map(([name]) => messagePart(name, definition, pages)),
    ),
  };
}

/** The methods, messages and failures of the admin API. */
export function adminApiPages(): readonly ReferencePage[] {
  const definition = readDefinition();
  const { file, comment } = definition;
  const pages = placeMessages(file);
  const shared = [...pages].filter(([, page]) => page === sharedPage);
  const methods = file.service.flatMap((service, i) =>
    service.method.map(({ name }, j) => {
      const page = pageOf(service);
      const { role = "" } = adminMethods.get(`/${file.package}.${service.name}/${name}`) ?? {};
      return [
        `[${service.name}/${name}](admin-api/${page}#${name.toLowerCase()})`,
        role,
        comment(places.service, i, places.member, j),
      ];
    }),
  );
  const failures = Object.values(adminFailureRows).map((row) => [
    code(snakeCase(Code[row.code] ?? "").replace(/^_/, "")),
    row.meaning,
  ]);
  const index = {
    path: "admin-api.md",
    title: "Admin API",
    purpose:
      "This page lists the methods of the admin API, with their roles, requests and responses.",
    body: paragraphs(
      intro,
      "[Access to the admin API](../guides/admin-access.md) explains roles and shows a call.",
      table(["method", "role", "description"], methods),
      "## Failures",
      table(["code", "meaning"], failures),
    ),
  };
  const messages = {
    path: `admin-api/${sharedPage}`,
    title: "Messages of several services",
    purpose: "This page lists the messages of the admin API that several services use.",
    body: paragraphs(...shared.map(([name]) => messagePart(name, definition, pages))),
  };
  const services = file.service.map((_, i) => servicePage(i, definition, pages));
  return [index, ...services, messages];
}
