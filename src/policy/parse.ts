import { isAlias, isMap, isScalar, type ParsedNode } from "yaml";
import { defaultDefaults, type LimitDefaults, type Rule } from "../core/limits/limit.js";
import { domainTop, readDescriptors } from "./limits/descriptors.js";
import { LimitNames } from "./limits/limit-names.js";
import { readOverrideMax } from "./limits/rate-limit.js";
import { readDisclosure } from "./limits/rule-disclosure.js";
import { RuleList } from "./limits/rule-list.js";
import { readFailureMode } from "./limits/rule-settings.js";
import { Siblings } from "./limits/siblings.js";
import { PolicyPlaces } from "./policy-places.js";
import { quoteText, visibleText } from "./problems/problem.js";
import { type FoundProblems, ProblemLog } from "./problems/problem-log.js";
import { SourceText } from "./problems/source-text.js";
import { ProxiesOnce } from "./proxies/proxies.js";
import type { ProxyPolicy } from "./proxies/proxy-policy.js";
import { QuotaList } from "./quotas/quota-list.js";
import type { QuotaPolicy } from "./quotas/quota-policy.js";
import { readQuotas } from "./quotas/quotas.js";
import { ServiceList } from "./services/service-list.js";
import type { ServicePolicy } from "./services/service-policy.js";
import { readServices } from "./services/services.js";
import { type AliasTargets, findAliasTargets } from "./text/aliases.js";
import { findNearestName } from "./text/nearest-name.js";
import { type Field, type Fields, NodeReader } from "./text/node-reader.js";
import {
  type Dialect,
  domainShapes,
  metadataShape,
  policyApiVersion,
  policyShape,
  specShape,
} from "./text/shapes.js";
import { domainRule, nameRule } from "./text/text-rules.js";
import { readYaml } from "./text/yaml-text.js";

/** Longest text of one file, in UTF-16 units. */
export const fileCharsMax = 4_194_304;

/** Longest text of all files together, in UTF-16 units. */
export const policyCharsMax = 16_777_216;

/** One file's text, and what to call it in problems. */
export interface PolicyText {
  readonly file: string;
  readonly text: string;
}

/** A policy's texts, understood or not: plain data but for its `places`. */
export type ParsedPolicy =
  | {
      readonly kind: "policy";
      /** `metadata.name` of the first file that has one; undefined where none is a policy file. */
      readonly name: string | undefined;
      /** Every domain, also one without descriptors; in the order of the files. */
      readonly domains: readonly string[];
      /** Parents first, siblings in file order; `index` counts them. */
      readonly rules: readonly Rule[];
      /** In the order of the files. */
      readonly services: readonly ServicePolicy[];
      /** In the order of the files. */
      readonly quotas: readonly QuotaPolicy[];
      /** What `proxies` says; what is usual where it is left out. */
      readonly proxies: ProxyPolicy;
      /** What is right by the letter, and hardly meant. */
      readonly warnings: FoundProblems;
      /** Where in the files something is said. It stays in the thread that has parsed. */
      readonly places: PolicyPlaces;
    }
  /** At least one. */
  | ({ readonly kind: "problems" } & FoundProblems);

/** How the files of a policy are read. */
export interface ParseOptions {
  /**
   * Whether several files may add descriptors to one domain; default false: a domain that is
   * defined twice is wrong. Source: MERGE_DOMAIN_CONFIG of envoyproxy/ratelimit.
   */
  readonly mergesDomains?: boolean;
  /** The only dialect that is taken; default both. */
  readonly onlyDialect?: Dialect;
  /** What holds where neither a limit nor its domain says it. Default `defaultDefaults`. */
  readonly defaults?: LimitDefaults;
}

/** Reads the files of one policy, each in either dialect: all mistakes of all, or the rules. */
export function parsePolicy(
  sources: readonly PolicyText[],
  options: ParseOptions = {},
): ParsedPolicy {
  const log = new ProblemLog();
  const names = new LimitNames();
  const rules = new RuleList();
  const services = new ServiceList();
  const proxies = new ProxiesOnce();
  const quotas = new QuotaList(names);
  const policyNames: string[] = [];
  const places = new PolicyPlaces();
  const own = { proxies, quotas, policyNames, places };
  const reading: Reading = { log, names, rules, services, domains: new Map(), options, ...own };
  let charCount = 0;
  sources.forEach((given, order) => {
    charCount += given.text.length;
    const isTooLong = given.text.length > fileCharsMax || charCount > policyCharsMax;
    const source = new SourceText(isTooLong ? { ...given, text: "" } : given, order);
    if (isTooLong) reportSize(source, log);
    else readSource(source, reading);
  });
  names.reportMissing();
  const domains = [...reading.domains.keys()];
  quotas.addRules(rules);
  services.reportUnmet(domains, rules.rules);
  const finished = services.finish(proxies.policy);
  const divided = quotas.finish({
    domains,
    rules: rules.rules,
    services: services.names,
    proxies: proxies.policy,
  });
  if (log.count > 0) return { kind: "problems", ...log.found() };
  return {
    kind: "policy",
    name: policyNames[0],
    domains,
    rules: rules.rules,
    services: finished,
    quotas: divided,
    proxies: proxies.policy,
    warnings: log.warnings.found(),
    places,
  };
}

/** What the files of a policy have in common while they are read. */
interface Reading {
  readonly log: ProblemLog;
  readonly names: LimitNames;
  readonly rules: RuleList;
  readonly services: ServiceList;
  readonly domains: Map<string, KnownDomain>;
  readonly quotas: QuotaList;
  readonly proxies: ProxiesOnce;
  readonly policyNames: string[];
  readonly places: PolicyPlaces;
  readonly options: ParseOptions;
}

/** A domain that was defined, where first, and its outermost descriptors. */
interface KnownDomain {
  readonly place: string;
  readonly siblings: Siblings;
}

function reportSize(source: SourceText, log: ProblemLog): void {
  log.report(source, firstCharacter, {
    id: "HG107",
    message: "the text is too long to be read",
    expected: `at most ${fileCharsMax} characters a file, ${policyCharsMax} together`,
  });
}

const firstCharacter = { start: 0, end: 1 };

const expectedTop = "`domain:`, or `apiVersion:` and `kind: Policy`";

function readSource(source: SourceText, reading: Reading): void {
  const yaml = readYaml(source, reading.log);
  if (yaml.kind === "unreadable") return;
  if (yaml.kind === "empty" || (isScalar(yaml.node) && yaml.node.value === null)) {
    const message = "the file holds no policy";
    reading.log.report(source, firstCharacter, { id: "HG110", message, expected: expectedTop });
    return;
  }
  const targets = yaml.hasAliases ? findAliasTargets(yaml.node, source, reading.log) : noTargets;
  if (targets === undefined) return;
  const reader = new NodeReader(source, reading.log, targets);
  const dialect = findDialect(yaml.node, reader);
  const { onlyDialect } = reading.options;
  if (dialect !== undefined && onlyDialect !== undefined && dialect !== onlyDialect) {
    const wanted = onlyDialect === "ratelimit" ? "a file of envoyproxy/ratelimit" : "a policy";
    reader.report(yaml.node, { id: "HG111", message: `this is not ${wanted}` });
    return;
  }
  if (dialect === "headgate") readPolicyFile(reader, yaml.node, reading);
  else if (dialect === "ratelimit") readDomain(reader, yaml.node, { ...reading, dialect });
}

const noTargets: AliasTargets = new Map();

/** Which dialect a file is in, by the names at its top; undefined, and reported, for neither. */
function findDialect(root: ParsedNode, reader: NodeReader): Dialect | undefined {
  const names = isMap(root) ? root.items.map(({ key }) => (isScalar(key) ? key.value : "")) : [];
  if (names.some((name) => name === "apiVersion" || name === "kind" || name === "spec")) {
    return "headgate";
  }
  if (names.some((name) => name === "domain" || name === "descriptors")) return "ratelimit";
  const first = names.find((name) => typeof name === "string");
  const known = [...domainShapes.ratelimit.names, ...policyShape.names];
  return reader.report(root, {
    id: "HG111",
    message: "this is neither a ratelimit file nor a policy",
    expected: expectedTop,
    suggestion: typeof first === "string" ? findNearestName(first, known) : undefined,
  });
}

function readPolicyFile(reader: NodeReader, root: ParsedNode, reading: Reading): void {
  const fields = reader.readMap(root, policyShape);
  if (fields === undefined) return;
  readHeader(reader, fields, { name: "apiVersion", value: policyApiVersion });
  readHeader(reader, fields, { name: "kind", value: "Policy" });
  readMetadata(reader, fields, reading.policyNames);
  const specExpected = "a map with rateLimits, services, quotas, proxies or several of them";
  const specField = reader.requiredField(fields, "spec", specExpected);
  const specNode = specField && reader.required(specField, specExpected);
  const spec = specNode && reader.readMap(specNode, specShape);
  if (spec === undefined) return;
  reading.places.addSpec(reader, spec);
  const proxies = spec.byName.get("proxies");
  if (proxies !== undefined) reading.proxies.read(reader, proxies);
  const services = spec.byName.get("services");
  if (services !== undefined) readServices(reader, services, reading.services);
  const quotas = spec.byName.get("quotas");
  if (quotas !== undefined) {
    const { compiler } = reading.services;
    readQuotas(reader, quotas, { list: reading.quotas, compiler });
  }
  const expected = "a list of domains and their descriptors";
  const isWhole = ["services", "quotas", "proxies"].some((name) => {
    return spec.byName.has(name) || spec.misspelt.has(name);
  });
  const listField = isWhole
    ? spec.byName.get("rateLimits")
    : reader.requiredField(spec, "rateLimits", expected);
  const items = listField && reader.readList(listField, expected);
  for (const item of items ?? []) readDomain(reader, item, { ...reading, dialect: "headgate" });
}

/** A name whose value is fixed: it says what kind of file this is. */
function readHeader(
  reader: NodeReader,
  fields: Fields,
  { name, value }: { readonly name: string; readonly value: string },
): void {
  const field = reader.requiredField(fields, name, value);
  if (field === undefined) return;
  reader.readChoice(field, [value], { id: "HG111", what: `the ${name} of a policy` });
}

function readMetadata(reader: NodeReader, fields: Fields, names: string[]): void {
  const field = reader.requiredField(fields, "metadata", "{name: ...}");
  const node = field && reader.required(field, "{name: ...}");
  const metadata = node && reader.readMap(node, metadataShape);
  const nameField = metadata && reader.requiredField(metadata, "name", "the policy's name");
  const name = nameField && reader.readText(nameField, nameRule);
  if (name !== undefined) names.push(name);
  const markerField = metadata?.byName.get("endMarker");
  if (markerField !== undefined) requireEndMarker(reader, markerField);
}

/** Half a file may be right in all that it says, and lack limits: so it says that it has an end. */
function requireEndMarker(reader: NodeReader, field: Field): void {
  if (reader.readFlag(field, "headgate") !== true) return;
  if (/\n\.\.\.\s*$/.test(reader.source.text)) return;
  const message = "the file has no end marker, so a part of it may be missing";
  reader.report(field.key, { id: "HG114", message, expected: "... as its last line" });
}

/** A domain and its descriptors: a whole ratelimit file, or one item of a policy's `rateLimits`. */
function readDomain(
  reader: NodeReader,
  node: ParsedNode,
  reading: Reading & { readonly dialect: Dialect },
): void {
  const countBefore = reading.log.count;
  const domain = readDescribed(reader, node, reading);
  if (reading.log.count === countBefore) return;
  reading.services.doubt(domain);
  reading.quotas.doubt(domain);
}

/** Answers the domain's name, as far as it is right. */
function readDescribed(
  reader: NodeReader,
  node: ParsedNode,
  reading: Reading & { readonly dialect: Dialect },
): string | undefined {
  const { dialect, rules, names } = reading;
  const fields = reader.readMap(node, domainShapes[dialect]);
  if (fields === undefined) return undefined;
  const domainField = reader.requiredField(fields, "domain", domainRule.expected);
  const domain = domainField && reader.readText(domainField, domainRule);
  const failureField = fields.byName.get("on_store_failure");
  const usual = reading.options.defaults ?? defaultDefaults;
  const onStoreFailure =
    (failureField && readFailureMode(reader, failureField)) ?? usual.onStoreFailure;
  const overrideMax = readOverrideMax(reader, fields);
  const most = overrideMax === undefined ? {} : { overrideMax };
  const disclosure = readDisclosure(reader, fields, usual.disclosure);
  const told = disclosure === undefined ? {} : { disclosure };
  const defaults = { ...usual, onStoreFailure, ...most, ...told };
  let siblings = new Siblings();
  if (domainField !== undefined && domain !== undefined) {
    // Of an aliased item the second use is wrong, not its text.
    const place = isAlias(node) ? node : (domainField.value ?? domainField.key);
    siblings = addDomain(reader, place, { ...reading, domain });
    reading.quotas.defineDomain(domain, defaults);
  }
  const list = fields.byName.get("descriptors");
  if (list === undefined) return domain;
  const place = { reader, dialect, rules, names, defaults, siblings, above: domainTop };
  readDescriptors(list, { ...place, domain: domain ?? "" });
  return domain;
}

/** Makes a domain known; answers what stands in it, also where it is refused to say so twice. */
function addDomain(
  reader: NodeReader,
  node: ParsedNode,
  { domain, domains, options }: Reading & { readonly domain: string },
): Siblings {
  const known = domains.get(domain);
  if (known !== undefined && options.mergesDomains === true) return known.siblings;
  const siblings = new Siblings();
  if (known !== undefined) {
    const message = `the domain ${quoteText(domain)} is defined already in ${known.place}`;
    reader.report(node, { id: "HG150", message });
    return siblings;
  }
  const { line } = reader.source.position(node.range[0]);
  domains.set(domain, { place: `${visibleText(reader.source.file)}:${line}`, siblings });
  return siblings;
}
