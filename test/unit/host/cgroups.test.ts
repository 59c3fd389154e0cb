import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cgroupDepthMax, findCgroups } from "../../../src/host/cgroups.js";
import { anyCodePoint } from "../../support/any-code-point.js";
import { propertyRuns } from "../../support/seeds.js";

const mount = (root: string, folder = "/sys/fs/cgroup"): string =>
  `35 24 0:30 ${root} ${folder} rw,relatime shared:4 - cgroup2 cgroup rw\n`;

describe("findCgroups()", () => {
  it.each([
    { what: "a cgroup namespace", root: "/", path: "/", folders: ["/sys/fs/cgroup"] },
    {
      what: "the host's own tree",
      root: "/",
      path: "/a/b",
      folders: ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"],
    },
    {
      what: "a mounted part of it",
      root: "/docker/1",
      path: "/docker/1/sub",
      folders: ["/sys/fs/cgroup/sub", "/sys/fs/cgroup"],
    },
    {
      what: "a part of another name that begins alike",
      root: "/docker/1",
      path: "/docker/10",
      folders: ["/sys/fs/cgroup"],
    },
    { what: "outside of the namespace", root: "/", path: "/../b", folders: ["/sys/fs/cgroup"] },
    { what: "a mount from outside", root: "/../..", path: "/", folders: ["/sys/fs/cgroup"] },
  ])("finds the folders in $what", ({ root, path, folders }) => {
    expect(findCgroups(`0::${path}\n`, mount(root)).unified).toEqual(folders);
  });

  it("finds each controller of the first version where it is mounted", () => {
    const mounts =
      "1 2 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
      "1 2 0:30 / /sys/fs/cgroup/my\\040memory rw - cgroup cgroup rw,memory\n";
    expect(findCgroups("3:cpu,cpuacct:/a\n2:memory:/b\n", mounts)).toEqual({
      unified: undefined,
      cpu: ["/sys/fs/cgroup/cpu,cpuacct/a", "/sys/fs/cgroup/cpu,cpuacct"],
      cpuacct: ["/sys/fs/cgroup/cpu,cpuacct/a", "/sys/fs/cgroup/cpu,cpuacct"],
      memory: ["/sys/fs/cgroup/my memory/b", "/sys/fs/cgroup/my memory"],
    });
  });

  it("prefers what is mounted first, and what lies over it", () => {
    const mounts = `${mount("/x")}${mount("/a")}${mount("/", "/host/cgroup")}`;
    expect(findCgroups("0::/a/b\n", mounts).unified).toEqual([
      "/sys/fs/cgroup/b",
      "/sys/fs/cgroup",
    ]);
  });

  it("looks at the innermost of many", () => {
    const names = Array.from({ length: 5 * cgroupDepthMax }, (_, i) => `n${i}`);
    const { unified = [] } = findCgroups(`0::/${names.join("/")}\n`, mount("/"));
    expect(unified).toHaveLength(cgroupDepthMax);
    expect(unified[0]).toBe(`/sys/fs/cgroup/${names.join("/")}`);
  });

  it("never leaves the mount, whatever the texts are", () => {
    const part = fc.constantFrom("0::", "/", "..", ".", "a", "\\057", "\n", " ", " - ", "cgroup2");
    const text = fc.array(fc.oneof(part, fc.string({ unit: anyCodePoint, maxLength: 3 })));
    fc.assert(
      fc.property(text, (parts) => {
        const { unified = [] } = findCgroups(`0::/${parts.join("")}\n`, mount("/"));
        for (const folder of unified) {
          expect(`${folder}/`).toMatch(/^\/sys\/fs\/cgroup\//);
          expect(folder.split("/")).not.toContain("..");
        }
        findCgroups(parts.join(""), parts.join(""));
      }),
      propertyRuns(100),
    );
  });
});
