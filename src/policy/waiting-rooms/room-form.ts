import { priorities } from "../../core/admission/priority.js";
import { hitsMax } from "../../core/limits/limit.js";
import { roomEstimatedWait, roomGate } from "../services/admission-blocks.js";
import { headerKey } from "../services/service-admission.js";
import { formatDuration } from "../text/duration.js";
import {
  duration,
  type FieldType,
  flag,
  readBy,
  ruledText,
  seconds,
  whole,
  words,
} from "../text/form.js";
import type { Field, NodeReader } from "../text/node-reader.js";
import { field, inner, items, object, placed, wordList, wordOr } from "../text/object.js";
import { periodSecondsMax } from "../text/period.js";
import type { DurationBounds } from "../text/quantities.js";
import {
  headerName,
  host,
  label,
  network,
  path,
  plainPath,
  roomName,
} from "../text/service-texts.js";
import type { TextRule } from "../text/text-rules.js";
import { roomCapacity } from "./room-capacity.js";
import { roomCookie } from "./room-cookie.js";
import { roomEvents } from "./room-events.js";
import { roomPage } from "./room-page.js";

/** Maximum number of hosts, paths, networks or headers of one room, and of values of one header. */
export const roomItemsMax = 64;

/** Maximum number of visitors who wait in one room. */
export const waitingMax = 10_000_000;

/** The bounds of a session's length. */
export const sessionBounds: DurationBounds = { minMs: 10_000, maxMs: 86_400_000 };

/** Bounds of the interval at which a page refreshes. */
export const refreshBounds: DurationBounds = { minMs: 1_000, maxMs: 300_000 };

/** Maximum number of refreshes that may be missed in a row. */
export const missedRefreshesMax = 100;

function refusePart(reader: NodeReader, place: Field, ms: number): undefined {
  const message = `${formatDuration(ms)} is not in whole seconds`;
  const suggestion = formatDuration(Math.ceil(ms / 1_000) * 1_000);
  return reader.report(place.key, {
    id: "HG141",
    message,
    expected: "whole seconds, in which a room counts",
    suggestion,
  });
}

/** A duration of whole seconds, in milliseconds: a line counts no fractions. */
function wholeSeconds(bounds: DurationBounds): FieldType<number> {
  return readBy(duration(bounds), (reader, place) => {
    const read = seconds(bounds, refusePart).read(reader, place);
    return read === undefined ? undefined : read * 1_000;
  });
}

const match = object(
  { title: "a match of a room", docs: "Which requests of the service wait." },
  {
    hosts: field(
      items(placed(host), { expected: "a list of hosts", max: roomItemsMax }),
      "Values of `:authority`, in any case and with any port. Default: all.",
      { default: [] },
    ),
    paths: field(
      items(path, { expected: "a list of paths", max: roomItemsMax }),
      "Paths, exactly and without their query; `/shop/*` matches `/shop` and everything below. " +
        "Default: all.",
      { default: [] },
    ),
    methods: field(
      wordList(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]),
      "Methods. Default: all.",
      { default: [] },
    ),
  },
);

const headerValueRule: TextRule = {
  charsMax: 256,
  forbidden: /[^ -~]/,
  expected: "a header's value of 1 to 256 printable ASCII characters",
};

const bypassHeader = object(
  { title: "a header of a bypass", docs: "A header whose callers do not wait." },
  {
    name: field(placed(headerName), "The name of the header.", { needs: "the header's name" }),
    values: field(
      items(ruledText(headerValueRule), { expected: "a list of values", max: roomItemsMax }),
      "Values, of which the header has one. Default: any value.",
      { default: [] },
    ),
  },
);

const bypass = object(
  { title: "a bypass", docs: "Who does not wait. Any of them is enough." },
  {
    headers: field(
      items(inner(bypassHeader), {
        expected: "a list of headers: {name: x-staff, values: [a-long-random-token]}",
        max: roomItemsMax,
      }),
      "Headers. Callers can send any header, so give values that only a few know, or let a proxy " +
        "remove the header.",
      { default: [] },
    ),
    sources: field(
      items(network, { expected: "a list of networks", max: roomItemsMax }),
      "CIDR blocks of callers.",
      { default: [] },
    ),
    priorities: field(
      wordList(priorities),
      "Classes of requests, as `priority` of the service gives them.",
      { default: [] },
    ),
  },
);

const joinLimit = object(
  { title: "a joinLimit", docs: "A rate limit per caller in front of joining." },
  {
    requests: field(whole({ min: 1, max: hitsMax }), "Visitors of one caller who may join.", {
      larger: "looser",
      needs: "how many visitors of one caller may join",
    }),
    per: field(
      seconds({ minMs: 1_000, maxMs: 86_400_000 }, refusePart),
      "In which time, in whole seconds.",
      { larger: "stricter", as: "periodSeconds", default: 60 },
    ),
    burst: field(
      whole({ min: 1, max: hitsMax }),
      "Visitors of one caller who may join at once. Default: `requests`.",
      { larger: "looser" },
    ),
    by: field(
      wordOr(["remoteAddress"], inner(headerKey), "remoteAddress, or {header: x-user}"),
      "What identifies a caller.",
      { as: "per", default: "remoteAddress" },
    ),
  },
  {
    data({ requests, periodSeconds, burst, per }) {
      if (requests === undefined) return undefined;
      const key = per === "remoteAddress" ? { kind: per } : per;
      return { per: key, requests, periodSeconds, burst: burst ?? requests };
    },
    check(block, limit) {
      if (limit === undefined) return;
      const { requests, periodSeconds, burst } = limit;
      if (BigInt(burst) * BigInt(periodSeconds) <= BigInt(periodSecondsMax) * BigInt(requests))
        return;
      const message = "a caller who joined this often could not join again for ten years";
      block.report("burst", { id: "HG144", message });
    },
  },
);

const session = object(
  { title: "a session", docs: "How long a visitor who has entered stays in." },
  {
    length: field(wholeSeconds(sessionBounds), "The length, in whole seconds.", {
      larger: "different",
      as: "sessionMs",
      default: 600_000,
    }),
    renews: field(
      flag,
      "Whether each request makes the session last from then. Otherwise it ends its length after " +
        "the entrance.",
      { default: true },
    ),
  },
);

/** An item of `waitingRooms`. */
export const room = object(
  { title: "a waiting room", docs: "A virtual queue in front of a service." },
  {
    name: field(placed(roomName), "The name in cookies, metrics and commands.", {
      needs: "the room's name",
    }),
    service: field(placed(label), "The service, by name.", { needs: "the name of a service" }),
    match: field(
      inner(match),
      "Which requests of the service wait. The first room that matches counts. Default: all.",
      { default: match.defaults },
    ),
    visitors: field(
      words("navigations", "all"),
      "`navigations`: pages that a browser opens wait, and all other requests pass. `all`: every " +
        "request waits, and programs are answered in JSON.",
      { default: "navigations" },
    ),
    capacity: field(inner(roomCapacity), "How many visitors the service takes.", {
      default: roomCapacity.defaults,
    }),
    session: field(inner(session), "How long a visitor who has entered stays in.", {
      default: session.defaults,
    }),
    order: field(
      words("fifo", "random", "reject", "passthrough"),
      "`fifo`: who came first enters first. `random`: when an event opens, all who wait get " +
        "places by chance, whatever the event's `shuffle` says. Those who come later wait behind " +
        "them in order, and without events it is the same as `fifo`. `reject`: nobody waits, and " +
        "visitors are turned away while no session is free. `passthrough`: everybody enters.",
      { default: "fifo" },
    ),
    queueAll: field(
      flag,
      "Whether every visitor sees the waiting page first, even while sessions are free.",
      { added: "stricter", default: false },
    ),
    maxWaiting: field(
      whole({ min: 1, max: waitingMax }),
      "Visitors who may wait at a time. Further visitors get the page of a full room.",
      { larger: "looser", as: "waitingMax", default: 1_000_000 },
    ),
    refresh: field(
      wholeSeconds(refreshBounds),
      "How often a page asks for its place, in whole seconds.",
      { larger: "different", as: "refreshMs", default: 20_000 },
    ),
    missedRefreshes: field(
      whole({ min: 1, max: missedRefreshesMax }),
      "Refreshes that a visitor may miss in a row. Who misses more loses the place.",
      { larger: "looser", as: "missedRefreshesMax", default: 3 },
    ),
    events: field(roomEvents, "Announced openings. They do not overlap.", { default: [] }),
    estimatedWait: field(
      inner(roomEstimatedWait),
      "Turns visitors away who would wait too long. Default: `maxWaiting` alone.",
      { added: "stricter" },
    ),
    gate: field(
      inner(roomGate),
      "Lets Envoys turn away a part of the visitors without a ticket by themselves. Default: none.",
      { added: "stricter", isGenerated: true },
    ),
    joinLimit: field(inner(joinLimit), "A rate limit per caller in front of joining.", {
      added: "stricter",
    }),
    bypass: field(inner(bypass), "Who does not wait. Default: nobody.", {
      default: bypass.defaults,
    }),
    page: field(inner(roomPage), "What a visitor sees.", { default: roomPage.defaults }),
    cookie: field(inner(roomCookie), "The cookie of tickets and sessions.", {
      default: roomCookie.defaults,
    }),
    endpoint: field(
      plainPath,
      "The path that `/join`, `/position` and `/leave` are below, for applications and scripts. " +
        "Default: `/.waiting-room/` and the room's name.",
      { as: "endpointPath" },
    ),
    onStoreFailure: field(
      words("keep", "open", "close"),
      "Without the store, `keep`: sessions and places stay as they are, and nobody enters. " +
        "`open`: everybody enters. `close`: everybody waits.",
      { default: "keep" },
    ),
  },
  {
    data({ capacity, session: lasting, ...read }) {
      return { ...read, ...capacity, ...lasting };
    },
    check(block, { sessionMs, refreshMs, estimatedWait, gate }) {
      if (refreshMs > sessionMs) {
        const [every, length] = [formatDuration(refreshMs), formatDuration(sessionMs)];
        const message = `pages refresh every ${every}, and a session lasts ${length}`;
        block.refuseOrder(["refresh", "session"], message, "a refresh of at most a session");
      }
      const isWaitRight = estimatedWait !== undefined || block.isLeftOut("estimatedWait");
      if (gate !== undefined && isWaitRight && estimatedWait?.sigmoid === undefined) {
        block.report("gate", {
          id: "HG207",
          message: '"gate" has no reject probability to act on',
          expected: "estimatedWait: {sigmoid: {midpoint: 10m, slope: 0.02}}",
        });
      }
    },
  },
);

/** `waitingRooms` as it is written, field by field. */
export type ReadRoom = typeof room.defaults;
