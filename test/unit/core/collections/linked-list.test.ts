import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LinkedList, type ListNode } from "../../../../src/core/collections/linked-list.js";
import { propertyRuns } from "../../../support/seeds.js";

function values(list: LinkedList<number>): readonly number[] {
  const found: number[] = [];
  for (let node = list.newest; node !== undefined; node = node.older) found.push(node.value);
  return found.toReversed();
}

describe("LinkedList", () => {
  it("is as good as an array, whatever goes in and out", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(30), { maxLength: 100, size: "max" }), (steps) => {
        const list = new LinkedList<number>();
        const nodes: ListNode<number>[] = [];
        const found: string[] = [];
        const expected: string[] = [];
        for (const step of steps) {
          const [node] = step % 2 === 0 ? [] : nodes.splice(step % Math.max(1, nodes.length), 1);
          if (node === undefined) nodes.push(list.push(step));
          else list.remove(node);
          const all = values(list).join();
          const ends = list.oldest === nodes[0] && list.newest === nodes.at(-1);
          found.push(`${all}; ${list.count}; ${ends}`);
          expected.push(`${nodes.map(({ value }) => value).join()}; ${nodes.length}; true`);
        }
        expect(found).toEqual(expected);
      }),
      propertyRuns(100),
    );
  });
});
