import { list, readBy, ruledText } from "../text/form.js";
import { field, innerBy, object, type PlacedValue, readField } from "../text/object.js";
import { nameRule } from "../text/text-rules.js";

/** Maximum number of names in one limit's `replaces`. */
export const replacesMax = 64;

const item = object(
  {
    title: "an item of replaces",
    docs: "A limit that is skipped when a request matches this one.",
  },
  {
    name: field(ruledText(nameRule), "The `name` of the limit that is replaced.", {
      needs: "the name of a limit",
    }),
  },
);

const itemType = innerBy(item, (block) => readField(item, block, "name"));

/** A name in `replaces`, and the item that contains it. */
export type ReplacedName = PlacedValue<string>;

/** `replaces`; wrong items are reported and left out. */
export const replaces = readBy<readonly ReplacedName[]>(
  list(itemType, replacesMax),
  (reader, place) => {
    const items = reader.readList(place, "a list like [{name: other-limit}]") ?? [];
    if (items.length > replacesMax) {
      const message = `a limit cannot replace more than ${replacesMax} others`;
      return reader.report(place.key, { id: "HG160", message });
    }
    return items.flatMap((node) => {
      const value = itemType.read(reader, { name: place.name, key: node, value: node });
      return value === undefined ? [] : [{ value, node }];
    });
  },
);
