import type { ParsedNode } from "yaml";
import type { Field, NodeReader } from "../text/node-reader.js";
import { replacesShape } from "../text/shapes.js";
import { nameRule } from "../text/text-rules.js";

/** Names in one limit's `replaces`. */
export const replacesMax = 64;

/** A name in `replaces`, and where it stands. */
export interface ReplacedName {
  readonly name: string;
  readonly node: ParsedNode;
}

/** Reads `replaces`; wrong items are reported and left out. */
export function readReplaces(reader: NodeReader, field: Field): readonly ReplacedName[] {
  const expected = "a list like [{name: other-limit}]";
  const items = reader.readList(field, expected) ?? [];
  if (items.length > replacesMax) {
    const message = `a limit cannot replace more than ${replacesMax} others`;
    reader.report(field.key, { id: "HG160", message });
    return [];
  }
  return items.flatMap((node) => {
    const fields = reader.readMap(node, replacesShape);
    const nameField = fields && reader.requiredField(fields, "name", "the name of a limit");
    const name = nameField && reader.readText(nameField, nameRule);
    return name === undefined ? [] : [{ name, node }];
  });
}
