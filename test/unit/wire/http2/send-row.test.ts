import { describe, expect, it } from "vitest";
import { type RowMember, SendRow } from "../../../../src/wire/http2/send-row.js";

class Member implements RowMember<Member> {
  readonly name: string;
  isReady = true;
  isScheduled = false;
  nextInRow: Member | undefined;
  previousInRow: Member | undefined;

  constructor(name: string) {
    this.name = name;
  }
}

function rowOf(names: string): { readonly row: SendRow<Member>; readonly members: Member[] } {
  const row = new SendRow<Member>();
  const members = [...names].map((name) => new Member(name));
  for (const member of members) row.add(member);
  return { row, members };
}

function drain(row: SendRow<Member>): string {
  let names = "";
  for (let next = row.take(); next !== undefined; next = row.take()) names += next.name;
  return names;
}

describe("SendRow", () => {
  it("hands out each stream once, in the order in which they came", () => {
    const { row, members } = rowOf("abc");
    for (const member of members) row.add(member);
    expect(row.count).toBe(3);
    expect(drain(row)).toBe("abc");
    expect(row.count).toBe(0);
  });

  it("puts a stream that comes again behind the others", () => {
    const { row } = rowOf("abc");
    const first = row.take();
    if (first !== undefined) row.add(first);
    expect(drain(row)).toBe("bca");
  });

  it("takes none that has nothing to send", () => {
    const { row } = rowOf("ab");
    const idle = new Member("x");
    idle.isReady = false;
    row.add(idle);
    expect(drain(row)).toBe("ab");
  });

  it.each([
    ["a", "bcd"],
    ["b", "acd"],
    ["d", "abc"],
    ["abcd", ""],
    ["dcba", ""],
    ["bc", "ad"],
  ])("forgets %s, wherever it stands", (removed, left) => {
    const { row, members } = rowOf("abcd");
    for (const name of removed) {
      const member = members.find((one) => one.name === name);
      if (member === undefined) throw new Error("no such member");
      row.remove(member);
      row.remove(member);
    }
    expect(row.count).toBe(left.length);
    const late = new Member("z");
    row.add(late);
    expect(drain(row)).toBe(`${left}z`);
  });
});
