import type { RuleDisclosure } from "../../core/limits/limit.js";
import { defaultDisclosure } from "../../core/limits/reported-rule.js";
import { Block } from "../text/block.js";
import { flag, mapForm, row } from "../text/form.js";
import type { Fields, NodeReader } from "../text/node-reader.js";
import { plainShape } from "../text/shapes.js";

/** `tellRule`: where refusals name what refused. */
const disclosureShape = plainShape("a tellRule", ["header", "metadata", "log"]);

/** `tellRule` for editors and formatters. */
export const disclosureForm = mapForm(
  {
    shape: disclosureShape,
    docs: "Where refusals name what refused them, in the policy's words and no caller's.",
  },
  {
    header: row(
      flag,
      "In the response header `x-headgate-rule`. Usually not: whoever is refused would learn " +
        "which rule it has to get around.",
      defaultDisclosure.header,
    ),
    metadata: row(
      flag,
      "In Envoy's dynamic metadata, as `rule` and `limit`, for its access log and later filters: " +
        "no caller sees it, so it is usually there.",
      defaultDisclosure.metadata,
    ),
    log: row(
      flag,
      "In log lines of Headgate's own: a sample, of one a second and rule at most.",
      defaultDisclosure.log,
    ),
  },
);

/** What `tellRule` changes of what is usual there; undefined where nobody says it. */
export function readDisclosure(
  reader: NodeReader,
  fields: Fields,
  usual: RuleDisclosure | undefined,
): RuleDisclosure | undefined {
  const block = new Block(reader, fields).block("tellRule", disclosureShape);
  if (block === undefined) return usual;
  const { header, metadata, log } = usual ?? defaultDisclosure;
  return {
    header: said(block, "header") ?? header,
    metadata: said(block, "metadata") ?? metadata,
    log: said(block, "log") ?? log,
  };
}

function said(block: Block, name: keyof RuleDisclosure): boolean | undefined {
  const field = block.field(name);
  return field && block.reader.readFlag(field, "headgate");
}
