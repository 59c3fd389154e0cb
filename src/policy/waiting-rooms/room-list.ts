import type { ParsedNode } from "yaml";
import { matchesPath, pathPrefixOf } from "../../core/base/path-pattern.js";
import { quoteText } from "../problems/problem.js";
import type { ServicePolicy } from "../services/service-policy.js";
import type { Block } from "../text/block.js";
import { DefinedNames } from "../text/defined-names.js";
import { findNearestName } from "../text/nearest-name.js";
import type { PlacedValue } from "../text/object.js";
import type { PageTemplates } from "./page-templates.js";
import type { RoomMatch, RoomPolicy } from "./room-policy.js";

/** Maximum number of waiting rooms of one policy. Each has a leader that counts once a second. */
export const roomsMax = 128;

/** A room as read, and its places. Its service may be defined in another file. */
export interface RoomDraft {
  readonly room: RoomPolicy;
  readonly block: Block;
  /** The file name of its page's template. */
  readonly templateFile: PlacedValue<string> | undefined;
  readonly nodes: {
    readonly name: ParsedNode;
    readonly service: ParsedNode;
    /** One for each host that it matches. */
    readonly hosts: readonly ParsedNode[];
  };
}

/** Data that rooms are checked against after all files are read. */
interface RoomContext {
  /** Names of services, even if the rest of their definition is wrong. */
  readonly names: readonly string[];
  /** The valid services; rooms of others are not checked against them. */
  readonly services: readonly ServicePolicy[];
  readonly templates: PageTemplates;
}

/** The waiting rooms of a policy while it is read, from all its files. */
export class RoomList {
  readonly #drafts: RoomDraft[] = [];
  readonly named = new DefinedNames(
    "HG270",
    (name) => `a waiting room named ${name} is already defined`,
  );

  /** Adds a room at the end; false, and not added, when there are `roomsMax` already. */
  add(draft: RoomDraft): boolean {
    if (this.#drafts.length >= roomsMax) return false;
    this.#drafts.push(draft);
    return true;
  }

  /** Returns the rooms in the order of the files; reports those that do not fit the policy. */
  finish({ names, services, templates }: RoomContext): readonly RoomPolicy[] {
    const byName = new Map(services.map((service) => [service.name, service]));
    this.#drafts.forEach((draft, index) => {
      refuseStranger(draft, names);
      const service = byName.get(draft.room.service);
      if (service !== undefined) checkService(draft, service);
      checkEndpoint(draft);
      refuseNarrowCookie(draft);
      const former = this.#drafts.slice(0, index).filter(({ room }) => {
        return room.service === draft.room.service;
      });
      for (const { room } of former) refuseCollision(draft, room);
      refuseIdle(draft, former);
    });
    return this.#drafts.map(({ room, block, templateFile }) => {
      if (templateFile === undefined) return room;
      const template = templates.use(templateFile, block.reader);
      return { ...room, page: { ...room.page, template } };
    });
  }
}

function refuseStranger({ room, block, nodes }: RoomDraft, names: readonly string[]): void {
  if (names.includes(room.service)) return;
  block.reader.reportContent(nodes.service, {
    id: "HG271",
    message: `the policy has no service named ${quoteText(room.service)}`,
    suggestion: findNearestName(room.service, names),
  });
}

function checkService(draft: RoomDraft, service: ServicePolicy): void {
  const { room, block } = draft;
  warnOfService(draft, service);
  refuseForeignDomain(draft, room.match.hosts.length > 0 ? room.match.hosts : service.hosts);
  const isBounded = service.concurrency !== undefined || service.admission?.maxInFlight;
  const isAuto = [room, ...room.events].some(({ activeUsersMax }) => activeUsersMax === "auto");
  if (!isAuto || room.order === "passthrough" || isBounded) return;
  block.report(room.activeUsersMax === "auto" ? "capacity" : "events", {
    id: "HG280",
    message: `the service ${quoteText(service.name)} has no limit to take a capacity from`,
    expected: "capacity: {activeUsers: 500}, or admission: {} at the service",
  });
}

function warnOfService({ room, block, nodes }: RoomDraft, service: ServicePolicy): void {
  room.match.hosts.forEach((host, index) => {
    const node = nodes.hosts[index];
    if (node === undefined || service.hosts.length === 0 || service.hosts.includes(host)) return;
    block.reader.warn(node, {
      id: "HG282",
      message: `${quoteText(host)} is not a host of the service ${quoteText(service.name)}`,
      expected: "a host of the service, unless its routes name it",
    });
  });
  const { default: most } = service.priority;
  if (!room.bypass.priorities.includes(most)) return;
  block.reader.warn(block.field("bypass")?.key ?? block.fields.node, {
    id: "HG283",
    message: `requests of the class ${quoteText(most)} do not wait, and most requests have it`,
    expected: "classes above the service's default class",
  });
}

/** Reports a foreign cookie domain, which browsers refuse. Source: RFC 6265 section 5.3. */
function refuseForeignDomain({ room, block }: RoomDraft, hosts: readonly string[]): void {
  const { domain } = room.cookie;
  if (domain === undefined) return;
  const stranger = hosts.find((host) => host !== domain && !host.endsWith(`.${domain}`));
  if (stranger === undefined) return;
  block.report("cookie", {
    id: "HG279",
    message: `browsers drop a cookie of ${quoteText(domain)} from ${quoteText(stranger)}`,
    expected: "a domain that all hosts of the room lie in, or none",
  });
}

/** Reports a cookie that some paths do not get: without it, each request joins anew. */
function refuseNarrowCookie({ room, block }: RoomDraft): void {
  const { path } = room.cookie;
  const below = path === "/" ? "/*" : `${path}/*`;
  const paths = [...(room.match.paths.length > 0 ? room.match.paths : ["/*"]), room.endpointPath];
  const stranger = paths.find((one) => !covers([below], [one]));
  if (stranger === undefined) return;
  block.report("cookie", {
    id: "HG279",
    message: `browsers do not send a cookie of ${quoteText(path)} to ${quoteText(stranger)}`,
    expected: "a path that all paths and the endpoint of the room lie below, such as /",
  });
}

/** Reports an endpoint that hides paths: Headgate answers everything below it. */
function checkEndpoint({ room, block }: RoomDraft): void {
  const hidden = room.match.paths.find((one) => covers([`${room.endpointPath}/*`], [one]));
  if (hidden === undefined && room.endpointPath !== "/") return;
  block.report("endpoint", {
    id: "HG278",
    message: `the endpoint hides ${quoteText(hidden ?? "/")} of the service`,
    expected: "a path that the service does not use, such as /.waiting-room/shop",
  });
}

/** Reports two rooms with overlapping endpoints, or with cookies of the same name. */
function refuseCollision({ room, block }: RoomDraft, former: RoomPolicy): void {
  if (!meets(former.match.hosts, room.match.hosts)) return;
  const name = quoteText(former.name);
  const [one, other] = [former.endpointPath, room.endpointPath];
  if (covers([`${one}/*`], [other]) || covers([`${other}/*`], [one])) {
    block.report("endpoint", {
      id: "HG278",
      message: `the endpoint collides with that of the waiting room ${name}`,
      expected: "a path of its own",
    });
  }
  if (former.cookie.name === room.cookie.name) {
    block.report("cookie", {
      id: "HG279",
      message: `the waiting room ${name} has a cookie of the same name`,
      expected: "a name of its own",
    });
  }
}

function refuseIdle({ room, block }: RoomDraft, former: readonly RoomDraft[]): void {
  const guard = former.find((one) => guards(one.room.match, room.match));
  if (guard === undefined) return;
  block.report(block.field("match") === undefined ? "name" : "match", {
    id: "HG272",
    message: `the waiting room ${quoteText(guard.room.name)} guards all these requests before`,
    expected: "the room with the narrower match first, or a different match",
  });
}

/** Reports whether every request of the narrow match is also one of the wide match. */
function guards(wide: RoomMatch, narrow: RoomMatch): boolean {
  const isWithin = (all: readonly string[], some: readonly string[]): boolean =>
    all.length === 0 || (some.length > 0 && some.every((one) => all.includes(one)));
  return (
    isWithin(wide.hosts, narrow.hosts) &&
    isWithin(wide.methods, narrow.methods) &&
    (wide.paths.length === 0 || covers(wide.paths, narrow.paths.length > 0 ? narrow.paths : ["/*"]))
  );
}

function meets(one: readonly string[], other: readonly string[]): boolean {
  return one.length === 0 || other.length === 0 || one.some((name) => other.includes(name));
}

/** Reports whether the wide patterns match every path of the narrow patterns. */
function covers(wide: readonly string[], narrow: readonly string[]): boolean {
  return narrow.every((pattern) => {
    const prefix = pathPrefixOf(pattern);
    if (prefix === undefined) return matchesPath(wide, pattern);
    return wide.some((one) => {
      const outer = pathPrefixOf(one);
      return outer !== undefined && (prefix === outer || prefix.startsWith(`${outer}/`));
    });
  });
}
