import { regionsMax } from "../../core/limits/lending.js";
import type { OptionValues } from "../options/options.js";
import { regionEntries, regionName, regionNameRule } from "../options/region-options.js";
import { chooseRegionRedis, type RedisChoice, type StoreChoice } from "./store-choice.js";

/** The regions that share limits, as configured. */
export interface RegionsChoice {
  /** The region of this process. */
  readonly own: string;
  /** All regions, including this one: from 2 to `regionsMax`, sorted, without duplicates. */
  readonly names: readonly string[];
  /** The stores of the other regions, sorted by name. */
  readonly peers: readonly RegionStoreChoice[];
}

/** The Redis of a region. */
export interface RegionStoreChoice {
  readonly name: string;
  readonly redis: RedisChoice;
}

type RedisStoreChoice = Extract<StoreChoice, { kind: "redis" }>;

/**
 * Reads the options about regions. Undefined: there are none, or they are invalid. Problems name
 * entries by their place, because the text in place of a name may be a password.
 */
export function chooseRegions(
  values: OptionValues,
  store: StoreChoice,
  problems: string[],
): RegionsChoice | undefined {
  const { region, regionStores } = values;
  if (region === undefined && regionStores === undefined) return undefined;
  if (region === undefined || regionStores === undefined) {
    problems.push("HEADGATE_REGION and HEADGATE_REGION_STORES need each other; set both");
    return undefined;
  }
  if (store.kind !== "redis") {
    problems.push(
      "HEADGATE_REGION_STORES is set, but limits are kept in this process, which no other region " +
        "reaches; set REDIS_URL to the Redis of this region",
    );
    return undefined;
  }
  if (store.perSecond !== undefined) {
    problems.push(
      "HEADGATE_REGION_STORES is set, and REDIS_PERSECOND is true: a region has one Redis; set " +
        "REDIS_PERSECOND to false",
    );
    return undefined;
  }
  const before = problems.length;
  const stores = readStores(regionStores, values, problems);
  const names = [...stores.keys()].sort();
  if (problems.length === before) checkStores({ region, stores, store }, problems);
  if (problems.length > before) return undefined;
  const peers = names.flatMap((name): readonly RegionStoreChoice[] => {
    const redis = stores.get(name);
    return name === region || redis === undefined ? [] : [{ name, redis }];
  });
  return { own: region, names, peers };
}

function readStores(
  text: string,
  values: OptionValues,
  problems: string[],
): ReadonlyMap<string, RedisChoice> {
  const stores = new Map<string, RedisChoice>();
  const entries = regionEntries(text);
  if (entries.length < 2 || entries.length > regionsMax) {
    problems.push(`HEADGATE_REGION_STORES must have from 2 to ${regionsMax} entries, name=url`);
    return stores;
  }
  entries.forEach((entry, i) => {
    const place = `HEADGATE_REGION_STORES: entry ${i + 1}`;
    const equals = entry.indexOf("=");
    const name = entry.slice(0, Math.max(0, equals));
    if (!regionName.test(name)) {
      problems.push(`${place} must be name=url, and begin with ${regionNameRule}`);
      return;
    }
    if (stores.has(name)) {
      problems.push(`${place} has the name of an entry before it; give each region one entry`);
      return;
    }
    const redis = chooseRegionRedis(values, { name: place, url: entry.slice(equals + 1) });
    if (redis.kind === "problem") problems.push(redis.message);
    else stores.set(name, redis);
  });
  return stores;
}

/** Requires a separate store for each region, or a region would borrow its own hits. */
function checkStores(
  {
    region,
    stores,
    store,
  }: {
    readonly region: string;
    readonly stores: ReadonlyMap<string, RedisChoice>;
    readonly store: RedisStoreChoice;
  },
  problems: string[],
): void {
  if (!stores.has(region)) {
    problems.push(
      "HEADGATE_REGION is none of the names in HEADGATE_REGION_STORES; correct one of the two",
    );
  }
  const entries = new Map<string, number>();
  [...stores].forEach(([name, redis], i) => {
    const place = placeOf(redis);
    const other = entries.get(place);
    if (other !== undefined) {
      problems.push(
        `HEADGATE_REGION_STORES: entries ${other + 1} and ${i + 1} name the same Redis; give ` +
          "each region its own",
      );
    } else if (name !== region && place === placeOf(store.main)) {
      problems.push(
        `HEADGATE_REGION_STORES: entry ${i + 1} names the Redis at REDIS_URL, and is not the ` +
          "region in HEADGATE_REGION; correct one of the three",
      );
    }
    entries.set(place, i);
  });
}

/** Identifies a Redis by its place, whatever credentials are used. */
function placeOf({ kind, target }: RedisChoice): string {
  if (kind === "single") return JSON.stringify([target.address, target.database]);
  if (kind === "cluster") return JSON.stringify(target.nodes);
  return JSON.stringify([target.primaryName, target.sentinels, target.database]);
}
