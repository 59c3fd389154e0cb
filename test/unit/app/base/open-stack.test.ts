import { describe, expect, it } from "vitest";
import { type OpenStack, openAll } from "../../../../src/app/base/open-stack.js";

const closed: string[] = [];

function opened(name: string): { close(): Promise<string> } {
  return {
    close: async () => {
      await Promise.resolve();
      closed.push(name);
      return name;
    },
  };
}

describe("openAll()", () => {
  it("closes what was opened before the one that fails, in reverse, and says why", async () => {
    closed.length = 0;
    const opening = openAll(async (stack) => {
      stack.keep(opened("store"));
      stack.keep(opened("fleet"));
      throw new Error("the port is in use");
    });
    await expect(opening).rejects.toThrow("the port is in use");
    expect(closed).toEqual(["fleet", "store"]);
  });

  it("leaves all open when none fails, and closes each once", async () => {
    closed.length = 0;
    const { stack, ports } = await openAll(async (stack: OpenStack) => {
      stack.keep(opened("store"));
      const ports = stack.keep(opened("ports"));
      stack.keep(opened("fleet"));
      return { stack, ports };
    });
    expect(closed).toEqual([]);
    expect(await stack.closeNow(ports)).toBe("ports");
    await stack.close();
    await stack.close();
    expect(closed).toEqual(["ports", "fleet", "store"]);
  });

  it("closes the others where one does not close, and tells why it was not opened", async () => {
    closed.length = 0;
    const broken = { close: () => Promise.reject(new Error("the socket is gone")) };
    const opening = openAll(async (stack) => {
      stack.keep(opened("store"));
      stack.keep(broken);
      throw new Error("the port is in use");
    });
    await expect(opening).rejects.toThrow("the port is in use");
    expect(closed).toEqual(["store"]);
    const stack = await openAll(async (open: OpenStack) => {
      open.keep(opened("fleet"));
      open.keep(broken);
      return open;
    });
    await expect(stack.close()).rejects.toThrow("the socket is gone");
    expect(closed).toEqual(["store", "fleet"]);
  });
});
