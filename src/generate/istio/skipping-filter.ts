import { noted, type Tree, type TreeMap } from "../base/document.js";
import { memberOf } from "../base/tree-members.js";
import { extension, typed } from "../envoy/base/values.js";

/**
 * Returns a filter that skips every request until a virtual host sets `notSkipped`: for filters
 * that have no settings by route, and that istiod cannot enable in another way.
 *
 * Source: envoy.extensions.common.matching.v3.ExtensionWithMatcher.
 */
export function skippingFilter(name: string, filter: Tree): TreeMap {
  const skip = extension("skip", "envoy.extensions.filters.common.matcher.action.v3.SkipFilter");
  return extension(name, "envoy.extensions.common.matching.v3.ExtensionWithMatcher", {
    extension_config: {
      name: memberOf(filter, "name"),
      typed_config: memberOf(filter, "typed_config"),
    },
    xds_matcher: {
      on_no_match: noted("Disabled here. Virtual hosts below enable it.", { action: skip }),
    },
  });
}

/** Enables such a filter for a virtual host: a matcher that matches nothing skips nothing. */
export function notSkipped(): TreeMap {
  return typed("envoy.extensions.common.matching.v3.ExtensionWithMatcherPerRoute", {
    xds_matcher: {},
  });
}
