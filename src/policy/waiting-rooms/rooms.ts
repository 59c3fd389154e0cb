import { quoteText } from "../problems/problem.js";
import type { Block } from "../text/block.js";
import { readMaps } from "../text/defined-names.js";
import type { Field, NodeReader } from "../text/node-reader.js";
import { type ReadRoom, room } from "./room-form.js";
import { type RoomDraft, type RoomList, roomsMax } from "./room-list.js";

/** Reads `waitingRooms` into the list; problems are reported. */
export function readRooms(reader: NodeReader, written: Field, list: RoomList): void {
  readMaps(reader, written, {
    expected: "a list of waiting rooms: {name: ..., service: ...}",
    shape: room.shape,
    most: `${roomsMax} waiting rooms`,
    add: (block) => {
      const draft = readRoom(block, list);
      return draft === undefined || list.add(draft);
    },
  });
}

/** Reads a room; undefined if its name is wrong or not unique, or its service is wrong. */
function readRoom(block: Block, list: RoomList): RoomDraft | undefined {
  const { name, service, match, page, cookie, bypass, endpointPath, ...read } = room.read(block);
  if (name === undefined) return undefined;
  const isNew = list.named.define(name.value, name.node, block.reader);
  for (const header of bypass.headers) warnOfAnyone(block.reader, header);
  if (service === undefined || !isNew) return undefined;
  const { templateFile, ...shown } = page;
  return {
    room: {
      ...read,
      name: name.value,
      service: service.value,
      match: { ...match, hosts: match.hosts.map(({ value }) => value) },
      page: shown,
      cookie: { ...cookie, name: cookie.name ?? `headgate-${name.value}` },
      bypass: {
        ...bypass,
        headers: bypass.headers.flatMap((header) => {
          return header.name === undefined ? [] : [{ ...header, name: header.name.value }];
        }),
      },
      endpointPath: endpointPath ?? `/.waiting-room/${name.value}`,
    },
    block,
    templateFile,
    nodes: { name: name.node, service: service.node, hosts: match.hosts.map(({ node }) => node) },
  };
}

/** Warns of a bypass header without values: anyone can send it and skip the wait. */
function warnOfAnyone(reader: NodeReader, { name, values }: ReadRoom["bypass"]["headers"][number]) {
  if (name === undefined || values.length > 0) return;
  reader.warn(name.node, {
    id: "HG281",
    message: `whoever sends ${quoteText(name.value)} does not wait`,
    expected: "values that only a few know, or a proxy that removes the header of others",
  });
}
