import { defaultDisclosure } from "../../core/limits/reported-rule.js";
import { flag } from "../text/form.js";
import { field, object } from "../text/object.js";

/** `tellRule`: where refusals name the rule that refused. */
export const disclosure = object(
  {
    title: "a tellRule",
    docs:
      "Where denials name the rule that denied the request. Only names from the " +
      "policy are disclosed, no values of callers.",
  },
  {
    header: field(
      flag,
      "In the response header `x-headgate-rule`. Off by default, because callers " +
        "could use it to get around the rule.",
      { default: defaultDisclosure.header },
    ),
    metadata: field(
      flag,
      "In Envoy's dynamic metadata, as `rule` and `limit`, for the access log and " +
        "later filters. Callers do not see it, so it is on by default.",
      { default: defaultDisclosure.metadata },
    ),
    log: field(flag, "In Headgate's log: a sample of at most one line a second for each rule.", {
      default: defaultDisclosure.log,
    }),
  },
);
