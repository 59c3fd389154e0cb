import { assertNever } from "../../core/base/errors.js";
import { noted, type Tree, type TreeMap } from "../base/document.js";
import { type ValueName, type ValueRow, valueNames, valueRow } from "./value-rows.js";
import type { KubernetesValues } from "./value-source.js";

/** Returns the chart's values.yaml: every value with its documentation. */
export function valuesTree(values: KubernetesValues): TreeMap {
  return nest((name) =>
    noted(valueRow(name).docs, values.get(name) ?? valueRow(name).defaultValue),
  );
}

/** Returns the chart's values.schema.json: Helm refuses unknown values and wrong types. */
export function valuesSchema(): TreeMap {
  const properties = nest((name) => schemaOf(valueRow(name)));
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    ...closedObject({ ...withObjects(properties), global: { type: "object" } }),
  };
}

/** Returns a map of maps by the parts of the names, in the order of the rows. */
function nest(treeOf: (name: ValueName) => Tree): TreeMap {
  const outer: Record<string, Tree> = {};
  const inner = new Map<string, Record<string, Tree>>();
  for (const name of valueNames) {
    const [group = "", member] = name.split(".");
    if (member === undefined) {
      outer[group] = treeOf(name);
      continue;
    }
    const members = inner.get(group) ?? {};
    members[member] = treeOf(name);
    inner.set(group, members);
    outer[group] = members;
  }
  return outer;
}

const groups = new Set(valueNames.flatMap((name) => name.split(".").slice(0, -1)));

function withObjects(properties: TreeMap): TreeMap {
  const entries = Object.entries(properties).map(([name, value]) => [
    name,
    groups.has(name) ? closedObject(value) : value,
  ]);
  return Object.fromEntries(entries);
}

function closedObject(properties: Tree | undefined): TreeMap {
  return { type: "object", additionalProperties: false, properties };
}

function schemaOf(row: ValueRow): TreeMap {
  const { kind, docs: description } = row;
  switch (kind) {
    case "text":
      return { description, type: "string", pattern: row.pattern };
    case "number":
      return { description, type: "integer", minimum: row.min, maximum: row.max };
    case "switch":
      return { description, type: "boolean" };
    case "texts":
      return {
        description,
        type: "object",
        // Helm omits a map if it cannot write a name, and an empty selector selects everything.
        propertyNames: { pattern: "^[-._/a-zA-Z0-9]{1,317}$" },
        additionalProperties: { type: "string" },
      };
    case "map":
      return { description, type: "object" };
    case "list":
      return { description, type: "array", items: { type: "object" } };
    default:
      return assertNever(kind);
  }
}
