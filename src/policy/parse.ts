import { isAlias, isMap, isScalar, type ParsedNode } from "yaml";
import type { PriceTable } from "../core/budgets/price.js";
import { defaultDefaults, type LimitDefaults, type Rule } from "../core/limits/limit.js";
import { BudgetList } from "./budgets/budget-list.js";
import type { BudgetPolicy } from "./budgets/budget-policy.js";
import { readBudgets, readPrices } from "./budgets/budgets.js";
import { domainAncestors, readDescriptors } from "./limits/descriptors.js";
import { domainForms } from "./limits/domain.js";
import { LimitNames } from "./limits/limit-names.js";
import { RuleList } from "./limits/rule-list.js";
import { readDisclosure } from "./limits/rule-settings.js";
import { Siblings } from "./limits/siblings.js";
import { policyForm, spec } from "./policy-form.js";
import { PolicyPlaces } from "./policy-places.js";
import { fileCharsMax, policyCharsMax } from "./policy-size.js";
import { quoteText } from "./problems/problem.js";
import { type FoundProblems, type ParseProblems, ProblemLog } from "./problems/problem-log.js";
import { SourceText } from "./problems/source-text.js";
import { ProxiesReader, type ProxyPolicy } from "./proxies/proxies.js";
import { QuotaList } from "./quotas/quota-list.js";
import type { QuotaPolicy } from "./quotas/quota-policy.js";
import { readQuotas } from "./quotas/quotas.js";
import { clusterNames } from "./services/service-clusters.js";
import { ServiceList } from "./services/service-list.js";
import type { ServicePolicy } from "./services/service-policy.js";
import { readServices } from "./services/services.js";
import { type AliasTargets, findAliasTargets } from "./text/aliases.js";
import { Block } from "./text/block.js";
import { placeText } from "./text/defined-names.js";
import { findNearestName } from "./text/nearest-name.js";
import { NodeReader } from "./text/node-reader.js";
import { readField } from "./text/object.js";
import type { Dialect } from "./text/shapes.js";
import { readYaml } from "./text/yaml-text.js";
import { isPageFile } from "./waiting-rooms/page-file.js";
import { PageTemplates } from "./waiting-rooms/page-templates.js";
import { RoomList } from "./waiting-rooms/room-list.js";
import type { RoomPolicy } from "./waiting-rooms/room-policy.js";
import { readRooms } from "./waiting-rooms/rooms.js";

/**
 * One file's text, and its name in problems. A file whose name ends in `.html` is the template of a
 * waiting room's page.
 */
export interface PolicyText {
  readonly file: string;
  readonly text: string;
}

/** Result of parsing a policy's texts: plain data except for its `places`. */
export type ParsedPolicy =
  | {
      readonly kind: "policy";
      /** `metadata.name` of the first file that has one; undefined if none is a policy file. */
      readonly name: string | undefined;
      /** Every domain, including those without descriptors, in the order of the files. */
      readonly domains: readonly string[];
      /** Parents first, siblings in file order; `index` counts them. */
      readonly rules: readonly Rule[];
      /** In the order of the files. */
      readonly services: readonly ServicePolicy[];
      /** In the order of the files. */
      readonly quotas: readonly QuotaPolicy[];
      /** In the order of the files. */
      readonly waitingRooms: readonly RoomPolicy[];
      /** In the order of the files. */
      readonly budgets: readonly BudgetPolicy[];
      /** Undefined: no budget is in money. */
      readonly prices: PriceTable | undefined;
      /** The settings of `proxies`; the defaults if it is left out. */
      readonly proxies: ProxyPolicy;
      /** Valid texts that are probably mistakes. */
      readonly warnings: FoundProblems;
      /** Places of settings in the files. It stays in the thread that parsed the policy. */
      readonly places: PolicyPlaces;
    }
  | ParseProblems;

/** Options for reading the files of a policy. */
export interface ParseOptions {
  /**
   * Whether several files may add descriptors to one domain. Default false: a domain that is
   * defined twice is an error. Source: MERGE_DOMAIN_CONFIG of envoyproxy/ratelimit.
   */
  readonly mergesDomains?: boolean;
  /** The only dialect that is accepted. Default both. */
  readonly onlyDialect?: Dialect;
  /** Defaults if neither a limit nor its domain sets them. Default `defaultDefaults`. */
  readonly defaults?: LimitDefaults;
  /** Number of regions of the deployment that enforces the policy; 1: none. Absent: unknown. */
  readonly regionCount?: number;
}

/** Reads the files of one policy, each in either dialect: returns the rules, or all problems. */
export function parsePolicy(
  sources: readonly PolicyText[],
  options: ParseOptions = {},
): ParsedPolicy {
  const log = new ProblemLog();
  const names = new LimitNames();
  const rules = new RuleList();
  const services = new ServiceList();
  const proxies = new ProxiesReader();
  const quotas = new QuotaList(names);
  const rooms = new RoomList();
  const budgetList = new BudgetList();
  const templates = new PageTemplates(log);
  const policyNames: string[] = [];
  const places = new PolicyPlaces();
  const own = { proxies, quotas, rooms, budgetList, policyNames, places };
  const reading: Reading = { log, names, rules, services, domains: new Map(), options, ...own };
  const isTemplate = ({ file }: PolicyText): boolean =>
    options.onlyDialect !== "ratelimit" && isPageFile(file);
  let charCount = 0;
  sources.forEach((given, order) => {
    charCount += given.text.length;
    const isTooLong = given.text.length > fileCharsMax || charCount > policyCharsMax;
    const source = new SourceText(isTooLong ? { ...given, text: "" } : given, order);
    if (isTooLong) reportSize(source, log);
    if (isTemplate(given)) templates.add(source, isTooLong);
    else if (!isTooLong) readSource(source, reading);
    if (order === 0 && sources.every(isTemplate)) reportNothing(source, log);
  });
  names.reportMissing();
  const domains = [...reading.domains.keys()];
  quotas.addRules(rules);
  for (const claim of proxies.claims) services.claim(claim);
  services.reportUnmet(domains, rules.rules);
  names.warnOfIdleOver(services.extProcDomains);
  const finished = services.finish(proxies.policy);
  const divided = quotas.finish({
    domains,
    rules: rules.rules,
    services: services.named.names,
    proxies: proxies.policy,
  });
  // If there are problems, it is unknown what a room can rely on in its service.
  const right = log.count === 0 ? finished : [];
  const waitingRooms = rooms.finish({ names: services.named.names, services: right, templates });
  templates.warnOfUnused();
  const clusters = new Set(finished.flatMap(clusterNames));
  names.warnOfStrangers(clusters);
  const { budgets, prices } = budgetList.finish({
    names: services.named.names,
    services: log.count === 0 ? finished : undefined,
    measured: services.measured,
    knowsCluster: (cluster) => clusters.has(cluster),
  });
  if (log.count > 0) return { kind: "problems", ...log.found() };
  return {
    kind: "policy",
    name: policyNames[0],
    domains,
    rules: rules.rules,
    services: finished,
    quotas: divided,
    waitingRooms,
    budgets,
    prices,
    proxies: proxies.policy,
    warnings: log.warnings.found(),
    places,
  };
}

/** State that the files of a policy share while they are read. */
interface Reading {
  readonly log: ProblemLog;
  readonly names: LimitNames;
  readonly rules: RuleList;
  readonly services: ServiceList;
  readonly domains: Map<string, KnownDomain>;
  readonly quotas: QuotaList;
  readonly rooms: RoomList;
  readonly budgetList: BudgetList;
  readonly proxies: ProxiesReader;
  readonly policyNames: string[];
  readonly places: PolicyPlaces;
  readonly options: ParseOptions;
}

/** A defined domain: its first place, and its outermost descriptors. */
interface KnownDomain {
  readonly place: string;
  readonly siblings: Siblings;
}

function reportSize(source: SourceText, log: ProblemLog): void {
  log.report(source, firstCharacter, {
    id: "HG107",
    message: "the text is too long",
    expected: `at most ${fileCharsMax} characters in a file, ${policyCharsMax} in all files`,
  });
}

function reportNothing(source: SourceText, log: ProblemLog): void {
  const message = "the file contains no policy";
  log.report(source, firstCharacter, { id: "HG110", message, expected: expectedTop });
}

const firstCharacter = { start: 0, end: 1 };

const expectedTop = "`domain:`, or `apiVersion:` and `kind: Policy`";

function readSource(source: SourceText, reading: Reading): void {
  const yaml = readYaml(source, reading.log);
  if (yaml.kind === "unreadable") return;
  if (yaml.kind === "empty" || (isScalar(yaml.node) && yaml.node.value === null)) {
    reportNothing(source, reading.log);
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

/** Returns the dialect of a file, by its top names; undefined, and reported, if it is neither. */
function findDialect(root: ParsedNode, reader: NodeReader): Dialect | undefined {
  const names = isMap(root) ? root.items.map(({ key }) => (isScalar(key) ? key.value : "")) : [];
  if (names.some((name) => name === "apiVersion" || name === "kind" || name === "spec")) {
    return "headgate";
  }
  if (names.some((name) => name === "domain" || name === "descriptors")) return "ratelimit";
  const first = names.find((name) => typeof name === "string");
  const known = [...domainForms.ratelimit.shape.names, ...policyForm.shape.names];
  return reader.report(root, {
    id: "HG111",
    message: "this is neither a ratelimit file nor a Headgate policy",
    expected: expectedTop,
    suggestion: typeof first === "string" ? findNearestName(first, known) : undefined,
  });
}

function readPolicyFile(reader: NodeReader, root: ParsedNode, reading: Reading): void {
  const block = Block.at(reader, root, policyForm.shape);
  const { metadata, spec: own } = (block && policyForm.read(block)) ?? {};
  if (metadata?.name !== undefined) reading.policyNames.push(metadata.name);
  if (own === undefined) return;
  reading.places.addSpec(reader, own.fields);
  const { proxies, services, quotas, waitingRooms, budgets, prices, rateLimits } = spec.read(own);
  if (proxies !== undefined) reading.proxies.read(reader, proxies);
  if (services !== undefined) readServices(reader, services, reading.services);
  if (quotas !== undefined) readQuotas(reader, quotas, reading.quotas);
  if (waitingRooms !== undefined) readRooms(reader, waitingRooms, reading.rooms);
  if (prices !== undefined) readPrices(reader, prices, reading.budgetList);
  if (budgets !== undefined) readBudgets(reader, budgets, reading.budgetList);
  const expected = "a list of domains and their descriptors";
  const { byName, misspelt } = own.fields;
  const isWhole = spec.shape.names.some((name) => {
    return name !== "rateLimits" && (byName.has(name) || misspelt.has(name));
  });
  if (!isWhole) own.declared("rateLimits", expected);
  const items = rateLimits && reader.readList(rateLimits, expected);
  for (const item of items ?? []) readDomain(reader, item, { ...reading, dialect: "headgate" });
}

/** Reads a domain and its descriptors: a ratelimit file, or an item of a policy's `rateLimits`. */
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

/** Returns the domain's name, if it is valid. */
function readDescribed(
  reader: NodeReader,
  node: ParsedNode,
  reading: Reading & { readonly dialect: Dialect },
): string | undefined {
  const { dialect, rules, names } = reading;
  const form = domainForms[dialect];
  const block = Block.at(reader, node, form.shape);
  if (block === undefined) return undefined;
  const domainField = block.field("domain");
  const domain = readField(form, block, "domain");
  const inherited = reading.options.defaults ?? defaultDefaults;
  const onStoreFailure = readField(form, block, "on_store_failure") ?? inherited.onStoreFailure;
  const overrideMax = readField(form, block, "overrideMax");
  const most = overrideMax === undefined ? {} : { overrideMax };
  const disclosure = readDisclosure(block, inherited.disclosure);
  const reported = disclosure === undefined ? {} : { disclosure };
  const defaults = { ...inherited, onStoreFailure, ...most, ...reported };
  let siblings = new Siblings();
  if (domainField !== undefined && domain !== undefined) {
    // For an aliased item, the second use is the mistake, not its text.
    const place = isAlias(node) ? node : (domainField.value ?? domainField.key);
    siblings = addDomain(reader, place, { ...reading, domain });
    reading.quotas.defineDomain(domain, defaults);
  }
  const list = block.field("descriptors");
  if (list === undefined) return domain;
  const { regionCount } = reading.options;
  const above = domainAncestors;
  const place = { reader, dialect, rules, names, defaults, siblings, above, regionCount };
  readDescriptors(list, { ...place, domain: domain ?? "" });
  return domain;
}

/** Adds a domain, and returns its siblings even if it is reported as defined twice. */
function addDomain(
  reader: NodeReader,
  node: ParsedNode,
  { domain, domains, options }: Reading & { readonly domain: string },
): Siblings {
  const known = domains.get(domain);
  if (known !== undefined && options.mergesDomains === true) return known.siblings;
  const siblings = new Siblings();
  if (known !== undefined) {
    const message = `the domain ${quoteText(domain)} is already defined in ${known.place}`;
    reader.report(node, { id: "HG150", message });
    return siblings;
  }
  domains.set(domain, { place: placeText(reader, node), siblings });
  return siblings;
}
