import { parseAllDocuments } from "yaml";
import { quoteText } from "../../policy/problems/problem.js";
import type { CheckProblem, JsonPath } from "../base/check-problem.js";
import type { Document } from "../base/document.js";
import { rated } from "../base/generate-problems.js";
import { isPlainList, isPlainMap, type PlainValue, plainTree } from "../base/plain-tree.js";
import { readPlain } from "../base/plain-yaml.js";
import type { EnvoyTree } from "./check-message.js";
import type { EnvoyApi } from "./envoy-api.js";
import { findPatchPlace } from "./patch-place.js";

/** The parts of a document that Envoy will read, and problems where these cannot be determined. */
interface FoundMessages {
  readonly trees: readonly EnvoyTree[];
  readonly problems: readonly CheckProblem[];
}

/**
 * Returns the Envoy messages in a document: the document itself, or what objects of Istio and Envoy
 * Gateway pass on to Envoy as it is. If there are several parts, paths begin with a part's index.
 */
export function findMessages({ kind, parts }: Document, api: EnvoyApi): FoundMessages {
  const found = parts.map((part, i): FoundMessages => {
    const placed = { value: plainTree(part), path: parts.length === 1 ? [] : [i] };
    if (kind.format !== "yaml") return nothing;
    if (kind.is === "envoy") return { trees: wholeMessages(kind.message, placed), problems: [] };
    return kind.is === "kubernetes" ? findInObject(placed, api) : nothing;
  });
  return join(found);
}

/** Full name of the bootstrap message. */
export const bootstrapMessage = "envoy.config.bootstrap.v3.Bootstrap";

const nothing: FoundMessages = { trees: [], problems: [] };

interface Placed {
  readonly value: PlainValue | undefined;
  readonly path: JsonPath;
}

/** Returns a message, or each message of a list. */
function wholeMessages(message: string, { value, path }: Placed): readonly EnvoyTree[] {
  if (value === undefined) return [];
  if (!isPlainList(value)) return [{ message, value, path }];
  return value.map((item, i) => ({ message, value: item, path: [...path, i] }));
}

function findInObject(placed: Placed, api: EnvoyApi): FoundMessages {
  if (!isPlainMap(placed.value)) return nothing;
  switch (placed.value["kind"]) {
    case "EnvoyFilter":
      return join(itemsAt(placed, "spec", "configPatches").map(findInConfigPatch));
    case "EnvoyPatchPolicy":
      return join(
        itemsAt(placed, "spec", "jsonPatches").map((patch) => findInJsonPatch(patch, api)),
      );
    case "EnvoyProxy":
      return findInBootstrapText(at(placed, "spec", "bootstrap"));
    case "ConfigMap":
      return findInConfigMap(at(placed, "data"));
    case "List":
      return join(itemsAt(placed, "items").map((item) => findInObject(item, api)));
    default:
      return nothing;
  }
}

/** Message into which an Istio patch is merged. Source: Istio, EnvoyFilter, `applyTo`. */
const messageOfApplyTo: Readonly<Record<string, string>> = {
  BOOTSTRAP: bootstrapMessage,
  CLUSTER: "envoy.config.cluster.v3.Cluster",
  EXTENSION_CONFIG: "envoy.config.core.v3.TypedExtensionConfig",
  FILTER_CHAIN: "envoy.config.listener.v3.FilterChain",
  HTTP_FILTER: "envoy.extensions.filters.network.http_connection_manager.v3.HttpFilter",
  HTTP_ROUTE: "envoy.config.route.v3.Route",
  LISTENER: "envoy.config.listener.v3.Listener",
  LISTENER_FILTER: "envoy.config.listener.v3.ListenerFilter",
  NETWORK_FILTER: "envoy.config.listener.v3.Filter",
  ROUTE_CONFIGURATION: "envoy.config.route.v3.RouteConfiguration",
  VIRTUAL_HOST: "envoy.config.route.v3.VirtualHost",
};

function findInConfigPatch(patch: Placed): FoundMessages {
  const applyTo = textAt(patch, "applyTo");
  const value = at(patch, "patch", "value");
  // A removal has no value.
  if (value.value === undefined) return nothing;
  const message = Object.hasOwn(messageOfApplyTo, applyTo) ? messageOfApplyTo[applyTo] : undefined;
  if (message === undefined) return unclear(patch, `applyTo ${quoteText(applyTo)} is unknown`);
  const isPartial = textAt(patch, "patch", "operation") === "MERGE";
  return { trees: [{ message, value: value.value, path: value.path, isPartial }], problems: [] };
}

/** Source: Envoy Gateway, EnvoyPatchPolicy, `jsonPatches`. */
function findInJsonPatch(patch: Placed, api: EnvoyApi): FoundMessages {
  const value = at(patch, "operation", "value");
  if (value.value === undefined) return nothing;
  const type = textAt(patch, "type");
  const resource = type.slice(type.lastIndexOf("/") + 1);
  const jsonPath = textAt(patch, "operation", "jsonPath");
  const pointer = textAt(patch, "operation", "path");
  const found = findPatchPlace({ resource, jsonPath, pointer }, api);
  switch (found.kind) {
    case "message":
      return { trees: wholeMessages(found.message, value), problems: [] };
    case "plain":
      return nothing;
    default:
      return unclear(
        patch,
        `the type at ${quoteText(jsonPath + pointer)} of ${quoteText(resource)} is unknown`,
      );
  }
}

/** Source: Envoy Gateway, EnvoyProxy, `bootstrap`. */
function findInBootstrapText(bootstrap: Placed): FoundMessages {
  const text = at(bootstrap, "value");
  if (typeof text.value !== "string") return nothing;
  return findInText(text, textAt(bootstrap, "type") !== "Replace");
}

/** Source: Istio, `sidecar.istio.io/bootstrapOverride`. */
function findInConfigMap(data: Placed): FoundMessages {
  return join(
    ["custom_bootstrap.json", "custom_bootstrap.yaml"].map((name) =>
      findInText(at(data, name), true),
    ),
  );
}

function findInText(placed: Placed, isPartial: boolean): FoundMessages {
  const { value, path } = placed;
  if (typeof value !== "string") return nothing;
  const [document, ...more] = parseAllDocuments(value, { logLevel: "silent" });
  if (document === undefined || more.length > 0 || document.errors.length > 0) {
    return unclear(placed, "the text is not a single YAML document");
  }
  const read = readPlain(document);
  if (read.kind === "unreadable") return unclear(placed, read.why);
  if (read.tree === undefined) return nothing;
  const tree = { message: bootstrapMessage, value: read.tree, path, isPartial };
  return { trees: [tree], problems: [] };
}

function unclear({ path }: Placed, message: string): FoundMessages {
  const hint = "write the patch so that its message type can be derived";
  return { trees: [], problems: [rated({ id: "HG453", path, message, hint })] };
}

function at({ value, path }: Placed, ...names: readonly string[]): Placed {
  let found: PlainValue | undefined = value;
  for (const name of names)
    found = isPlainMap(found) && Object.hasOwn(found, name) ? found[name] : undefined;
  return { value: found, path: [...path, ...names] };
}

function itemsAt(placed: Placed, ...names: readonly string[]): readonly Placed[] {
  const { value, path } = at(placed, ...names);
  return isPlainList(value) ? value.map((item, i) => ({ value: item, path: [...path, i] })) : [];
}

/** Returns the text at a path. Empty if there is none. */
function textAt(placed: Placed, ...names: readonly string[]): string {
  const { value } = at(placed, ...names);
  return typeof value === "string" ? value : "";
}

function join(found: readonly FoundMessages[]): FoundMessages {
  return {
    trees: found.flatMap(({ trees }) => trees),
    problems: found.flatMap(({ problems }) => problems),
  };
}
