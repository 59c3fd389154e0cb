import type { PolicyLocation } from "../../policy/policy-places.js";
import { quoteText } from "../../policy/problems/problem.js";
import { formatJsonPath, type JsonPath } from "../base/check-problem.js";
import { objectName } from "../base/custom-object.js";
import type { Tree, TreeMap } from "../base/document.js";
import type { ExistingObject } from "../base/existing-object.js";
import { rated } from "../base/generate-problems.js";
import type { GenerateProblem } from "../base/generator.js";
import { istioGroup, type MergeRule, mergeRuleOf, type PlainObject } from "../base/merge-rules.js";
import { type MergeConflict, type MergeStyle, mergeMaps } from "../base/merge-values.js";
import {
  isPlainMap,
  mapIn,
  type PlainMap,
  type PlainValue,
  plainTree,
} from "../base/plain-tree.js";
import { asMap } from "../base/tree-members.js";

/** The result of merging generated objects into a user's objects. */
interface MergedObjects {
  /** Our objects, or the user's with our settings in place of them. */
  readonly objects: readonly Tree[];
  readonly problems: readonly GenerateProblem[];
  /** The user's objects that our settings were merged into. */
  readonly merged: readonly ExistingObject[];
}

/**
 * Merges generated objects into those that a user has for the same host, workload or target, since
 * only one of each may exist. The user's settings stay. Differences are reported.
 *
 * @param service whose settings they are; undefined: those of `proxies`
 */
export function mergeInto(
  users: readonly ExistingObject[],
  ours: readonly Tree[],
  service: string | undefined,
): MergedObjects {
  if (users.length === 0) return { objects: ours, problems: [], merged: [] };
  const problems: GenerateProblem[] = [];
  const merged: ExistingObject[] = [];
  const objects = ours.flatMap((tree) => {
    const object = asMap(tree);
    if (object === undefined) return [tree];
    const own = sameObjects(users, object);
    const place = { service, problems };
    const shown = own.isReplaced ? [] : [withFreeName(tree, { users, same: own.same }, place)];
    if (own.rule === undefined || own.same.length === 0) return shown;
    reportAmbiguous(own.rule, own, place);
    merged.push(...own.same);
    const { rule } = own;
    return [...shown, ...own.same.map((one) => mergeObject(one, { ours: object, rule }, place))];
  });
  return { objects, problems, merged };
}

/** Returns the user's object of the same kind and target as ours. Undefined if there is none. */
export function existingFor(
  users: readonly ExistingObject[],
  ours: Tree,
): ExistingObject | undefined {
  const object = asMap(ours);
  return object === undefined ? undefined : sameObjects(users, object).same[0];
}

interface ReportPlace {
  readonly service: string | undefined;
  readonly problems: GenerateProblem[];
}

function sameObjects(users: readonly ExistingObject[], object: TreeMap) {
  const plain = plainObject(plainMap(object));
  const [group = ""] = String(object["apiVersion"]).split("/");
  const rule = mergeRuleOf(group, String(object["kind"]));
  const same =
    rule === undefined
      ? []
      : users.filter((one) => {
          const isKind = one.group === rule.group && one.kind === rule.kind;
          return isKind && rule.isSame(plainOf(one), plain);
        });
  const isReplaced = same.some((one) => rule?.replaces?.(plainOf(one), plain) ?? true);
  return { rule, same, plain, isReplaced };
}

function plainMap(object: Tree): PlainMap {
  const plain = plainTree(object);
  return isPlainMap(plain) ? plain : {};
}

function plainObject(object: PlainMap): PlainObject {
  const namespace = String(mapIn(object, "metadata")["namespace"]);
  return { namespace, spec: mapIn(object, "spec") };
}

function plainOf({ namespace, object }: ExistingObject): PlainObject {
  return { namespace, spec: mapIn(object, "spec") };
}

function mergeObject(
  user: ExistingObject,
  { ours, rule }: { readonly ours: TreeMap; readonly rule: MergeRule },
  place: ReportPlace,
): Tree {
  const { style, merge = mergeMaps } = rule;
  const conflicts: MergeConflict[] = [];
  const settings = asMap(ours["spec"]) ?? {};
  const at = { path: ["spec"], style, conflicts };
  const spec = merge(mapIn(user.object, "spec"), settings, at);
  reportConflicts(user, conflicts, place);
  // All clusters accept the version in which we generate a kind.
  return { ...user.object, apiVersion: ours["apiVersion"] ?? "", spec };
}

/** How settings of routes are merged: the parts of `retries` belong together. */
export const routeStyle: MergeStyle = { wholes: ["retries"] };

/** Reports settings with different values in the user's object and in the policy. */
export function reportConflicts(
  user: ExistingObject,
  conflicts: readonly MergeConflict[],
  { service, problems }: ReportPlace,
): void {
  for (const { path, theirs, ours } of conflicts) {
    const place = `${titleOf(user)}, ${formatJsonPath(path)} (${user.placeOf(path)})`;
    const [own, other] = [shortValue(theirs), shortValue(ours)];
    const words =
      own === undefined || other === undefined
        ? "keeps its value, and the policy has another one"
        : `keeps ${own}, and the policy has ${other}`;
    problems.push(
      rated({
        id: "HG349",
        spot: { service, path: service === undefined ? proxiesPath(user) : policyPath(path) },
        message: `${place} ${words}`,
        hint: "remove it from your object, or set the same value in the policy",
      }),
    );
  }
}

/** Undefined for a list or a map, whose text would be too long. */
function shortValue(value: PlainValue): string | undefined {
  if (typeof value === "string") return quoteText(value);
  return typeof value === "object" ? undefined : String(value);
}

/** The policy path that sets a setting of this name, the more specific ones first. */
const policyPaths: readonly (readonly [name: string, path: PolicyLocation["path"]])[] = [
  ["connectTimeout", ["timeouts"]],
  ["maxConnectionDuration", ["timeouts"]],
  ["timeout", ["timeouts"]],
  ["retryBudget", ["circuitBreakers", "retryBudget"]],
  ["connectionPool", ["circuitBreakers"]],
  ["inboundConnectionPool", ["circuitBreakers"]],
  ["circuitBreaker", ["circuitBreakers"]],
  ["outlierDetection", ["outlierDetection"]],
  ["passive", ["outlierDetection"]],
  ["active", ["healthChecks"]],
  ["loadBalancer", ["loadBalancing"]],
  ["panicThreshold", ["loadBalancing"]],
  ["retry", ["retries"]],
  ["retries", ["retries"]],
  ["rateLimit", ["rateLimit"]],
  ["httpUpgrade", ["upgrades"]],
  ["extProc", ["admission"]],
  ["tls", ["upstream", "tls"]],
];

function proxiesPath({ kind }: ExistingObject): PolicyLocation["path"] {
  return ["proxies", kind === "DestinationRule" ? "headgate" : "listener"];
}

function policyPath(path: JsonPath): PolicyLocation["path"] {
  return policyPaths.find(([name]) => path.includes(name))?.[1] ?? [];
}

/**
 * Renames our object if another object of the user has the same name and would be overwritten. Only
 * policies of Envoy Gateway are referred to by name elsewhere, so they keep theirs.
 */
function withFreeName(
  tree: Tree,
  { users, same }: Readonly<Record<"users" | "same", readonly ExistingObject[]>>,
  place: ReportPlace,
): Tree {
  const ours = asMap(tree) ?? {};
  const { name = "", namespace } = asMap(ours["metadata"]) ?? {};
  const [group = ""] = String(ours["apiVersion"]).split("/");
  const findTaken = (wanted: Tree): ExistingObject | undefined => {
    return users.find((one) => {
      const isKind = one.group === group && one.kind === ours["kind"] && !same.includes(one);
      return isKind && one.name === wanted && one.namespace === namespace;
    });
  };
  const other = group === istioGroup ? objectName(`headgate-${String(name)}`) : name;
  const taken = findTaken(name);
  if (taken === undefined) return tree;
  if (findTaken(other) === undefined) {
    return { ...ours, metadata: { ...asMap(ours["metadata"]), name: other } };
  }
  report(place, {
    message: `${placedTitle(taken)} has another target, and a generated object has its name`,
    hint: "rename your object",
  });
  return tree;
}

/** Only one of two objects takes effect. An object for several targets would apply ours to all. */
function reportAmbiguous(
  { subject, isShared, kind }: MergeRule,
  { same, plain: ours }: { readonly same: readonly ExistingObject[]; readonly plain: PlainObject },
  place: ReportPlace,
): void {
  for (const [index, user] of same.entries()) {
    const second = same.slice(index + 1).find((other) => isBeside(user, other));
    if (second !== undefined) {
      report(place, {
        message: `${placedTitle(user)} and ${placedTitle(second)} are both for ${subject(ours)}`,
        hint: `merge them into one ${kind}: only one of them takes effect`,
      });
    }
    if (isShared?.(plainOf(user)) === true) {
      report(place, {
        message: `${placedTitle(user)} covers more than ${subject(ours)}`,
        hint: `create a separate ${kind} for ${subject(ours)}, and remove it from this one`,
      });
    }
  }
}

function isBeside(one: ExistingObject, other: ExistingObject): boolean {
  const selector = (object: ExistingObject): string => {
    return JSON.stringify(mapIn(mapIn(object.object, "spec"), "workloadSelector"));
  };
  return one.namespace === other.namespace && selector(one) === selector(other);
}

function report(
  { service, problems }: ReportPlace,
  { message, hint }: Pick<GenerateProblem, "message" | "hint">,
): void {
  problems.push(rated({ id: "HG369", spot: { service, path: [] }, message, hint }));
}

/** Formats the name of an object as people write it: `DestinationRule shop/orders`. */
export function titleOf({ kind, namespace, name }: ExistingObject): string {
  return `${kind} ${namespace === "" ? "" : `${namespace}/`}${name}`;
}

function placedTitle(user: ExistingObject): string {
  return `${titleOf(user)} (${user.placeOf([])})`;
}
