import { describe, expect, it } from "vitest";
import {
  keptNamesBytesMax,
  NameTable,
  nameBytesMax,
} from "../../../../src/rpc/nodes/metrics-names.js";

/** A table of names that end as wanted, and the names that it was made to read. */
function tableOf(...ends: readonly string[]) {
  const read: string[] = [];
  const table = new NameTable(ends, (name) => {
    read.push(name);
    return ends.find((end) => name.endsWith(end));
  });
  const find = (name: string): string | undefined => {
    const bytes = Buffer.from(`before${name}after`);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    return table.find(view, 6, bytes.length - 5);
  };
  return { table, read, find };
}

describe("NameTable", () => {
  it("reads a name once, and finds what it means again by its bytes", () => {
    const { find, read } = tableOf(".upstream_rq_time", ".upstream_rq_active");
    for (let i = 0; i < 3; i += 1) {
      expect(find("cluster.orders.upstream_rq_time")).toBe(".upstream_rq_time");
      expect(find("cluster.åäö.upstream_rq_active")).toBe(".upstream_rq_active");
    }
    expect(read).toEqual(["cluster.orders.upstream_rq_time", "cluster.åäö.upstream_rq_active"]);
  });

  it("passes over names that end otherwise, without reading them", () => {
    const { find, read } = tableOf(".upstream_rq_time");
    for (const name of ["", "rq_time", "cluster.orders.membership_total", "upstream_rq_timer"]) {
      expect(find(name)).toBeUndefined();
    }
    expect(read).toEqual([]);
  });

  it("keeps names whose memory is used again for others of their length", () => {
    const { table } = tableOf(".upstream_rq_time");
    const memory = Buffer.alloc(64);
    const view = new DataView(memory.buffer, memory.byteOffset, memory.length);
    const asRead = new NameTable([".upstream_rq_time"], (name) => name);
    const names = ["cluster.orders.upstream_rq_time", "cluster.carts1.upstream_rq_time"];
    for (let i = 0; i < 8; i += 1) {
      const name = names[Math.floor(i / 3) % 2] ?? "";
      memory.write(name);
      expect(asRead.find(view, 0, name.length)).toBe(name);
      expect(table.find(view, 0, name.length)).toBe(".upstream_rq_time");
    }
  });

  it("keeps that a name means nothing", () => {
    const { find, read } = tableOf(".upstream_rq_time");
    for (let i = 0; i < 3; i += 1) expect(find("downstream_rq_time")).toBeUndefined();
    expect(read).toEqual(["downstream_rq_time"]);
  });

  it("tells names apart that differ in one character, wherever it is", () => {
    const { find, read } = tableOf(".upstream_rq_time");
    const names = Array.from({ length: 64 }, (_, at) => {
      const text = "a".repeat(64);
      return `${text.slice(0, at)}b${text.slice(at + 1)}.upstream_rq_time`;
    });
    for (const name of names) find(name);
    expect(read).toEqual(names);
  });

  it.each([20, 900])("begins anew when its names have as many bytes as may be (%s)", (length) => {
    const { find, table } = tableOf(".upstream_rq_time");
    const nameBytes = length + ".upstream_rq_time".length;
    const nameCount = Math.ceil(keptNamesBytesMax / nameBytes);
    let most = 0;
    for (let i = 0; i < nameCount; i += 1) {
      find(`${String(i).padStart(length, "n")}.upstream_rq_time`);
      most = Math.max(most, table.keptCount);
    }
    expect(most * nameBytes).toBeLessThan(keptNamesBytesMax);
    expect(most * (nameBytes + 250)).toBeGreaterThan(keptNamesBytesMax);
    expect(table.keptCount).toBeLessThan(most);
  });

  it("finds what names mean in any order, also when they begin anew in between", () => {
    const { find, table } = tableOf(".upstream_rq_time", ".upstream_rq_active");
    const padding = "n".repeat(900);
    let isAnew = false;
    const wrong: string[] = [];
    for (let i = 0; i < 60_000; i += 1) {
      // The same few names in changing order, and many that come once.
      const name = i % 3 === 0 ? `${i}${padding}` : `cluster.${(i * i) % 17}`;
      const end = i % 5 < 2 ? ".upstream_rq_time" : ".upstream_rq_active";
      const before = table.keptCount;
      if (find(`${name}${end}`) !== end) wrong.push(`${name}${end}`);
      isAnew ||= table.keptCount < before;
    }
    expect(wrong).toEqual([]);
    expect(isAnew).toBe(true);
  });

  it("reads no name that is longer than those of clusters are", () => {
    const { find, table, read } = tableOf(".upstream_rq_time");
    const longest = ".upstream_rq_time".padStart(nameBytesMax, "n");
    expect(find(`n${longest}`)).toBeUndefined();
    expect(find(longest)).toBe(".upstream_rq_time");
    expect(read).toEqual([longest]);
    expect(table.keptCount).toBe(1);
  });

  it("takes no end that is shorter than what is looked at first", () => {
    expect(() => tableOf("rq_time")).toThrow("too short");
  });
});
